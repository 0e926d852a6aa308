"""Publish to topics, and read them by the data source without Spark."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

import anyio
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit
from pyspark.sql.types import BinaryType, StructField, StructType

from pulsarium.client import MessageId, connect
from pulsarium.client.admin.admin import Admin, connect_admin
from pulsarium.pipeline.source.offsets import Offset
from pulsarium.pipeline.source.options import SourceOptions
from pulsarium.pipeline.source.readers import PulsarReader, PulsarStreamReader
from tests.foreign.broker_process import Address
from tests.foreign.deadline import eventually

T = TypeVar("T")

VALUES = StructType([StructField("value", BinaryType())])


def options(broker: Address, topic: str | None, **more: object) -> dict[str, str]:
    """Return options of the data source. `more` has further options, and `admin_url=None` omits `admin.url`."""
    given: dict[str, object] = {"service.url": broker.service_url, "admin.url": broker.admin_url, "topic": topic}
    if "admin_url" in more:
        given["admin.url"] = more.pop("admin_url")
    return {key: str(value) for key, value in (given | more).items() if value is not None}


def publish(broker: Address, topic: str, contents: Iterable[Any], keys: int = 0, **producer: Any) -> list[MessageId]:
    """Publish in batches of 10 by default, with `keys` keys in turn, and return the message ids."""
    producer = {"batching_max_messages": 10, "batching_max_publish_delay": 60, "max_pending_messages": 5000} | producer

    async def send() -> list[MessageId]:
        async with connect(broker.service_url) as client, client.create_producer(topic, **producer) as made:
            receipts = []
            for number, content in enumerate(contents):
                key = f"k{number % keys}" if keys else None
                receipts.append(made.send_nowait(content, partition_key=key))
                if number % 1000 == 999:
                    await made.flush()
            await made.flush()
            return [await receipt.wait() for receipt in receipts]

    return anyio.run(send)


def numbers(count: int, first: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


def batch_reader(given: dict[str, str], wanted: StructType = VALUES) -> PulsarReader:
    return PulsarReader(SourceOptions.of(given), wanted)


def stream_reader(given: dict[str, str], wanted: StructType = VALUES) -> PulsarStreamReader:
    return PulsarStreamReader(SourceOptions.of(given, streaming=True), wanted)


def read(reader: PulsarReader | PulsarStreamReader, splits: Iterable[InputPartition]) -> list[list[Any]]:
    """Return the values of each split."""
    return [[value for batch in reader.read(split) for value in batch.column(0).to_pylist()] for split in splits]


def values(broker: Address, topic: str | None, **more: object) -> list[list[bytes]]:
    """Return the values of each split of a topic, by a batch read."""
    reader = batch_reader(options(broker, topic, **more))
    return read(reader, reader.partitions())


def flat(parts: Sequence[Sequence[Any]]) -> list[Any]:
    return [value for part in parts for value in part]


def micro_batch(
    reader: PulsarStreamReader, start: Offset, limit: ReadLimit | None = None
) -> tuple[Offset, list[list[Any]]]:
    """Plan and read a micro-batch as Spark does, and return its end and the values of its splits."""
    end = reader.latestOffset(start, limit or ReadAllAvailable())
    return end, read(reader, reader.partitions(start, end)) if end != start else []


def admin(broker: Address, ask: Callable[[Admin], Awaitable[T]]) -> T:
    """Ask the REST API, and return its answer."""

    async def asking() -> T:
        async with connect_admin(broker.admin_url) as found:
            return await ask(found)

    return anyio.run(asking)


def unload(broker: Address, topic: str) -> None:
    """Unload the topic, so that it continues in another ledger."""
    admin(broker, lambda found: found.topics.unload(topic))
    admin(broker, lambda found: found.topics.get_stats(topic))  # this request loads the topic again


def trim(broker: Address, topic: str) -> None:
    """Delete all entries that no subscription holds, and wait until the topic is empty."""
    unload(broker, topic)
    admin(broker, lambda found: found.topics.trim_topic(topic))

    def is_gone() -> bool:
        return admin(broker, lambda found: found.topics.get_internal_stats(topic))["numberOfEntries"] == 0

    eventually(is_gone, what=f"{topic} is empty")
