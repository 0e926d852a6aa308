"""Our readers and consumers on compacted topics of the official client (PIP-429), with protocol versions 21 and 22."""

from __future__ import annotations

import pulsar
import pytest

from pulsarium.client import InitialPosition, MessageId, connect
from tests.client.both import on_both
from tests.foreign.async_compaction import Counting, all_of, compact
from tests.foreign.python.compaction import SCRIPTS

from .admin import Admin
from .broker_process import Address, is_pulsarium

Earliest = InitialPosition.Earliest


def write(
    official: pulsar.Client,
    topic: str,
    entries: list[list[tuple[str, bytes]]],
    compression: pulsar.CompressionType = pulsar.CompressionType.NONE,
    batched: bool = True,
) -> None:
    producer = official.create_producer(
        topic, batching_enabled=batched, batching_max_publish_delay_ms=60_000, compression_type=compression
    )
    for entry in entries:
        for key, content in entry:
            producer.send_async(content, None, partition_key=key)
        producer.flush()
    producer.close()


@pytest.mark.req("S429-08", "S429-10", "S429-13", "S429-14")
@pytest.mark.parametrize("version", [21, 22])
@on_both
async def test_our_client_reads_the_proposals_example(
    broker: Address, admin: Admin, official: pulsar.Client, topic: str, version: int
) -> None:
    example = [("k0", b"v0"), ("k0", b"v1"), ("k1", b"v0"), ("k1", b"")]
    write(official, topic, [example], pulsar.CompressionType.LZ4)
    compact(admin, topic)
    counting = Counting()
    async with connect(broker.service_url, max_protocol_version=version) as client:
        async with client.create_reader(
            topic, MessageId.earliest, read_compacted=True, payload_to_message_id_converter=counting
        ) as reader:
            assert await all_of(reader) == [("k0", b"v1")]
            (last,) = await reader.get_last_message_ids()
            assert (last.entry_id, last.batch_index) == (0, 1)
        async with client.create_reader(topic, MessageId.earliest) as reader:
            assert await all_of(reader) == example
            (last,) = await reader.get_last_message_ids()
            assert last.batch_index == 3
    if is_pulsarium():  # no other broker has protocol version 22
        assert bool(counting.calls) == (version == 22)


@pytest.mark.req("S429-14")
@pytest.mark.parametrize("version", [21, 22])
@pytest.mark.parametrize("name", SCRIPTS)
@on_both
async def test_compaction_keeps_the_messages_that_a_real_broker_kept(
    broker: Address, admin: Admin, official: pulsar.Client, topic: str, name: str, version: int
) -> None:
    """The official client shows removed messages as empty ones. Our client does not deliver them."""
    script = SCRIPTS[name]
    write(official, topic, script.entries, batched=script.batched)
    compact(admin, topic)
    kept = [(key, content) for _, key, content in script.got if key]
    async with connect(broker.service_url, max_protocol_version=version) as client:
        async with client.create_reader(topic, MessageId.earliest, read_compacted=True) as reader:
            assert await all_of(reader) == kept
            (last,) = await reader.get_last_message_ids()
            assert (last.entry_id, last.batch_index) == script.last
        async with client.subscribe(topic, "s", initial_position=Earliest, read_compacted=True) as consumer:
            assert await consumer.get_last_message_ids() == [last]
            for expected in kept:
                message = await consumer.receive()
                assert (message.partition_key(), message.data()) == expected
                await consumer.acknowledge(message)


@pytest.mark.req("S429-05", "S429-14")
@pytest.mark.parametrize("version", [21, 22])
@on_both
async def test_a_message_newer_than_the_horizon(
    broker: Address, admin: Admin, official: pulsar.Client, topic: str, version: int
) -> None:
    write(official, topic, [[("k0", b"1"), ("k0", b"2")]])
    compact(admin, topic)
    write(official, topic, [[("k0", b"3"), ("k1", b"4")]])
    counting = Counting()
    async with (
        connect(broker.service_url, max_protocol_version=version) as client,
        client.create_reader(
            topic, MessageId.earliest, read_compacted=True, payload_to_message_id_converter=counting
        ) as reader,
    ):
        (last,) = await reader.get_last_message_ids()
        assert last.batch_index == 1
        assert await all_of(reader) == [("k0", b"2"), ("k0", b"3"), ("k1", b"4")]
        assert counting.calls == 0
