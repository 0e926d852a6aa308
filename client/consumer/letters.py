"""Messages that a consumer puts into other topics, for which it has producers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio

from pulsarium.client.core import Core
from pulsarium.client.errors import AlreadyClosed
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.client.producer.options import ProducerOptions
from pulsarium.client.producer.producer import Producer
from pulsarium.client.schema.schema import Schema, SchemaInfo
from pulsarium.client.together import together


class Encoded(Schema[bytes]):
    """Bytes that are values of a schema already."""

    def __init__(self, info: SchemaInfo | None) -> None:
        self.info = info

    def encode(self, value: bytes) -> bytes:
        return value

    def decode(self, data: bytes, writer: SchemaInfo | None = None) -> bytes:
        return data


class Letters:
    """Sends messages on; a producer is made for the first one to each topic, and closed with the consumer."""

    def __init__(self, core: Core, subscription: str, schema: Schema[Any]) -> None:
        """`schema`: that of the messages, which their new topics get as well."""
        self._core = core
        self._subscription = subscription
        self._schema = Encoded(schema.info)
        self._producers: dict[str, Producer[bytes]] = {}
        self._opening = anyio.Lock()
        self._closed = False

    async def send(
        self,
        topic: str,
        message: Message[Any],
        properties: Mapping[str, str],
        *,
        deliver_after: float | None = None,
        initial_subscription_name: str | None = None,
    ) -> None:
        """Publish what is in a message, with these properties in place of its own; raises what the producer does."""
        producer = self._producers.get(topic) or await self._open(topic, initial_subscription_name)
        await producer.send(
            None if message.has_null_value() else message.data(),
            partition_key=_key(message),
            ordering_key=message.ordering_key() or None,
            properties=properties,
            event_timestamp=message.event_timestamp() or None,
            deliver_after=deliver_after,
        )

    def properties_of(self, message: Message[Any], topic: str) -> dict[str, str]:
        """Those of a message, and where it came from first: `topic`, if it says nothing else."""
        origin = _text(message.message_id())
        return {
            "REAL_TOPIC": topic,
            "REAL_SUBSCRIPTION": self._subscription,
            "ORIGIN_MESSAGE_ID": origin,
            "ORIGIN_MESSAGE_IDY_TIME": origin,  # Java's old name of it
            **message.properties(),
        }

    async def aclose(self) -> None:
        """Close the producers."""
        self._closed = True
        try:
            await together([producer.aclose for producer in self._producers.values()])
        finally:
            for producer in self._producers.values():
                producer.abandon()

    async def _open(self, topic: str, initial_subscription_name: str | None) -> Producer[bytes]:
        async with self._opening:
            self._check(topic)
            if topic not in self._producers:
                options = ProducerOptions(
                    topic,
                    schema=self._schema,
                    batching_enabled=False,
                    chunking_enabled=True,
                    initial_subscription_name=initial_subscription_name,
                )
                producer = await Producer(self._core, options).__aenter__()
                try:
                    self._check(topic)
                except AlreadyClosed:  # meanwhile
                    producer.abandon()
                    raise
                self._producers[topic] = producer
            return self._producers[topic]

    def _check(self, topic: str) -> None:
        if self._closed:
            raise AlreadyClosed(f"{topic}: the consumer was closed")


def _key(message: Message[Any]) -> str | bytes | None:
    if message.has_base64_encoded_key():
        return message.key_bytes()
    return message.partition_key() if message.has_partition_key() else None


def _text(message_id: MessageId) -> str:
    """As Java prints ids."""
    parts = [*message_id.entry, message_id.partition]
    if message_id.batch_index >= 0:
        parts.append(message_id.batch_index)
    return ":".join(map(str, parts))
