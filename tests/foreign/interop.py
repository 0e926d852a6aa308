"""Publishing and reading of messages, in the same way by our client and by official ones."""

from __future__ import annotations

import base64
import json
import queue
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pulsar

from pulsarium.client import Client, CompressionType, InitialPosition, Message, MessageId
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.key_files import KeyFiles

from .interop_kinds import KINDS, Kind
from .lines import LineProgram

BATCHED, CHUNKED = "batch", "chunks"
SENDING = ("single", BATCHED, CHUNKED)
SECONDS = 200
MINUTE_MS = 60_000


@dataclass(frozen=True)
class Way:
    """Options of sending messages: a schema of KINDS, a compression, a value of SENDING, and keys for encryption."""

    kind: str
    compression: str = "NONE"
    sending: str = "single"
    keys: KeyFiles | None = None

    @property
    def schema(self) -> Kind:
        return KINDS[self.kind]


@dataclass(frozen=True)
class Sent:
    """A message to publish. The value None means a message without a value."""

    value: Any
    key: str = ""
    ordering_key: str = ""
    event_time: int = 0
    properties: tuple[tuple[str, str], ...] = ()


class Peer(Protocol):
    """An official client."""

    large: int
    """Size in bytes of a value that needs chunks, compressed or not."""
    chunk_size: int | None
    """Size of our chunks in tests with this peer, and of the peer's where it has the option. None is the maximum."""

    def messages(self, way: Way) -> list[Sent]:
        """Return the messages that the peer can publish."""

    def publish(self, topic: str, way: Way, messages: Sequence[Sent]) -> list[MessageId]: ...

    def read(self, topic: str, way: Way, count: int) -> list[dict[str, Any]]:
        """Return the fields of each message that the peer shows, named as in `told`. Values have their plain form."""


def messages_of(way: Way, large: int) -> list[Sent]:
    """Return a message for each value of the kind, and one without a value. For chunks, add a large one."""
    values = [*way.schema.values, None]
    if way.schema.schema.separates_key:
        values.pop()  # Java reads the missing value as a pair without key and value
    if way.sending == CHUNKED and way.schema.large is not None:
        text = base64.b64encode(random.Random(large).randbytes(large)).decode()
        values.insert(1, way.schema.large(text))
    return [
        Sent(
            value,
            "" if way.schema.schema.separates_key else f"k{number}",
            f"ö{number}",
            1_234_567_890_123 + number,
            (("a", "1"), ("ü", "ключ")),
        )
        if number % 2
        else Sent(value)
        for number, value in enumerate(values)
    ]


def place(message_id: MessageId) -> tuple[Any, ...]:
    """Return all parts of a message id that a serialized id keeps."""
    return message_id, message_id.batch_size, message_id.first_chunk


def told(message: Message[Any]) -> dict[str, Any]:
    """Return the fields of a message as our client shows them."""
    return {
        "value": None if message.has_null_value() else message.value(),
        "id": place(message.message_id()),
        "key": message.partition_key(),
        "ordering_key": message.ordering_key(),
        "event_time": message.event_timestamp(),
        "properties": message.properties(),
        "producer": message.producer_name(),
        "sequence_id": message.sequence_id(),
        "schema_version": message.schema_version().hex(),
    }


async def publish(
    client: Client, topic: str, way: Way, messages: Sequence[Sent], chunk_size: int | None
) -> list[MessageId]:
    """Publish the messages with our client, and return their ids."""
    async with client.create_producer(
        topic,
        schema=way.schema.schema,
        compression_type=CompressionType(pb.CompressionType.Value(way.compression)),
        batching_enabled=way.sending == BATCHED,
        batching_max_publish_delay=MINUTE_MS / 1000,
        chunking_enabled=way.sending == CHUNKED,
        chunk_max_message_size=chunk_size,
        encryption_keys=["ours"] if way.keys else [],
        crypto_key_reader=way.keys.reader if way.keys else None,
    ) as producer:
        receipts = [
            producer.send_nowait(
                message.value,
                partition_key=message.key or None,
                ordering_key=message.ordering_key or None,
                event_timestamp=message.event_time or None,
                properties=dict(message.properties),
            )
            for message in messages
        ]
        await producer.flush()
        return [await receipt.wait() for receipt in receipts]


async def read(client: Client, topic: str, way: Way, count: int) -> list[Message[Any]]:
    """Receive and acknowledge `count` messages with our client."""
    async with client.subscribe(
        topic,
        f"ours-{way.kind}",
        schema=way.schema.schema,
        initial_position=InitialPosition.Earliest,
        crypto_key_reader=way.keys.reader if way.keys else None,
    ) as consumer:
        messages: list[Message[Any]] = []
        while len(messages) < count:
            messages.append(await consumer.receive())
            await consumer.acknowledge(messages[-1])
        return messages


