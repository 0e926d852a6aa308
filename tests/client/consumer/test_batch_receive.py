"""Several messages at once."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
import trio
from trio.testing import MockClock

from pulsarium.client.client import Client
from pulsarium.client.consumer.consumer import Consumer
from pulsarium.client.consumer.options import InitialPosition
from pulsarium.client.consumer.policies import ConsumerBatchReceivePolicy
from pulsarium.client.errors import AlreadyClosed, CryptoError, InvalidConfiguration
from tests.broker.wire import batch_of, plain
from tests.client.consumer.started import data_of, nothing_more, started


def subscribed(client: Client, policy: ConsumerBatchReceivePolicy, **options: Any) -> Consumer[bytes]:
    return client.subscribe("t", "s", initial_position=InitialPosition.Earliest, batch_receive_policy=policy, **options)


async def batch(consumer: Consumer[bytes]) -> list[bytes]:
    with anyio.fail_after(60):
        return [message.data() for message in await consumer.batch_receive()]


async def test_up_to_a_number_or_a_time(autojump_clock: MockClock) -> None:
    async with started() as (inside, client):
        wire = await inside.wire()
        async with subscribed(client, ConsumerBatchReceivePolicy(3, 0, 5)) as consumer:
            await wire.publish(plain(b"1"), batch_of(b"2", b"3", b"4"), plain(b"5"))
            began = trio.current_time()
            assert await batch(consumer) == [b"1", b"2", b"3"]
            assert trio.current_time() - began < 1
            assert await batch(consumer) == [b"4", b"5"]
            assert trio.current_time() - began == pytest.approx(5, abs=0.1)
            assert await batch(consumer) == []
            assert trio.current_time() - began == pytest.approx(10, abs=0.1)


async def test_up_to_a_number_of_bytes(autojump_clock: MockClock) -> None:
    async with started() as (inside, client):
        wire = await inside.wire()
        async with subscribed(client, ConsumerBatchReceivePolicy(0, 10, 0)) as consumer:
            await wire.publish(plain(b"1234"), plain(b"56789"), plain(b"ab"), plain(b"c" * 50), plain(b"d" * 10))
            assert await batch(consumer) == [b"1234", b"56789"]
            assert await batch(consumer) == [b"ab"]
            assert await batch(consumer) == [b"c" * 50]
            assert await batch(consumer) == [b"d" * 10]
            with anyio.move_on_after(50):  # for ever, without a timeout
                raise AssertionError(await consumer.batch_receive())


async def test_a_full_queue_is_enough(autojump_clock: MockClock) -> None:
    """Also when some were received of it, and the broker does not know yet that there is room."""
    async with started() as (inside, client):
        wire = await inside.wire()
        policy = ConsumerBatchReceivePolicy(0, 10**6, 0)
        async with subscribed(client, policy, receiver_queue_size=10) as consumer:
            await wire.publish(*[plain(b"%d" % number) for number in range(33)])
            assert await data_of(consumer, 3) == [b"0", b"1", b"2"]
            for first in (3, 13, 23):
                assert await batch(consumer) == [b"%d" % number for number in range(first, first + 10)]


async def test_the_queue_is_as_big_as_the_number(autojump_clock: MockClock) -> None:
    async with started() as (inside, client):
        wire = await inside.wire()
        async with subscribed(client, ConsumerBatchReceivePolicy(50, 0, 0), receiver_queue_size=10) as consumer:
            await wire.publish(*[plain(b"%d" % number) for number in range(100)])
            assert [len(await batch(consumer)), len(await batch(consumer))] == [50, 50]


async def test_cancelling_loses_nothing(autojump_clock: MockClock) -> None:
    async with started() as (inside, client):
        wire = await inside.wire()
        async with subscribed(client, ConsumerBatchReceivePolicy(3, 0, 0)) as consumer:
            await wire.publish(plain(b"1"), plain(b"2"))
            with anyio.move_on_after(1):
                await consumer.batch_receive()
            await wire.publish(plain(b"3"))
            assert await batch(consumer) == [b"1", b"2", b"3"]


async def test_several_topics_and_what_cannot_be_read(autojump_clock: MockClock) -> None:
    secret = plain(b"?", encryption_keys=[{"key": "k", "value": b"v"}], encryption_param=b"n" * 12)
    async with started() as (inside, client):
        wire = await inside.wire()
        policy = ConsumerBatchReceivePolicy(5, 0, 1)
        async with (
            client.subscribe(
                ["t", "u"], "s", initial_position=InitialPosition.Earliest, batch_receive_policy=policy
            ) as consumer,
            client.create_producer("u") as other,
        ):
            for _ in range(3):
                await other.send(b"u")
            await wire.publish(plain(b"t"), plain(b"t"))
            assert sorted(await batch(consumer)) == [b"t", b"t", b"u", b"u", b"u"]
            await wire.publish(plain(b"1"), secret, plain(b"2"))
            assert await batch(consumer) == [b"1"]
            with pytest.raises(CryptoError):
                await batch(consumer)
            assert await batch(consumer) == [b"2"]


async def test_the_end_and_what_makes_no_sense(autojump_clock: MockClock) -> None:
    async with started() as (_, client):
        consumer = subscribed(client, ConsumerBatchReceivePolicy(1, 0, 0))
        async with consumer, anyio.create_task_group() as tasks:

            async def wait() -> None:
                with pytest.raises(AlreadyClosed):
                    await consumer.batch_receive()

            tasks.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            await consumer.aclose()
        async with client.subscribe("t", "s", receiver_queue_size=0) as consumer:
            with pytest.raises(InvalidConfiguration, match="receiver_queue_size"):
                await consumer.batch_receive()
            await nothing_more(consumer)
