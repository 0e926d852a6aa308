"""Redelivery of messages that are negatively acknowledged, or not acknowledged in time."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import anyio
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from pulsarium.client import Consumer, ConsumerType, InitialPosition, Message, MultiplierRedeliveryBackoff, Producer
from pulsarium.client.errors import ConnectError, CryptoError
from tests.broker.wire import batch_of, plain
from tests.client.both import run_on
from tests.client.consumer.started import consuming, data_of, nothing_more, received, started

BACKOFF = MultiplierRedeliveryBackoff(min_delay=2, max_delay=10, multiplier=3)


shared = partial(consuming, consumer_type=ConsumerType.Shared)


async def test_a_backoff_goes_by_how_often_it_came(autojump_clock: MockClock) -> None:
    async with shared(negative_ack_redelivery_backoff=BACKOFF) as (_, wire, consumer):
        await wire.publish(plain(b"1"))
        waits = []
        (message,) = await received(consumer, 1)
        for _ in range(4):
            began = trio.current_time()
            consumer.negative_acknowledge(message)
            with anyio.fail_after(20):
                message = await consumer.receive()
            waits.append(trio.current_time() - began)
        assert waits == pytest.approx([2, 6, 10, 10], abs=0.01)
        assert message.redelivery_count() == 4
        began = trio.current_time()
        consumer.negative_acknowledge(message.message_id())  # a message id has no redelivery count
        await received(consumer, 1)
        assert trio.current_time() - began == pytest.approx(2, abs=0.01)


async def test_acknowledging_one_of_a_batch_leaves_the_others_refused(autojump_clock: MockClock) -> None:
    async with shared(negative_ack_redelivery_delay=1) as (_, wire, consumer):
        await wire.publish(batch_of(b"1", b"2"))
        first, second = await received(consumer, 2)
        consumer.negative_acknowledge(first)
        await consumer.acknowledge(second)
        assert await data_of(consumer, 2) == [b"1", b"2"]


@pytest.mark.parametrize("kind", ConsumerType)
async def test_messages_not_acknowledged_in_time_are_redelivered(autojump_clock: MockClock, kind: ConsumerType) -> None:
    async with shared(consumer_type=kind, unacked_messages_timeout=3) as (_, wire, consumer):
        await wire.publish(plain(b"1"), batch_of(b"2", b"3"), plain(b"4"), plain(b"5"))
        messages = await received(consumer, 4)  # the last message waits in the queue, without a timeout
        await consumer.acknowledge(messages[0])
        await consumer.acknowledge(messages[1])
        await consumer.acknowledge(messages[3])
        began = trio.current_time()
        await trio.sleep(3.01)  # the broker redelivers a whole batch
        again = await received(consumer, 3)
        in_order = kind in (ConsumerType.Exclusive, ConsumerType.Failover)
        assert {m.data() for m in again} == {b"2", b"3", b"5"}
        assert [m.redelivery_count() for m in again if m.data() == b"2"] == [0 if in_order else 1]
        await consumer.acknowledge(again)
        await nothing_more(consumer, 20)
        assert trio.current_time() > began + 20


async def test_cumulatively_acknowledged_messages_are_not_redelivered(autojump_clock: MockClock) -> None:
    async with shared(consumer_type=ConsumerType.Exclusive, unacked_messages_timeout=3) as (_, wire, consumer):
        await wire.publish(plain(b"1"), plain(b"2"), batch_of(b"3", b"4"))
        messages = await received(consumer, 4)
        await consumer.acknowledge_cumulative(messages[2])  # only up to the batch, without batch index acks
        assert await data_of(consumer, 2) == [b"3", b"4"]
        await consumer.acknowledge_cumulative(messages[3])
        await nothing_more(consumer, 10)


async def test_the_time_of_acknowledgements_backs_off_too(autojump_clock: MockClock) -> None:
    async with shared(ack_timeout_redelivery_backoff=BACKOFF) as (_, wire, consumer):
        await wire.publish(plain(b"1"))
        times = []
        for _ in range(4):
            with anyio.fail_after(20):
                await consumer.receive()
            times.append(trio.current_time())
        assert [b - a for a, b in itertools.pairwise(times)] == pytest.approx([2, 6, 10], abs=0.01)


async def test_messages_that_could_not_be_decrypted_are_redelivered(autojump_clock: MockClock) -> None:
    secret = plain(b"?", encryption_keys=[{"key": "k", "value": b"v"}], encryption_param=b"n" * 12)
    async with shared(unacked_messages_timeout=5) as (_, wire, consumer):
        await wire.publish(secret)
        began = trio.current_time()
        for number in range(3):
            with pytest.raises(CryptoError):
                await received(consumer, 1)
            assert trio.current_time() - began == pytest.approx(5 * number, abs=0.1)


async def test_refused_messages_do_not_run_late(autojump_clock: MockClock) -> None:
    async with shared(unacked_messages_timeout=2, negative_ack_redelivery_delay=7) as (_, wire, consumer):
        await wire.publish(plain(b"1"))
        (message,) = await received(consumer, 1)
        consumer.negative_acknowledge(message)
        await nothing_more(consumer, 6.9)
        assert [m.redelivery_count() for m in await received(consumer, 1)] == [1]


async def test_several_are_acknowledged_at_once(autojump_clock: MockClock) -> None:
    async with shared(ack_receipt_enabled=True) as (_, wire, consumer):
        await wire.publish(plain(b"1"), batch_of(b"2", b"3"), plain(b"4"))
        messages = await received(consumer, 4)
        await consumer.acknowledge([messages[0].message_id(), *messages[1:3]])
        await consumer.acknowledge([])
        await consumer.redeliver_unacknowledged_messages()
        assert await data_of(consumer, 1) == [b"4"]
        await nothing_more(consumer)


@pytest.mark.parametrize("time", [0, 5])
async def test_acknowledgements_are_grouped_by_time_and_size(autojump_clock: MockClock, time: float) -> None:
    async with shared(acknowledgement_group_time=time, max_acknowledgement_group_size=2) as (inside, wire, consumer):
        await wire.publish(plain(b"1"), plain(b"2"), plain(b"3"))
        messages = await received(consumer, 3)
        subscription = _unacked(inside)
        await consumer.acknowledge(messages[0])
        await trio.sleep(1)
        assert _unacked(inside) == subscription - (time == 0)
        await consumer.acknowledge(messages[1])
        await trio.sleep(1)
        assert _unacked(inside) == subscription - 2
        await consumer.acknowledge(messages[2])
        await trio.sleep(5)
        assert _unacked(inside) == 0


def _unacked(inside: Any) -> int:
    """Count the unacknowledged messages at the broker."""
    (topic,) = inside.bed.broker.topics.loaded.values()
    (subscription,) = topic.subscriptions.values()
    return sum(consumer.unacked for consumer in subscription.consumers)


# ---- Random histories of a consumer: each message arrives, and no acknowledged one is redelivered


Step = tuple[str, int]

STEPS = st.tuples(
    st.sampled_from(["publish", "batch", "receive", "receive", "ack", "ack", "nack", "sleep", "cut", "again"]),
    st.integers(0, 5),
)


@settings(max_examples=30)
@given(st.sampled_from(ConsumerType), st.booleans(), st.integers(0, 3), st.lists(STEPS, max_size=30))
def test_whatever_happens_nothing_is_lost_and_nothing_acknowledged_comes_again(
    kind: ConsumerType, by_index: bool, size: int, steps: list[Step]
) -> None:
    if size == 0:
        steps = [step for step in steps if step[0] != "batch"]
    run_on("trio", _play, kind, by_index, size, steps, jump=True)


async def _play(kind: ConsumerType, by_index: bool, size: int, steps: list[Step]) -> None:
    async with (
        started() as (inside, client),
        client.subscribe(
            "t",
            "s",
            consumer_type=kind,
            initial_position=InitialPosition.Earliest,
            receiver_queue_size=size,
            batch_index_ack_enabled=by_index,
            ack_receipt_enabled=True,
            unacked_messages_timeout=3,
            negative_ack_redelivery_delay=2,
        ) as consumer,
        client.create_producer("t") as producer,
    ):
        history = _History(consumer, producer)
        for what, number in steps:
            if what not in ("publish", "batch", "ack"):
                history.ask_again()
            if what == "cut":
                await inside.cut()
            else:
                await history.do(what, number)
        await history.end()


class _History:
    def __init__(self, consumer: Consumer, producer: Producer) -> None:
        self.consumer = consumer
        self.producer = producer
        self.published: set[bytes] = set()
        self.seen: set[bytes] = set()
        self.done: set[bytes] = set()
        self.held: list[Message] = []
        self.under_way: set[bytes] = set()

    async def do(self, what: str, number: int) -> None:
        held = self.held[number % len(self.held)] if self.held else None
        if what == "publish":
            await self.producer.send(self.new())
        elif what == "batch":
            for _ in range(3):
                self.producer.send_nowait(self.new())
            await self.producer.flush()
        elif what == "receive":
            with anyio.move_on_after(0.3):
                self.got(await self.consumer.receive())
        elif what == "sleep":
            await anyio.sleep(number)
        elif what == "again":
            await anyio.sleep(0.01)  # on Shared, messages on their way would come twice
            await self.consumer.redeliver_unacknowledged_messages()
        elif held is not None and what == "nack":
            self.consumer.negative_acknowledge(held)
        elif held is not None:
            await self.acknowledge(held)

    def ask_again(self) -> None:
        """Expect a redelivery of the messages that are not acknowledged.

        The caller cuts the connection or takes time, so an acknowledgement may arrive after the redelivery.
        """
        self.under_way |= {message.data() for message in self.held} - self.done

    def new(self) -> bytes:
        content = b"%d" % len(self.published)
        self.published.add(content)
        return content

    def got(self, message: Message) -> None:
        assert message.data() not in self.done - self.under_way
        self.under_way.discard(message.data())
        self.seen.add(message.data())
        self.held.append(message)

    async def acknowledge(self, message: Message) -> None:
        try:
            await self.consumer.acknowledge(message)
        except ConnectError:  # the acknowledgement may have arrived or not
            return
        if message.message_id().batch_index < 0:
            self.done.add(message.data())

    async def end(self) -> None:
        """Receive and acknowledge until no message is left, and check that all published messages were seen."""
        with anyio.move_on_after(60):
            while True:
                message = await self.consumer.receive()
                self.got(message)
                await self.acknowledge(message)
        assert self.seen == self.published
        await self.consumer.redeliver_unacknowledged_messages()
        with anyio.move_on_after(20):
            raise AssertionError(await self.consumer.receive())
        (part,) = self.consumer._parts.all
        assert part._redelivery.unacknowledged is not None
        assert (len(part._acknowledgements), len(part._redelivery.refused), len(part._redelivery.unacknowledged)) == (
            0,
            0,
            0,
        )
