"""Consumers, against our broker in this process."""

from __future__ import annotations

import anyio
import pytest
import trio
from trio.testing import MockClock

from pulsarium.client.consumer.options import ConsumerType, InitialPosition
from pulsarium.client.errors import AlreadyClosed, ConsumerBusy, InvalidConfiguration, InvalidTopicName
from pulsarium.client.message_id import MessageId
from pulsarium.proto import batch
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import TOPIC, batch_of, plain
from tests.client.consumer.started import data_of, nothing_more, received, started

Earliest = InitialPosition.Earliest


async def test_what_a_message_says_of_itself(autojump_clock: MockClock) -> None:
    single = pb.SingleMessageMetadata(
        partition_key="k", ordering_key=b"o\xff", event_time=5, sequence_id=9, null_value=True
    )
    single.properties.add(key="a", value="b")
    async with started() as (inside, client):
        wire = await inside.wire()
        async with client.subscribe("t", "s", initial_position=Earliest) as consumer:
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
        async with client.subscribe("t", "s") as consumer:  # only what was not acknowledged
            assert await data_of(consumer, 1) == [b"good"]


async def test_batch_index_acks_outlast_a_connection(autojump_clock: MockClock) -> None:
    async with started() as (inside, client):
        wire = await inside.wire()
        async with client.subscribe(
            "t", "s", initial_position=Earliest, batch_index_ack_enabled=True, ack_receipt_enabled=True
        ) as consumer:
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
    async with started() as (inside, client):
        wire = await inside.wire()
        async with client.subscribe(
            "t", "s", initial_position=Earliest, consumer_type=ConsumerType.Shared, negative_ack_redelivery_delay=5
        ) as consumer:
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
    async with started() as (inside, client):
        wire = await inside.wire()
        async with client.subscribe(
            "t", "s", initial_position=Earliest, consumer_type=ConsumerType.Shared, receiver_queue_size=10
        ) as consumer:
            await wire.publish(*[plain(b"%d" % i) for i in range(10)])
            assert await data_of(consumer, 3) == [b"0", b"1", b"2"]
            await consumer.redeliver_unacknowledged_messages()
            assert sorted(await data_of(consumer, 10)) == [b"%d" % i for i in range(10)]
            await nothing_more(consumer)


async def test_a_lost_connection_drops_what_waits_and_subscribes_again(autojump_clock: MockClock) -> None:
    async with started() as (inside, client):
        wire = await inside.wire()
        async with client.subscribe("t", "s", initial_position=Earliest, receiver_queue_size=3) as consumer:
            await wire.publish(*[plain(b"%d" % i) for i in range(9)])
            first, second = await received(consumer, 2)
            await consumer.acknowledge(first)
            await trio.testing.wait_all_tasks_blocked()
            await inside.cut()
            await consumer.acknowledge(second)  # waits for the next connection
            seen: list[bytes] = []
            while b"8" not in seen:  # with the second, where the acknowledgement came later than the subscription
                seen += await data_of(consumer, 1)
            assert [b"1", *seen][-8:] == [b"%d" % i for i in range(1, 9)]


async def test_acknowledgements_that_waited_go_out_with_the_next_connection(autojump_clock: MockClock) -> None:
    async with started() as (inside, client):
        wire = await inside.wire()
        async with client.subscribe("t", "s", initial_position=Earliest, receiver_queue_size=100) as consumer:
            await wire.publish(*[plain(b"%d" % i) for i in range(9)])
            for message in await received(consumer, 9):
                await consumer.acknowledge(message)
            await inside.cut()
            await nothing_more(consumer, 5)
            await wire.publish(plain(b"9"))
            assert await data_of(consumer, 1) == [b"9"]


async def test_one_that_is_given_up_while_it_opens_stays_nowhere(autojump_clock: MockClock) -> None:
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
        assert 10 < opened < 50  # so it was cancelled at every step before, too
        async with client.subscribe("t", "s"):  # Exclusive: nobody else is there
            pass


async def test_unloading_the_topic_is_not_noticed(autojump_clock: MockClock) -> None:
    async with started() as (inside, client):
        wire = await inside.wire()
        async with client.subscribe("t", "s", initial_position=Earliest, ack_receipt_enabled=True) as consumer:
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
        async with client.subscribe("t", "s") as consumer:  # nothing of the batch was left over
            await nothing_more(consumer)


async def test_two_seeks_at_once_happen_one_after_the_other(autojump_clock: MockClock) -> None:
    async with started() as (inside, client):
        wire = await inside.wire()
        async with client.subscribe("t", "s", initial_position=Earliest) as consumer:
            await wire.publish(plain(b"1"), plain(b"2"))
            first, second = await received(consumer, 2)
            with anyio.fail_after(10):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(consumer.seek, first.message_id())
                    tasks.start_soon(consumer.seek, MessageId.earliest)
            assert (await received(consumer, 1))[0].data() in (b"1", b"2")
            assert second.data() == b"2"


async def test_who_waits_when_it_is_closed_is_told(autojump_clock: MockClock) -> None:
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
