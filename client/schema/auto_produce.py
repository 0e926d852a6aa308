"""Bytes that are values of the topic's schema already."""

from __future__ import annotations

from typing import Any

from pulsarium.client.connection.brokers import Brokers
from pulsarium.client.errors import TopicNotFound
from pulsarium.client.schema.of_info import schema_of
from pulsarium.client.schema.schema import BytesSchema, Schema, SchemaInfo
from pulsarium.client.schema.versions import fetch


class AutoProduceBytesSchema(BytesSchema):
    """For producers that pass on what others have encoded: each message is held against the latest schema that the
    topic has when the producer is opened, and counts as written with that. A topic without a schema takes any bytes.

    Opening raises InvalidMessage for a schema that is none of ours.
    """

    async def on(self, brokers: Brokers, topic: str) -> Schema[Any]:
        """What a producer on this topic (a full name) encodes with."""
        try:
            info = await brokers.patiently(lambda: fetch(brokers, topic))
        except TopicNotFound:
            return BytesSchema()
        return _Checked(info)


class _Checked(BytesSchema):
    def __init__(self, info: SchemaInfo) -> None:
        self.info = info
        self._schema = schema_of(info)

    def encode(self, value: bytes) -> bytes:
        data = super().encode(value)
        self._schema.decode(data)
        return data
