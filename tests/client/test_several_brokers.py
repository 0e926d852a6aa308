"""Our client and several brokers in one process: redirects, and topics that move."""

from __future__ import annotations

import anyio
import pytest
from trio.testing import MockClock

from pulsarium.broker.config import Config
from pulsarium.client import InitialPosition, MessageId
from pulsarium.proto.topic_name import TopicName
from tests.client.in_process import InProcess, in_process

TOPIC = "persistent://public/default/t"


async def give(inside: InProcess, topic: str, broker: int | None) -> None:
    """Unload the topic's bundle; with `broker` its clients are told who has it now (PIP-307)."""
    cluster = inside.bed.broker.cluster
    bundle = cluster.ownership.bundle_of(TopicName.parse(topic))
    assert bundle is not None
    await cluster.unload([("public/default", bundle)], None if broker is None else inside.bed.brokers[broker])
    inside.bed.broker.turn.finish()


def owner(inside: InProcess, topic: str = TOPIC) -> int:
    found = inside.bed.broker.cluster.ownership.owner(TopicName.parse(topic))
    assert found is not None
    return inside.bed.brokers.index(found)


@pytest.mark.parametrize("broker", range(3))
async def test_redirects_lead_to_the_owner(autojump_clock: MockClock, broker: int) -> None:
    async with in_process(brokers=3) as inside, inside.client() as client:
        await give(inside, TOPIC, broker)
        async with (
            client.subscribe("t", "s") as consumer,
            client.create_producer("t") as producer,
            client.create_reader("t", MessageId.earliest) as reader,
        ):
            await producer.send(b"x")
            assert (await consumer.receive()).data() == b"x"
            assert (await reader.read_next()).data() == b"x"
        assert owner(inside) == broker
        assert set(inside.dialled) == {0, broker}


async def test_partitions_on_many_brokers(autojump_clock: MockClock) -> None:
    async with in_process(brokers=3) as inside, inside.client() as client:
        inside.partitioned("persistent://public/default/parts", 6)
        for n in range(6):
            await give(inside, f"persistent://public/default/parts-partition-{n}", n % 3)
        async with client.subscribe("parts", "s") as consumer, client.create_producer("parts") as producer:
            sent = [b"%d" % n for n in range(24)]
            for content in sent:
                await producer.send(content)
            assert sorted([(await consumer.receive()).data() for _ in sent]) == sorted(sent)
        assert set(inside.dialled) == {0, 1, 2}


async def test_the_next_owner_is_known_without_a_lookup(autojump_clock: MockClock) -> None:
    async with in_process(brokers=3) as inside, inside.client() as client:
        await give(inside, TOPIC, 1)
        async with client.subscribe("t", "s") as consumer, client.create_producer("t") as producer:
            await producer.send(b"before")
            assert inside.dialled == [0, 1]
            start = anyio.current_time()
            await give(inside, TOPIC, 2)
            await producer.send(b"after")
            assert [(await consumer.receive()).data() for _ in range(2)][-1] == b"after"
            assert anyio.current_time() - start < 0.09  # no backoff
            assert inside.dialled == [0, 1, 2]


async def test_nothing_is_lost_or_doubled_through_moves(autojump_clock: MockClock) -> None:
    """Moved to a named broker, or to whoever the next lookup finds, or cut off."""
    count = 400
    config = Config(brokerDeduplicationEnabled=True)
    async with in_process(config, brokers=3) as inside, inside.client() as client:
        got: dict[bytes, int] = {}
        async with (
            client.subscribe("t", "s", initial_position=InitialPosition.Earliest) as consumer,
            client.create_producer("t", producer_name="p", batching_max_messages=5) as producer,
        ):

            async def receive() -> None:
                async for message in consumer:
                    got.setdefault(message.data(), len(got))
                    await consumer.acknowledge(message)
                    if len(got) == count:
                        return

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(receive)
                for n in range(count):
                    producer.send_nowait(b"%d" % n)
                    if n % 40 == 10:
                        await give(inside, TOPIC, n // 40 % 3)
                    if n % 40 == 20:
                        await give(inside, TOPIC, None)
                    if n % 120 == 30:
                        await inside.cut()
                    if n % 5 == 0:
                        await anyio.sleep(0.02)
                await producer.flush()
                tasks.cancel_scope.deadline = anyio.current_time() + 30
        assert list(got) == [b"%d" % n for n in range(count)]
        async with client.subscribe("t", "all", initial_position=InitialPosition.Earliest) as consumer:
            assert [(await consumer.receive()).data() for _ in range(count)] == [b"%d" % n for n in range(count)]
            with anyio.move_on_after(1):
                raise AssertionError(await consumer.receive())


async def test_a_broker_that_ends(autojump_clock: MockClock) -> None:
    """Its topics go to another, and with several addresses so do the questions."""
    async with in_process(brokers=3) as inside:
        async with inside.client("pulsar://here:6651,here:6650") as client, client.create_producer("t") as producer:
            await give(inside, TOPIC, 1)
            await producer.send(b"before")
            inside.bed.brokers[1].stop()
            inside.bed.broker.turn.finish()
            await producer.send(b"after")
            assert owner(inside) != 1
        async with inside.client() as client, client.create_reader("t", MessageId.earliest) as reader:
            assert [(await reader.read_next()).data() for _ in range(2)] == [b"before", b"after"]
