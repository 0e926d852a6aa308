"""Consumers: messages one by one and several at once, and their end."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest
import trio
from trio.testing import MockClock

from pulsarium.client.client import Client
from pulsarium.client.consumer.consumer import Consumer
from pulsarium.client.consumer.interceptors import ConsumerInterceptor
from pulsarium.client.consumer.options import ConsumerType, InitialPosition
from pulsarium.client.consumer.policies import ConsumerBatchReceivePolicy, ConsumerDeadLetterPolicy
from pulsarium.client.errors import AlreadyClosed, ConsumerBusy, CryptoError, InvalidConfiguration, InvalidTopicName
from pulsarium.client.message_id import MessageId
from pulsarium.proto import batch
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import TOPIC, batch_of, plain
from tests.client.consumer.started import consuming, data_of, nothing_more, received, started
from tests.client.hostile.clocks import on_both
from tests.client.hostile.played import deliver, playing, silence, subscribed
from tests.client.peer import Peer, Type

Earliest = InitialPosition.Earliest


async def test_a_message_tells_its_metadata(autojump_clock: MockClock) -> None:
    single = pb.SingleMessageMetadata(
        partition_key="k", ordering_key=b"o\xff", event_time=5, sequence_id=9, null_value=True
    )
    single.properties.add(key="a", value="b")
    async with consuming() as (_, wire, consumer):
        await wire.publish(
            plain(b"x", partition_key="p", event_time=3, properties=[{"key": "c", "value": "d"}], publish_time=7),
            plain(batch.pack([(single, b"")]), num_messages_in_batch=1, sequence_id=8),
        )
        first, second = await received(consumer, 2)
        assert (first.partition_key(), first.properties(), first.event_timestamp()) == ("p", {"c": "d"}, 3)
        assert (first.publish_timestamp(), first.producer_name(), first.sequence_id()) == (7, "p", 0)
        assert (first.value(), first.has_null_value(), first.ordering_key()) == (b"x", False, "")
        assert (second.partition_key(), second.properties(), second.event_timestamp()) == ("k", {"a": "b"}, 5)
        assert (second.ordering_key(), second.sequence_id(), second.has_null_value()) == ("o\udcff", 9, True)


async def test_an_entry_nobody_can_read_is_given_up(autojump_clock: MockClock) -> None:
    async with started() as (inside, client):
        wire = await inside.wire()
        async with client.subscribe("t", "s", initial_position=Earliest, receiver_queue_size=2) as consumer:
            broken = plain(b"no batch", num_messages_in_batch=3)
            await wire.publish(*[broken] * 5, plain(b"good"))
            assert await data_of(consumer, 1) == [b"good"]
        async with client.subscribe("t", "s") as consumer:  # receives only unacknowledged messages
            assert await data_of(consumer, 1) == [b"good"]


async def test_batch_index_acks_outlast_a_connection(autojump_clock: MockClock) -> None:
    async with consuming(batch_index_ack_enabled=True, ack_receipt_enabled=True) as (inside, wire, consumer):
        await wire.publish(batch_of(*[b"%d" % i for i in range(70)]))
        for message in await received(consumer, 70):
            if message.message_id().batch_index not in (3, 66):
                await consumer.acknowledge(message)
        await inside.cut()
        last = await received(consumer, 2)
        assert [message.data() for message in last] == [b"3", b"66"]
        for message in last:
            await consumer.acknowledge(message.message_id())
        await inside.cut()
        await nothing_more(consumer)


async def test_negative_acknowledgement_on_shared_is_for_one_entry(autojump_clock: MockClock) -> None:
    async with consuming(consumer_type=ConsumerType.Shared, negative_ack_redelivery_delay=5) as (_, wire, consumer):
        await wire.publish(plain(b"1"), batch_of(b"2", b"3"), plain(b"4"))
        messages = await received(consumer, 4)
        consumer.negative_acknowledge(messages[1])
        consumer.negative_acknowledge(messages[3])
        await consumer.acknowledge(messages[3])
        began = trio.current_time()
        again = await received(consumer, 2)
        assert [message.data() for message in again] == [b"2", b"3"]
        assert [message.redelivery_count() for message in again] == [1, 1]
        assert trio.current_time() - began == pytest.approx(5)
        await nothing_more(consumer, 20)
        consumer.negative_acknowledge(again[0].message_id())  # once more, after the task has ended
        assert await data_of(consumer, 2) == [b"2", b"3"]


async def test_redelivery_drops_what_waits(autojump_clock: MockClock) -> None:
    async with consuming(consumer_type=ConsumerType.Shared, receiver_queue_size=10) as (_, wire, consumer):
        await wire.publish(*[plain(b"%d" % i) for i in range(10)])
        assert await data_of(consumer, 3) == [b"0", b"1", b"2"]
        await consumer.redeliver_unacknowledged_messages()
        assert sorted(await data_of(consumer, 10)) == [b"%d" % i for i in range(10)]
        await nothing_more(consumer)


async def test_a_lost_connection_drops_what_waits_and_subscribes_again(autojump_clock: MockClock) -> None:
    async with consuming(receiver_queue_size=3) as (inside, wire, consumer):
        await wire.publish(*[plain(b"%d" % i) for i in range(9)])
        first, second = await received(consumer, 2)
        await consumer.acknowledge(first)
        await trio.testing.wait_all_tasks_blocked()
        await inside.cut()
        await consumer.acknowledge(second)  # the acknowledgement waits for the next connection
        seen: list[bytes] = []
        while b"8" not in seen:  # the broker redelivers b"1" if its acknowledgement came late
            seen += await data_of(consumer, 1)
        assert [b"1", *seen][-8:] == [b"%d" % i for i in range(1, 9)]


async def test_acknowledgements_that_waited_go_out_with_the_next_connection(autojump_clock: MockClock) -> None:
    async with consuming(receiver_queue_size=100) as (inside, wire, consumer):
        await wire.publish(*[plain(b"%d" % i) for i in range(9)])
        for message in await received(consumer, 9):
            await consumer.acknowledge(message)
        await inside.cut()
        await nothing_more(consumer, 5)
        await wire.publish(plain(b"9"))
        assert await data_of(consumer, 1) == [b"9"]


async def test_a_consumer_that_is_given_up_while_it_opens_leaves_nothing_behind(autojump_clock: MockClock) -> None:
    async with started() as (_, client):
        opened = 0

        async def give_up(scope: anyio.CancelScope) -> None:
            nonlocal opened
            with scope:
                async with client.subscribe("t", "s"):
                    opened += 1
                    await anyio.sleep_forever()

        for steps in range(60):
            async with anyio.create_task_group() as tasks:
                scope = anyio.CancelScope()
                tasks.start_soon(give_up, scope)
                for _ in range(steps):
                    await anyio.lowlevel.checkpoint()
                scope.cancel()
        assert 10 < opened < 50  # so some rounds were canceled at each earlier step
        async with client.subscribe("t", "s"):  # Exclusive: no other consumer is connected
            pass


async def test_unloading_the_topic_is_not_noticed(autojump_clock: MockClock) -> None:
    async with consuming(ack_receipt_enabled=True) as (inside, wire, consumer):
        await wire.publish(plain(b"1"))
        (message,) = await received(consumer, 1)
        await consumer.acknowledge(message)
        consumer.negative_acknowledge(message)
        inside.bed.broker.topics.unload(TopicName.parse(TOPIC))
        await (await inside.wire()).publish(plain(b"2"))
        assert await data_of(consumer, 1) == [b"2"]


@pytest.mark.parametrize("inclusive", [False, True])
async def test_seek_to_a_message(autojump_clock: MockClock, inclusive: bool) -> None:
    async with started() as (inside, client):
        wire = await inside.wire()
        async with client.subscribe(
            "t", "s", initial_position=Earliest, start_message_id_inclusive=inclusive, ack_receipt_enabled=True
        ) as consumer:
            await wire.publish(plain(b"1"), batch_of(b"2", b"3", b"4"), plain(b"5"))
            messages = await received(consumer, 5)
            await consumer.acknowledge_cumulative(messages[4])
            await consumer.seek(messages[0].message_id())
            rest = [message.data() for message in messages]
            assert await data_of(consumer, 5 - (not inclusive)) == rest[not inclusive :]
            await consumer.seek(messages[2].message_id())
            again = await received(consumer, 3 - (not inclusive))
            assert [message.data() for message in again] == rest[3 - inclusive :]
            for message in again:
                await consumer.acknowledge(message)
            await nothing_more(consumer)
        async with client.subscribe("t", "s") as consumer:  # the whole batch is acknowledged
            await nothing_more(consumer)


async def test_two_seeks_at_once_happen_one_after_the_other(autojump_clock: MockClock) -> None:
    async with consuming() as (_, wire, consumer):
        await wire.publish(plain(b"1"), plain(b"2"))
        first, second = await received(consumer, 2)
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(consumer.seek, first.message_id())
                tasks.start_soon(consumer.seek, MessageId.earliest)
        assert (await received(consumer, 1))[0].data() in (b"1", b"2")
        assert second.data() == b"2"


async def test_receive_fails_when_the_consumer_is_closed(autojump_clock: MockClock) -> None:
    async with started() as (_, client), client.subscribe("t", "s") as consumer:
        async with anyio.create_task_group() as tasks:

            async def wait() -> None:
                with pytest.raises(AlreadyClosed):
                    await consumer.receive()

            tasks.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            await consumer.aclose()
        with pytest.raises(AlreadyClosed):
            await consumer.acknowledge(MessageId(1, 1))


async def test_refusals_are_raised_when_it_is_opened(autojump_clock: MockClock) -> None:
    async with started() as (_, client), client.subscribe("t", "s"):
        with pytest.raises(ConsumerBusy):
            async with client.subscribe("t", "s"):
                pass
        with pytest.raises(InvalidTopicName):
            client.subscribe("persistent://a", "s")
        with pytest.raises(InvalidConfiguration, match="receiver_queue_size"):
            client.subscribe("t", "s", receiver_queue_size=-1)


@on_both
async def test_opening_tells_the_broker_what_a_consumer_is() -> None:
    options: dict[str, Any] = {
        "consumer_type": ConsumerType.Shared,
        "consumer_name": "me",
        "properties": {"a": "b"},
        "priority_level": 2,
    }
    async with playing() as (played, client), client.subscribe("t", "s", **options):
        asked = await played.sent(Type.SUBSCRIBE)
        assert (asked.subscription, asked.subType, asked.consumer_name) == ("s", pb.CommandSubscribe.Shared, "me")
        assert [(each.key, each.value) for each in asked.metadata] == [("a", "b")]
        assert asked.priority_level == 2


async def test_the_active_consumer_of_a_failover_subscription_knows_that_it_is(autojump_clock: MockClock) -> None:
    kind = ConsumerType.Failover
    async with (
        started() as (_, client),
        client.subscribe("t", "s", consumer_type=kind) as one,
        client.subscribe("t", "s", consumer_type=kind) as other,
    ):
        await anyio.sleep(5)  # the broker waits before it changes the active consumer
        active, waiting = (one, other) if one.is_active() else (other, one)
        assert (active.is_active(), waiting.is_active()) == (True, False)
        await active.aclose()
        await anyio.sleep(5)
        assert waiting.is_active() is True


# ---- Several messages at once


def batching(client: Client, policy: ConsumerBatchReceivePolicy, **options: Any) -> Consumer[bytes]:
    return client.subscribe("t", "s", initial_position=InitialPosition.Earliest, batch_receive_policy=policy, **options)


async def next_batch(consumer: Consumer[bytes]) -> list[bytes]:
    with anyio.fail_after(60):
        return [message.data() for message in await consumer.batch_receive()]


async def test_up_to_a_number_or_a_time(autojump_clock: MockClock) -> None:
    async with started() as (inside, client):
        wire = await inside.wire()
        async with batching(client, ConsumerBatchReceivePolicy(3, 0, 5)) as consumer:
            await wire.publish(plain(b"1"), batch_of(b"2", b"3", b"4"), plain(b"5"))
            began = trio.current_time()
            assert await next_batch(consumer) == [b"1", b"2", b"3"]
            assert trio.current_time() - began < 1
            assert await next_batch(consumer) == [b"4", b"5"]
            assert trio.current_time() - began == pytest.approx(5, abs=0.1)
            assert await next_batch(consumer) == []
            assert trio.current_time() - began == pytest.approx(10, abs=0.1)


async def test_up_to_a_number_of_bytes(autojump_clock: MockClock) -> None:
    async with started() as (inside, client):
        wire = await inside.wire()
        async with batching(client, ConsumerBatchReceivePolicy(0, 10, 0)) as consumer:
            await wire.publish(plain(b"1234"), plain(b"56789"), plain(b"ab"), plain(b"c" * 50), plain(b"d" * 10))
            assert await next_batch(consumer) == [b"1234", b"56789"]
            assert await next_batch(consumer) == [b"ab"]
            assert await next_batch(consumer) == [b"c" * 50]
            assert await next_batch(consumer) == [b"d" * 10]
            with anyio.move_on_after(50):  # the call waits for ever, because the policy has no timeout
                raise AssertionError(await consumer.batch_receive())


async def test_a_full_queue_is_enough(autojump_clock: MockClock) -> None:
    """The batch is complete also when the application has received some messages, and the permits are not sent yet."""
    async with started() as (inside, client):
        wire = await inside.wire()
        policy = ConsumerBatchReceivePolicy(0, 10**6, 0)
        async with batching(client, policy, receiver_queue_size=10) as consumer:
            await wire.publish(*[plain(b"%d" % number) for number in range(33)])
            assert await data_of(consumer, 3) == [b"0", b"1", b"2"]
            for first in (3, 13, 23):
                assert await next_batch(consumer) == [b"%d" % number for number in range(first, first + 10)]


async def test_the_queue_is_as_big_as_the_number(autojump_clock: MockClock) -> None:
    async with started() as (inside, client):
        wire = await inside.wire()
        async with batching(client, ConsumerBatchReceivePolicy(50, 0, 0), receiver_queue_size=10) as consumer:
            await wire.publish(*[plain(b"%d" % number) for number in range(100)])
            assert [len(await next_batch(consumer)), len(await next_batch(consumer))] == [50, 50]


async def test_cancelling_batch_receive_loses_nothing(autojump_clock: MockClock) -> None:
    async with started() as (inside, client):
        wire = await inside.wire()
        async with batching(client, ConsumerBatchReceivePolicy(3, 0, 0)) as consumer:
            await wire.publish(plain(b"1"), plain(b"2"))
            with anyio.move_on_after(1):
                await consumer.batch_receive()
            await wire.publish(plain(b"3"))
            assert await next_batch(consumer) == [b"1", b"2", b"3"]


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
            assert sorted(await next_batch(consumer)) == [b"t", b"t", b"u", b"u", b"u"]
            await wire.publish(plain(b"1"), secret, plain(b"2"))
            assert await next_batch(consumer) == [b"1"]
            with pytest.raises(CryptoError):
                await next_batch(consumer)
            assert await next_batch(consumer) == [b"2"]


async def test_the_end_and_what_makes_no_sense(autojump_clock: MockClock) -> None:
    async with started() as (_, client):
        consumer = batching(client, ConsumerBatchReceivePolicy(1, 0, 0))
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


# ---- Consumers that are closed or canceled during other calls


class Hears(ConsumerInterceptor):
    def __init__(self) -> None:
        self.heard: list[Any] = []

    def on_acknowledge(self, consumer: Consumer[Any], message_id: MessageId, error: Exception | None) -> None:
        self.heard.append(error)

    def close(self) -> None:
        self.heard.append("closed")


async def turns() -> None:
    for _ in range(30):
        await anyio.lowlevel.checkpoint()


@on_both
async def test_a_consumer_that_is_thrown_out_while_it_unsubscribes_does_not_come_back() -> None:
    async with subscribed(operation_timeout=5.0) as (played, peer, consumer):
        played.on[Type.UNSUBSCRIBE] = silence

        async def throw_out() -> None:
            unsubscribe = await played.sent(Type.UNSUBSCRIBE)
            assert unsubscribe.force
            await peer.say(Type.CLOSE_CONSUMER, consumer_id=0, request_id=2**64 - 1)
            await anyio.sleep(0.1)  # longer than the backoff
            await peer.say(Type.SUCCESS, request_id=unsubscribe.request_id)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(throw_out)
            await consumer.unsubscribe(force=True)
        await anyio.sleep(0.05)
        assert played.count(Type.SUBSCRIBE) == 1


@on_both
async def test_interceptors_hear_nothing_of_a_canceled_acknowledgement() -> None:
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
    """The interceptors and the producers of letters are closed too."""
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
    """`playing` checks that the client leaves nothing open."""
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
    """The client does not wait for the answers to CLOSE_CONSUMER of the topics that have opened."""
    async with playing(operation_timeout=10.0) as (played, client):

        async def subscribe(peer: Peer, body: pb.CommandSubscribe) -> None:
            if body.topic.endswith("a"):
                await played.answer(peer, body)

        played.on[Type.SUBSCRIBE] = subscribe
        played.on[Type.CLOSE_CONSUMER] = silence

        async def subscribe_to_both() -> None:
            async with client.subscribe(["a", "b"], "s"):
                pass

        with anyio.fail_after(1):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(subscribe_to_both)
                await played.sent(Type.SUBSCRIBE, 2)
                await played.sent(Type.FLOW)
                tasks.cancel_scope.cancel()
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
