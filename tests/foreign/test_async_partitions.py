"""Our own client and the official one on partitioned topics, and on several brokers."""

from __future__ import annotations

import anyio
import pulsar
import pytest

from pulsarium.client import HashingScheme, InitialPosition, MessageId, connect
from pulsarium.client.producer.router import hash_of
from tests.client.both import on_both
from tests.foreign.ownership_moves import NAMESPACE, move, set_up

from .admin import Admin
from .broker_process import Address, is_pulsarium
from .conftest import Launch

CONTENTS = [b"%d" % number for number in range(60)]


@pytest.fixture
def parts(admin: Admin, topic: str) -> str:
    """Create a topic of three partitions."""
    admin.create_partitioned(topic, 3)
    return topic


@on_both
async def test_the_official_client_reads_partitions_that_we_send_to(
    broker: Address, official: pulsar.Client, parts: str
) -> None:
    async with connect(broker.service_url) as client, client.create_producer(parts) as producer:
        receipts = [producer.send_nowait(content, partition_key=content.decode()) for content in CONTENTS[:30]]
        receipts += [producer.send_nowait(content) for content in CONTENTS[30:]]
        ids = [await receipt.wait() for receipt in receipts]
    consumer = official.subscribe(parts, "s", initial_position=pulsar.InitialPosition.Earliest)
    found = {}
    for _ in CONTENTS:
        message = consumer.receive(30_000)
        one = message.message_id()
        found[message.data()] = MessageId(one.ledger_id(), one.entry_id(), one.partition(), one.batch_index())
    assert found == dict(zip(CONTENTS, ids, strict=True))
    java = [hash_of(content.decode(), HashingScheme.JavaStringHash) % 3 for content in CONTENTS[:30]]
    assert [one.partition for one in ids[:30]] == java


@on_both
async def test_we_read_what_the_official_client_sends(broker: Address, official: pulsar.Client, parts: str) -> None:
    producer = official.create_producer(parts)
    ids = [producer.send(content) for content in CONTENTS]
    expected = {
        content: (one.partition(), one.ledger_id(), one.entry_id()) for content, one in zip(CONTENTS, ids, strict=True)
    }
    async with connect(broker.service_url) as client:
        found = {}
        async with client.subscribe(parts, "s", initial_position=InitialPosition.Earliest) as consumer:
            for _ in CONTENTS:
                message = await consumer.receive()
                found[message.data()] = (message.message_id().partition, *message.message_id().entry)
                await consumer.acknowledge(message)
        assert found == expected
        assert {partition for partition, _, _ in found.values()} == {0, 1, 2}
        async with client.create_reader(parts, MessageId.earliest) as reader:
            read = []
            while await reader.has_message_available():
                read.append((await reader.read_next()).data())
        assert sorted(read) == sorted(CONTENTS)


@pytest.mark.skipif(not is_pulsarium(), reason="needs three brokers in one process")
@on_both
async def test_topics_that_move_between_brokers(launch: Launch) -> None:
    """Deduplication keeps each message once, and each partition keeps its order."""
    brokers = launch("--brokers", "3")
    admin = set_up(brokers)
    name, count = f"persistent://{NAMESPACE}/parts", 600
    admin.create_partitioned(name, 3)
    got: list[tuple[int, int]] = []
    async with (
        connect(",".join(one.service_url for one in brokers.addresses).replace(",pulsar://", ",")) as client,
        client.subscribe(name, "s", initial_position=InitialPosition.Earliest) as consumer,
        client.create_producer(name, producer_name="p", batching_max_messages=5) as producer,
    ):

        async def receive() -> None:
            async for message in consumer:
                got.append((message.message_id().partition, int(message.data())))
                await consumer.acknowledge(message)
                if len(set(got)) == count:
                    return

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(receive)
            for number in range(count):
                receipt = producer.send_nowait(b"%d" % number)
                if number % 20 == 10:
                    to = brokers.addresses[number // 20 % 3] if number % 40 == 10 else None
                    await anyio.to_thread.run_sync(move, admin, f"{name}-partition-{number % 3}", to)
                if number % 50 == 0:
                    await receipt.wait()
            await producer.flush()
    first = list(dict.fromkeys(got))
    assert sorted(number for _, number in first) == list(range(count))
    for partition in range(3):
        own = [number for one, number in first if one == partition]
        assert own == sorted(own)
