"""Permits: with a queue, without one, and while paused."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from pulsarium.client import Client, Consumer, ConsumerType, InitialPosition, Producer
from pulsarium.client.consumer.flow import OnDemand, Permits
from pulsarium.client.errors import AlreadyClosed, InvalidConfiguration, InvalidMessage
from tests.broker.wire import TOPIC, batch_of, plain
from tests.client.consumer.started import data_of, nothing_more, received, started, terminate
from tests.client.in_process import InProcess


@given(st.integers(1, 20), st.lists(st.integers(0, 5)))
def test_permits_go_back_by_halves_and_none_is_lost(size: int, freed: list[int]) -> None:
    permits = Permits(size)
    assert permits.opened() == size
    given = 0
    for index, count in enumerate(freed, 1):
        now = permits.free(count)
        assert now == 0 or now >= max(1, size // 2)
        given += now
        assert sum(freed[:index]) - given < max(1, size // 2)
    assert given + permits.rest() == sum(freed)
    assert permits.rest() == 0


def test_a_new_connection_begins_with_all() -> None:
    permits = Permits(10)
    permits.opened()
    assert permits.free(4) == 0
    assert permits.opened() == 10
    assert permits.free(4) == 0
    assert permits.free(1) == 5


def test_a_wider_queue_asks_for_its_new_room() -> None:
    permits = Permits(10)
    permits.opened()
    assert permits.widen(100) == 90
    assert permits.free(49) == 0
    assert permits.free(1) == 50


def test_no_permits_are_given_while_paused() -> None:
    permits = Permits(4, paused=True)
    assert permits.opened() == 0
    assert permits.resume() == 4
    permits.pause()
    assert (permits.free(1), permits.free(1), permits.rest(), permits.opened()) == (0, 0, 0, 0)
    assert permits.resume() == 4
    permits.pause()
    assert permits.free(1) == 0
    assert permits.resume() == 0  # too few permits for a FLOW
    assert permits.free(1) == 2


def test_without_a_queue_one_for_each_who_waits() -> None:
    permits = OnDemand()
    assert permits.opened() == 0
    assert permits.wait() == 1
    assert permits.wait() == 1
    permits.waited()  # the first caller has a message, whose permit is freed when the caller takes it
    assert permits.free(1) == 0
    permits.waited()  # the second caller was canceled
    assert permits.wait() == 0  # the third caller uses the permit of the second
    assert permits.free(1) == 1  # the entry had no message to deliver
    assert permits.opened() == 1  # on another connection
    permits.waited()
    assert permits.opened() == 0


def test_without_a_queue_none_while_paused() -> None:
    permits = OnDemand(paused=True)
    assert (permits.opened(), permits.wait(), permits.wait()) == (0, 0, 0)
    assert permits.resume() == 2


@given(st.lists(st.sampled_from(["wait", "got", "cancelled", "nothing", "open"])))
def test_without_a_queue_there_are_never_more_permits_than_were_waited_for(steps: list[str]) -> None:
    permits = OnDemand()
    permits.opened()
    waiting = held = most = 0
    for step in steps:
        if step == "wait":
            waiting += 1
            held += permits.wait()
        elif step == "open":
            held = permits.opened()
        elif step == "nothing" and held:
            held += permits.free(1) - 1
        elif step in ("got", "cancelled") and waiting:
            waiting -= 1
            permits.waited()
            if step == "got" and held:
                held += permits.free(1) - 1
        most = max(most, waiting)
        assert waiting <= held <= most


# ---- Without a queue, and while paused: the consumer sends only the permits that it needs


def unqueued(client: Client, **options: Any) -> Consumer[bytes]:
    options = {"consumer_type": ConsumerType.Shared, "receiver_queue_size": 0, **options}
    return client.subscribe("t", "s", initial_position=InitialPosition.Earliest, **options)


def permits(inside: InProcess) -> list[int]:
    """Return the permits of each consumer at the broker."""
    (subscription,) = inside.bed.topic().subscriptions.values()
    return [consumer.permits for consumer in subscription.consumers]


async def test_each_gets_what_it_asks_for(autojump_clock: MockClock) -> None:
    async with started() as (inside, client):
        wire = await inside.wire()
        await wire.publish(*[plain(b"%d" % number) for number in range(6)])
        async with unqueued(client) as slow, unqueued(client) as fast:
            assert await data_of(slow, 1) == [b"0"]
            assert await data_of(fast, 4) == [b"1", b"2", b"3", b"4"]
            assert permits(inside) == [0, 0]
            assert await data_of(slow, 1) == [b"5"]


async def test_a_cancelled_call_leaves_its_permit_to_the_next(autojump_clock: MockClock) -> None:
    async with started() as (inside, client):
        wire = await inside.wire()
        async with unqueued(client) as consumer:
            for _ in range(5):
                await nothing_more(consumer)
                assert permits(inside) == [1]
            await wire.publish(plain(b"1"), plain(b"2"))
            await trio.sleep(1)
            assert await data_of(consumer, 1) == [b"1"]
            await trio.testing.wait_all_tasks_blocked()
            assert permits(inside) == [0]
            assert await data_of(consumer, 1) == [b"2"]


async def test_several_wait_and_the_connection_breaks(autojump_clock: MockClock) -> None:
    async with started() as (inside, client):
        wire = await inside.wire()
        async with unqueued(client) as consumer:
            got: list[bytes] = []

            async def one() -> None:
                (message,) = await received(consumer, 1)
                got.append(message.data())
                await consumer.acknowledge(message)

            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(one)
                await trio.testing.wait_all_tasks_blocked()
                assert permits(inside) == [3]
                await wire.publish(plain(b"1"))
                await trio.sleep(0.1)
                await inside.cut()
                await trio.sleep(2)
                assert permits(inside) == [2]
                await wire.publish(plain(b"2"), plain(b"3"), plain(b"4"))
            assert got == [b"1", b"2", b"3"]
            assert permits(inside) == [0]


async def test_a_consumer_without_a_queue_reads_a_topic_to_its_end(autojump_clock: MockClock) -> None:
    async with started() as (inside, client):
        wire = await inside.wire()
        async with unqueued(client, consumer_type=ConsumerType.Exclusive, unacked_messages_timeout=5) as consumer:
            broken = plain(b"?", compression=1, uncompressed_size=5)
            await wire.publish(plain(b"1"), broken, broken, plain(b"2"))
            terminate(inside, TOPIC)
            seen = []
            with anyio.fail_after(10):
                async for message in consumer:
                    seen.append(message.data())
                    await consumer.acknowledge(message)
            assert seen == [b"1", b"2"]


async def test_a_batch_ends_it_and_goes_to_another(autojump_clock: MockClock) -> None:
    async with started() as (inside, client):
        wire = await inside.wire()
        async with unqueued(client) as consumer:
            (where,) = await wire.publish(batch_of(b"1"))
            for _ in range(2):
                with pytest.raises(InvalidMessage, match=rf"\({where[0]},{where[1]},.*batch"):
                    await received(consumer, 1)
            async with unqueued(client, receiver_queue_size=1) as other:
                (message,) = await received(other, 1)
                assert message.data() == b"1"
                await other.acknowledge(message)
            with pytest.raises(AlreadyClosed):
                await consumer.acknowledge(message)
        with pytest.raises(AlreadyClosed):
            await consumer.receive()


async def test_a_consumer_without_a_queue_refuses_batch_receive(autojump_clock: MockClock) -> None:
    async with started() as (_, client), unqueued(client) as consumer:
        with pytest.raises(InvalidConfiguration, match="needs a queue"):
            await consumer.batch_receive()


async def test_a_queue_of_none_is_refused_for_partitions(autojump_clock: MockClock) -> None:
    async with started() as (inside, client):
        inside.partitioned(TOPIC, 1)
        with pytest.raises(InvalidConfiguration, match="partitions"):
            async with unqueued(client):
                pass
        async with client.subscribe(f"{TOPIC}-partition-0", "s", receiver_queue_size=0) as consumer:
            await nothing_more(consumer)


@pytest.mark.parametrize("size", [0, 4])
async def test_paused_from_the_start(autojump_clock: MockClock, size: int) -> None:
    async with started() as (inside, client):
        wire = await inside.wire()
        await wire.publish(plain(b"1"), plain(b"2"))
        async with unqueued(client, receiver_queue_size=size, start_paused=True) as consumer:
            await nothing_more(consumer)
            await inside.cut()
            await nothing_more(consumer)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(trio.sleep, 1)
                consumer.resume()
                assert await data_of(consumer, 2) == [b"1", b"2"]


async def test_a_consumer_paused_in_between_receives_only_what_was_here(autojump_clock: MockClock) -> None:
    async with (
        started() as (_, client),
        client.create_producer("t", batching_enabled=False) as producer,
        unqueued(client, receiver_queue_size=4) as consumer,
    ):
        await _send(producer, 8)
        assert await data_of(consumer, 1) == [b"0"]
        consumer.pause()
        assert await data_of(consumer, 3) == [b"1", b"2", b"3"]  # the messages in the queue
        await nothing_more(consumer)
        consumer.resume()
        assert await data_of(consumer, 4) == [b"4", b"5", b"6", b"7"]


async def _send(producer: Producer[bytes], count: int) -> None:
    for number in range(count):
        await producer.send(b"%d" % number)
    await trio.testing.wait_all_tasks_blocked()