class Java:
    """The official Java client, which runs the scenarios of Interop.java."""

    def __init__(self, program: LineProgram, large: int = 3000, chunk_size: int | None = 1000) -> None:
        self.large = large
        self.chunk_size = chunk_size
        self._program = program

    def messages(self, way: Way) -> list[Sent]:
        return messages_of(way, self.large)

    def publish(self, topic: str, way: Way, messages: Sequence[Sent]) -> list[MessageId]:
        kind = way.schema
        result = self._program.run(
            "interop-publish",
            **self._common(topic, way),
            compression=way.compression,
            batched=way.sending == BATCHED,
            chunked=way.sending == CHUNKED,
            chunk_size=self.chunk_size or -1,
            messages=[
                {
                    "value": None if message.value is None else kind.plain(message.value),
                    "properties": dict(message.properties),
                    **{
                        name: value
                        for name in ("key", "ordering_key", "event_time")
                        if (value := getattr(message, name))
                    },
                }
                for message in messages
            ],
        )
        return [MessageId.deserialize(base64.b64decode(one)) for one in result["ids"]]

    def read(self, topic: str, way: Way, count: int) -> list[dict[str, Any]]:
        result = self._program.run("interop-consume", **self._common(topic, way), count=count)
        return [
            one | {"value": json.loads(one["value"]), "id": place(MessageId.deserialize(base64.b64decode(one["id"])))}
            for one in result["messages"]
        ]

    def _common(self, topic: str, way: Way) -> dict[str, Any]:
        keys = {"public_key": way.keys.public, "private_key": way.keys.private} if way.keys else {}
        return {"topic": topic, "kind": way.kind, **keys}


class Python:
    """The official Python client. It sends chunks only when a message is larger than an entry may be."""

    def __init__(self, client: pulsar.Client, max_message_size: int) -> None:
        """Set the size of large messages and of chunks by the broker's `max_message_size`."""
        self.large = max_message_size + 10_000
        self.chunk_size = max_message_size // 5
        self._client = client

    def messages(self, way: Way) -> list[Sent]:
        """Return all messages, but no single empty ones for zlib: this client cannot read them, not even its own."""
        everything = messages_of(way, self.large)
        if way.compression != "ZLIB" or way.sending == BATCHED:
            return everything
        return [message for message in everything if message.value]

    def publish(self, topic: str, way: Way, messages: Sequence[Sent]) -> list[MessageId]:
        assert way.schema.official is not None
        producer = self._client.create_producer(
            topic,
            schema=way.schema.official.schema,
            compression_type=pulsar.CompressionType.__members__[
                CompressionType(pb.CompressionType.Value(way.compression)).name
            ],
            batching_enabled=way.sending == BATCHED,
            batching_max_publish_delay_ms=MINUTE_MS,
            chunking_enabled=way.sending == CHUNKED,
            encryption_key="theirs" if way.keys else None,
            crypto_key_reader=pulsar.CryptoKeyReader(*way.keys) if way.keys else None,
        )
        results: queue.Queue[tuple[Any, Any]] = queue.Queue()
        for message in messages:
            producer.send_async(
                None if message.value is None else way.schema.official.theirs(message.value),
                lambda *result: results.put(result),
                dict(message.properties),
                message.key or None,
                message.ordering_key or None,
                event_timestamp=message.event_time or None,
            )
        producer.flush()
        found = [results.get(timeout=SECONDS) for _ in messages]
        producer.close()
        assert {result for result, _ in found} == {pulsar.Result.Ok}
        return [MessageId.deserialize(message_id.serialize()) for _, message_id in found]

    def read(self, topic: str, way: Way, count: int) -> list[dict[str, Any]]:
        consumer = self._client.subscribe(
            topic,
            "python",
            schema=way.schema.official.schema if way.schema.official else None,
            initial_position=pulsar.InitialPosition.Earliest,
            crypto_key_reader=pulsar.CryptoKeyReader(*way.keys) if way.keys else None,
        )
        found = []
        for _ in range(count):
            message = consumer.receive(SECONDS * 1000)
            consumer.acknowledge(message)
            found.append(self._told(message, way.schema))
        consumer.close()
        return found

    def _told(self, message: pulsar.Message, kind: Kind) -> dict[str, Any]:
        assert kind.official is not None
        return {
            "value": None if message.has_null_value() else kind.plain(kind.official.ours(message.value())),
            "id": place(MessageId.deserialize(message.message_id().serialize())),
            "key": message.partition_key(),
            "ordering_key": message.ordering_key(),
            "event_time": message.event_timestamp(),
            "properties": message.properties(),
            "producer": message.producer_name(),
            "schema_version": message.schema_version().encode("latin-1").hex(),
        }
