"""Consumers that are closed, or given up, while something is under way."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from pulsarium.client.consumer.consumer import Consumer
from pulsarium.client.consumer.interceptors import ConsumerInterceptor
from pulsarium.client.consumer.options import ConsumerType
from pulsarium.client.consumer.policies import ConsumerDeadLetterPolicy
from pulsarium.client.errors import AlreadyClosed
from pulsarium.client.message_id import MessageId
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import plain
from tests.client.hostile.clocks import on_both
from tests.client.hostile.played import playing, silence, subscribed
from tests.client.peer import Peer, Type


class Hears(ConsumerInterceptor):
    """What it is told."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def on_acknowledge(self, consumer: Consumer[Any], message_id: MessageId, error: Exception | None) -> None:
        self.heard.append(error)

    def close(self) -> None:
        self.heard.append("closed")


async def deliver(peer: Peer, entry: int = 1, **fields: Any) -> None:
    where = pb.MessageIdData(ledgerId=7, entryId=entry)
    await peer.say(Type.MESSAGE, plain(b"x"), consumer_id=0, message_id=where, **fields)


async def turns() -> None:
    for _ in range(30):
        await anyio.lowlevel.checkpoint()


@on_both
async def test_a_consumer_that_is_thrown_out_while_it_unsubscribes_does_not_come_back() -> None:
    async with subscribed(operation_timeout=5.0) as (played, peer, consumer):
        played.on[Type.UNSUBSCRIBE] = silence

        async def throw_out() -> None:
            unsubscribe = await played.sent(Type.UNSUBSCRIBE)
            await peer.say(Type.CLOSE_CONSUMER, consumer_id=0, request_id=2**64 - 1)
            await anyio.sleep(0.1)  # longer than the backoff
            await peer.say(Type.SUCCESS, request_id=unsubscribe.request_id)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(throw_out)
            await consumer.unsubscribe(force=True)
        await anyio.sleep(0.05)
        assert played.count(Type.SUBSCRIBE) == 1


@on_both
async def test_nobody_hears_that_a_cancelled_acknowledgement_is_done() -> None:
    interceptor = Hears()
    async with subscribed(interceptors=[interceptor], ack_receipt_enabled=True) as (played, peer, consumer):
        played.on[Type.ACK] = silence
        await deliver(peer)
        message = await consumer.receive()
        with anyio.move_on_after(0.02):
            await consumer.acknowledge(message)
        assert interceptor.heard == []


@on_both
async def test_cancelled_while_it_is_closed() -> None:
    """Everything ends all the same, also the interceptors and the producers of letters."""
    interceptor = Hears()
    options: dict[str, Any] = {
        "consumer_type": ConsumerType.Shared,
        "dead_letter_policy": ConsumerDeadLetterPolicy(1, "dead"),
        "retry_enable": True,
        "interceptors": [interceptor],
    }
    async with playing() as (played, client):
        consumer = client.subscribe("t", "s", **options)
        await consumer.__aenter__()
        await played.sent(Type.FLOW, 2)
        await deliver(played.connections[0])
        await consumer.reconsume_later(await consumer.receive(), 1)
        played.on[Type.CLOSE_CONSUMER] = played.on[Type.CLOSE_PRODUCER] = silence
        with anyio.move_on_after(0.02) as scope:
            await consumer.aclose()
        assert scope.cancelled_caught
        await turns()
        assert played.count(Type.CLOSE_CONSUMER) == 2
        assert interceptor.heard[-1:] == ["closed"]


@on_both
async def test_closed_while_the_producer_of_letters_is_opened() -> None:
    """Nothing of it is left (`playing`)."""
    async with playing() as (played, client):
        consumer = client.subscribe("t", "s", consumer_type=ConsumerType.Shared, retry_enable=True)
        await consumer.__aenter__()
        await played.sent(Type.FLOW, 2)
        await deliver(played.connections[0])
        message = await consumer.receive()

        async def later() -> None:
            with pytest.raises(AlreadyClosed):
                await consumer.reconsume_later(message, 1)

        played.on[Type.PRODUCER] = silence
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(later)
            producer = await played.sent(Type.PRODUCER)
            await consumer.aclose()
            await played.answer(played.connections[0], producer)


@on_both
async def test_given_up_while_one_of_its_topics_does_not_open() -> None:
    """It does not wait for the answers of those that did."""
    async with playing(operation_timeout=10.0) as (played, client):

        async def subscribe(peer: Peer, body: pb.CommandSubscribe) -> None:
            if body.topic.endswith("a"):
                await played.answer(peer, body)

        played.on[Type.SUBSCRIBE] = subscribe
        played.on[Type.CLOSE_CONSUMER] = silence

        async def subscribe_to_both() -> None:
            async with client.subscribe(["a", "b"], "s"):
                pass

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(subscribe_to_both)
            await played.sent(Type.SUBSCRIBE, 2)
            await played.sent(Type.FLOW)
            tasks.cancel_scope.cancel()
            start = anyio.current_time()
        assert anyio.current_time() - start < 1  # of the test's clock
        await turns()
        assert played.count(Type.CLOSE_CONSUMER) == 2


@on_both
async def test_nothing_is_asked_for_again_after_the_end() -> None:
    async with playing() as (played, client):
        played.on[Type.CLOSE_CONSUMER] = silence
        async with client.subscribe(
            "t", "s", consumer_type=ConsumerType.Shared, negative_ack_redelivery_delay=0.01
        ) as consumer:
            await played.sent(Type.FLOW)
            await deliver(played.connections[0])
            message = await consumer.receive()
            consumer.negative_acknowledge(message)
        assert played.count(Type.CLOSE_CONSUMER) == 1
        assert played.count(Type.REDELIVER_UNACKNOWLEDGED_MESSAGES) == 0
        with pytest.raises(AlreadyClosed):
            consumer.negative_acknowledge(message)
