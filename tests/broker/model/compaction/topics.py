"""Helpers that publish to a topic, compact it and read the result."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import trio

from pulsarium.broker.cluster import Broker
from pulsarium.broker.config import Config
from pulsarium.broker.model.compaction.compaction import PAUSE, Compaction
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.proto import batch
from pulsarium.proto.compression import compress, decompress
from pulsarium.proto.entry import parse_metadata, payload_of
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.held import HeldStorage
from tests.broker.model.stores import Publisher, append
from tests.broker.wire import TOPIC, plain, serving

NAME = TopicName.parse(TOPIC)

PATIENCE_SECONDS = 30.0  # of real time, because an autojump clock does not wait for the threads of a store

Single = tuple[str | None, bytes]  # the key and the value
Found = tuple[Position, int, str | None, bytes]  # position, batch index (-1 without a batch), key, value


def keyed_batch(*messages: Single, compression: pb.CompressionType = pb.NONE, **metadata: Any) -> bytes:
    """Return an entry with a batch of these keys and values."""
    packed = batch.pack([(pb.SingleMessageMetadata(partition_key=key), value) for key, value in messages])
    fields = {"num_messages_in_batch": len(messages), "compression": compression, **metadata}
    return plain(compress(compression, packed), uncompressed_size=len(packed), **fields)


async def compact(topic: PersistentTopic) -> Compaction:
    """Compact a topic, and wait until the compaction has ended."""
    topic.compaction.trigger()
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        if topic.compaction.status != "RUNNING":
            return topic.compaction
        await trio.sleep(PAUSE)  # no longer: while a thread works, the test's clock goes faster than the machine's
    raise AssertionError("it does not end")


def compacted_entries(topic: PersistentTopic, limit: int = 3) -> list[tuple[Position, bytes]]:
    """Return all retained entries, read in steps as a consumer reads them."""
    entries: list[tuple[Position, bytes]] = []
    start = Position(-1, -1)
    while found := topic.compaction.compacted.read(start, limit, lambda: None):
        entries += found
        start = Position(found[-1][0].ledger_id, found[-1][0].entry_id + 1)
    assert found is not None, "an entry is not in memory"
    return entries


def messages_in(entries: Iterable[tuple[Position, bytes]]) -> list[Found]:
    """Return the messages of entries, without those that compaction removed from a batch."""
    found: list[Found] = []
    for position, entry in entries:
        metadata = parse_metadata(entry)
        if not metadata.HasField("num_messages_in_batch") or metadata.encryption_keys:
            found.append((position, -1, key_of(metadata), payload_of(entry)))
            continue
        payload = decompress(metadata.compression, payload_of(entry), metadata.uncompressed_size)
        singles = batch.unpack(payload, metadata.num_messages_in_batch)
        left = [index for index, (single, _) in enumerate(singles) if not single.compacted_out]
        assert left == list(metadata.compacted_batch_indexes)
        found += [(position, index, key_of(singles[index][0]), singles[index][1]) for index in left]
    return found


def key_of(metadata: pb.MessageMetadata | pb.SingleMessageMetadata) -> str | None:
    return metadata.partition_key if metadata.HasField("partition_key") else None


@asynccontextmanager
async def broker_on(storage: HeldStorage | None = None, **config: Any) -> AsyncIterator[Broker]:
    async with serving(Config(**config), storage=storage) as bed:
        yield bed.broker


def topic_of(broker: Broker) -> PersistentTopic:
    topic = broker.topics.create(NAME)
    assert isinstance(topic, PersistentTopic)
    return topic


def publish(broker: Broker, *entries: bytes) -> list[Position]:
    """Publish entries without a producer, and return the positions of those that are committed."""
    publisher = Publisher()
    append(topic_of(broker).ledger, broker.cluster, *entries, publisher=publisher)
    return publisher.kept


def single(key: str | None, value: bytes, **metadata: Any) -> bytes:
    return plain(value, **metadata) if key is None else plain(value, partition_key=key, **metadata)


def view(topic: PersistentTopic) -> list[Single]:
    """Return the keys and values that compaction kept."""
    return [(key, value) for _, _, key, value in messages_in(compacted_entries(topic))]


def status_of(topic: PersistentTopic) -> str:
    return topic.compaction.status
