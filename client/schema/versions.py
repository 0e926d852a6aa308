"""Cache the schema versions of topics, which brokers store."""

from __future__ import annotations

from typing import Any, NamedTuple

import anyio

from pulsarium.client.connection.brokers import Brokers
from pulsarium.client.errors import InvalidMessage, PulsarError, error_of
from pulsarium.client.message import Message
from pulsarium.client.schema.schema import SchemaInfo
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import text_of

VERSION_BYTES = 8  # the size of a version, a big-endian number
MOST_SCHEMAS = 1000  # in the cache
MOST_BYTES = 16 * 1024 * 1024  # of definitions in the cache
ASK_AGAIN = 30.0  # seconds until a failed request for a schema is repeated


async def fetch(brokers: Brokers, topic: str, version: bytes | None = None) -> SchemaInfo:
    """Send GET_SCHEMA for a topic (a full name), and return the schema. Without `version`, this is the latest one.

    Raise the broker's refusal, which is `TopicNotFound` for a topic without a schema, or `ConnectError`.
    """
    connection = await brokers.connect_to(topic)
    command = pb.CommandGetSchema(request_id=connection.next_request_id(), topic=topic)
    if version is not None:
        command.schema_version = version
    reply = await connection.request(pb.BaseCommand(type=pb.BaseCommand.GET_SCHEMA, getSchema=command))
    response = reply.command.getSchemaResponse
    if response.HasField("error_code"):
        raise error_of(response.error_code, text_of(response.error_message))
    return SchemaInfo.from_proto(response.schema)


class _Kept(NamedTuple):
    schema: SchemaInfo | PulsarError
    until: float

    @property
    def size(self) -> int:
        return len(self.schema.data) if isinstance(self.schema, SchemaInfo) else 0


class Versions:
    """The schemas with which messages were written, for schemas that need them.

    All consumers of a client share them.
    """

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers
        self._kept: dict[tuple[str, bytes], _Kept] = {}
        self._bytes = 0

    def knows(self, message: Message[Any]) -> bool:
        """Return whether `tell` has an answer for the message now."""
        version = message.schema_version()
        if len(version) != VERSION_BYTES:
            return True
        kept = self._kept.get((message.topic_name(), version))
        return kept is not None and kept.until > anyio.current_time()

    async def find(self, message: Message[Any]) -> None:
        """Fetch the schema with which the message was written.

        An error is stored, and `tell` passes it to the message.
        """
        topic, version = message.topic_name(), message.schema_version()
        schema: SchemaInfo | PulsarError
        until = float("inf")
        try:
            schema = await self._brokers.patiently(lambda: fetch(self._brokers, topic, version))
        except PulsarError as error:
            schema, until = error, anyio.current_time() + ASK_AGAIN
        self._forget((topic, version))
        self._kept[topic, version] = kept = _Kept(schema, until)
        self._bytes += kept.size
        while len(self._kept) > MOST_SCHEMAS or (self._bytes > MOST_BYTES and len(self._kept) > 1):
            self._forget(next(iter(self._kept)))

    def tell(self, message: Message[Any]) -> None:
        """Pass the message the schema with which it was written, or the error in place of the schema."""
        version = message.schema_version()
        if not version:
            return
        if len(version) != VERSION_BYTES:  # brokers close the connection on such a version
            message._written_with(InvalidMessage(f"{version[:VERSION_BYTES].hex()} is no schema version"))
            return
        kept = self._kept.get((message.topic_name(), version))
        if kept is not None:
            message._written_with(kept.schema)

    def _forget(self, key: tuple[str, bytes]) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._bytes -= kept.size
