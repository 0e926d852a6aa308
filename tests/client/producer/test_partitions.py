"""Producers on partitioned topics, and a broker in one process."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import Any

import anyio
import pytest
from trio.testing import MockClock

from pulsarium.client import Client, HashingScheme, InitialPosition, MessageId, PartitionsRoutingMode, Producer, errors
from pulsarium.client.producer.router import hash_of
from tests.client.in_process import InProcess, in_process

TOPIC = "persistent://public/default/parts"


async def stored(client: Client, partition: int, count: int) -> list[bytes]:
    """Return the contents of one partition, which is a topic by itself."""
    topic = f"{TOPIC}-partition-{partition}"
    async with client.subscribe(topic, "look", initial_position=InitialPosition.Earliest) as consumer:
        return [(await consumer.receive()).data() for _ in range(count)]


def broker_side(inside: InProcess) -> list[tuple[str, str]]:
    """Return the topic and the name of each producer at the broker."""
    topics = inside.bed.broker.topics.loaded.values()
    return sorted((topic.name.local_name, one.name) for topic in topics for one in topic.producers.by_name.values())


async def test_messages_go_to_one_partition_after_the_other(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        inside.partitioned(TOPIC, 3)
        async with client.create_producer("parts") as producer:
            ids = [await producer.send(b"%d" % n) for n in range(9)]
            assert Counter(one.partition for one in ids) == {0: 3, 1: 3, 2: 3}
            assert producer.topic() == TOPIC
            assert producer.last_sequence_id() == 2
            assert producer.is_connected()
            names = broker_side(inside)
            assert [topic for topic, _ in names] == [f"parts-partition-{n}" for n in range(3)]
            assert {name for _, name in names} == {producer.producer_name()}
        for partition in range(3):
            own = [b"%d" % n for n, one in enumerate(ids) if one.partition == partition]
            assert await stored(client, partition, 3) == own
        assert broker_side(inside) == []


async def test_batches_go_to_one_partition_each(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        inside.partitioned(TOPIC, 3)
        async with client.create_producer("parts", batching_max_messages=4) as producer:
            receipts = [producer.send_nowait(b"%d" % n) for n in range(12)]
            ids = [await receipt.wait() for receipt in receipts]
        entries = [{(one.partition, one.entry) for one in ids[start : start + 4]} for start in (0, 4, 8)]
        assert [len(entry) for entry in entries] == [1, 1, 1]
        assert {partition for entry in entries for partition, _ in entry} == {0, 1, 2}


@pytest.mark.parametrize("scheme", HashingScheme)
async def test_keys_choose_partitions_by_their_hash(autojump_clock: MockClock, scheme: HashingScheme) -> None:
    async with in_process() as inside, inside.client() as client:
        inside.partitioned(TOPIC, 3)
        async with client.create_producer("parts", hashing_scheme=scheme) as producer:
            for key in map(str, range(10)):
                assert (await producer.send(b"", partition_key=key)).partition == hash_of(key, scheme) % 3


async def test_a_producer_takes_a_router_of_its_own(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        inside.partitioned(TOPIC, 3)
        async with client.create_producer(
            "parts",
            message_routing_mode=PartitionsRoutingMode.CustomPartition,
            message_router=lambda message, partitions: int(message.data()),
            max_pending_messages=1,
        ) as producer:
            assert [(await producer.send(b"%d" % n)).partition for n in (2, 0, 1)] == [2, 0, 1]
            for _ in range(2):  # a refused message is not pending
                with pytest.raises(errors.InvalidConfiguration):
                    await producer.send(b"3")


async def test_a_topic_of_one_partition_is_partitioned(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        inside.partitioned(TOPIC, 1)
        async with client.create_producer("parts") as producer:
            assert (await producer.send(b"x")).partition == 0


async def test_a_producer_finds_partitions_that_come_later(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        inside.partitioned(TOPIC, 2)
        async with client.create_producer("parts", auto_update_partitions_interval=10) as producer:
            inside.partitioned(TOPIC, 4)
            await anyio.sleep(9)
            assert {(await producer.send(b"x")).partition for _ in range(8)} == {0, 1}
            await anyio.sleep(2)
            assert {(await producer.send(b"x")).partition for _ in range(8)} == {0, 1, 2, 3}
            assert len({name for _, name in broker_side(inside)}) == 1
        with pytest.raises(errors.AlreadyClosed):
            await producer.send(b"x")


async def test_partitions_that_could_not_be_counted_are_looked_for_again(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> int:
        raise errors.ConnectError("cut")

    async with in_process() as inside, inside.client() as client:
        inside.partitioned(TOPIC, 1)
        async with client.create_producer("parts", auto_update_partitions_interval=10) as producer:
            with monkeypatch.context() as patch:
                patch.setattr(client._core.brokers, "partitions", fail)
                await anyio.sleep(11)
            inside.partitioned(TOPIC, 2)
            await anyio.sleep(11)
            assert {(await producer.send(b"x")).partition for _ in range(4)} == {0, 1}


async def test_a_producer_is_closed_while_its_partitions_are_counted(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(*_: object, **__: object) -> int:
        await anyio.sleep_forever()
        raise AssertionError

    async with in_process() as inside, inside.client() as client:
        inside.partitioned(TOPIC, 1)
        async with client.create_producer("parts", auto_update_partitions_interval=10) as producer:
            monkeypatch.setattr(client._core.brokers, "partitions", hang)
            await anyio.sleep(11)
            await producer.send(b"x")
        assert broker_side(inside) == []


async def test_all_partitions_or_none(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        inside.partitioned(TOPIC, 3)
        async with client.create_producer(f"{TOPIC}-partition-1", producer_name="mine"):
            with pytest.raises(errors.ProducerBusy):
                async with client.create_producer("parts", producer_name="mine"):
                    pass
            await anyio.sleep(1)
            assert broker_side(inside) == [("parts-partition-1", "mine")]


async def test_each_partition_has_its_share_of_pending_messages(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        inside.partitioned(TOPIC, 3)
        most = {"max_pending_messages": 4, "max_pending_messages_across_partitions": 8}
        async with client.create_producer("parts", **most, batching_enabled=False) as producer:  # type: ignore[arg-type]
            for _ in range(6):  # two messages in each partition
                producer.send_nowait(b"")
            with pytest.raises(errors.ProducerQueueIsFull):
                producer.send_nowait(b"")
            await anyio.sleep(1)
            receipt = producer.send_nowait(b"")
            await producer.flush()
            assert isinstance(await receipt.wait(), MessageId)


async def test_nothing_is_sent_before_it_is_open(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        producer: Producer = client.create_producer("parts", max_pending_messages=1)
        for _ in range(2):
            with pytest.raises(errors.AlreadyClosed):
                producer.send_nowait(b"")


async def test_everything_arrives_in_order_in_each_partition_when_connections_break(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        inside.partitioned(TOPIC, 3)
        async with client.create_producer("parts", batching_max_messages=5) as producer:
            receipts = []
            for n in range(200):
                receipts.append(producer.send_nowait(b"%d" % n, partition_key=str(n % 7)))
                if n % 60 == 30:
                    await inside.cut()
                if n % 10 == 0:
                    await anyio.sleep(0.02)
            ids = [await receipt.wait() for receipt in receipts]
        for partition in range(3):
            own = [n for n, one in enumerate(ids) if one.partition == partition]
            assert [ids[n] for n in own] == sorted(ids[n] for n in own)
        async with client.subscribe("parts", "s", initial_position=InitialPosition.Earliest) as consumer:
            first: dict[bytes, None] = {}
            with anyio.move_on_after(1):
                while True:
                    first.setdefault((await consumer.receive()).data())
        assert set(first) == {b"%d" % n for n in range(200)}


async def test_one_partition_that_ends_takes_no_other_with_it(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        inside.partitioned(TOPIC, 3)
        async with client.create_producer("parts", batching_max_publish_delay=5) as producer:
            topic: Any = inside.bed.topic(f"{TOPIC}-partition-0")
            topic.terminate()
            inside.bed.broker.turn.finish()
            receipts = {}
            for key in map(str, range(30)):
                partition = hash_of(key, HashingScheme.JavaStringHash) % 3
                try:
                    receipts[partition] = producer.send_nowait(b"", partition_key=key)
                except errors.TopicTerminated:
                    assert partition == 0
            with suppress(errors.TopicTerminated):
                await producer.flush()
            for partition in (1, 2):
                assert (await receipts[partition].wait()).partition == partition
        if 0 in receipts:
            with pytest.raises(errors.PulsarError):
                await receipts[0].wait()
