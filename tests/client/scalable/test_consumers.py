"""Tests of the consumers of scalable topics, against a played broker: segments, acknowledgements and assignments.

Tests of the positions that one acknowledgement covers.
"""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from pulsarium.client import Checkpoint, InitialPosition, MessageId
from pulsarium.client.errors import AlreadyClosed, AuthorizationError
from pulsarium.client.scalable.deliveries import Deliveries
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.both import on_both
from tests.client.scalable.layouts import MERGED, ONE, SPLIT, TOPIC, dag, segment_name
from tests.client.scalable.played import PlayedBroker, played

WHOLE, LOW, HIGH, AGAIN = map(segment_name, ("0000-ffff-0", "0000-7fff-1", "8000-ffff-2", "0000-ffff-3"))


def assignment(epoch: int, *segments: tuple[int, str], buckets: tuple[tuple[int, int], ...] = ()) -> Any:
    made = pb.ScalableConsumerAssignment(layout_epoch=epoch)
    for number, topic in segments:
        one = made.segments.add(segment_id=number, hash_start=0, hash_end=0xFFFF, segment_topic=topic)
        for start, end in buckets:
            one.bucket_ranges.add(start=start, end=end)
    return made


def topics(broker: PlayedBroker) -> list[str]:
    return [one.topic for one in broker.opened]


# ---- queue


@on_both
async def test_a_queue_consumer_reads_all_segments_shared() -> None:
    async with played(SPLIT) as (broker, client), client.scalable.subscribe_queue(TOPIC, "s") as queue:
        assert sorted(topics(broker)) == sorted([WHOLE, LOW, HIGH])
        assert {one.subType for one in broker.opened} == {pb.CommandSubscribe.Shared}
        await broker.deliver(HIGH, 5, b"here")
        message = await queue.receive()
        assert (message.data(), message.topic_name(), message.segment_id()) == (b"here", TOPIC, 2)
        await queue.acknowledge(message)
        await broker.until(lambda: bool(broker.acks))
        assert [(one.ledgerId, one.entryId) for one in broker.acks[0].message_id] == [(1, 5)]


@on_both
async def test_a_queue_consumer_reads_a_younger_segment_from_its_first_message() -> None:
    async with played(ONE) as (broker, client), client.scalable.subscribe_queue(TOPIC, "s"):
        await broker.change(SPLIT)
        await broker.until(lambda: len(broker.opened) == 3)
        assert [one.initialPosition for one in broker.opened] == [
            InitialPosition.Latest.value,
            InitialPosition.Earliest.value,
            InitialPosition.Earliest.value,
        ]


@on_both
async def test_a_queue_consumer_leaves_a_segment_that_is_gone() -> None:
    async with played(SPLIT) as (broker, client), client.scalable.subscribe_queue(TOPIC, "s"):
        await broker.push(dag(2, *SPLIT.segments[1:]))
        await broker.until(lambda: len(broker.closed_consumers) == 1)


@on_both
async def test_a_sealed_segment_that_is_gone_already_does_not_fail_the_consumer() -> None:
    async with played(SPLIT) as (broker, client):
        broker.refusals[WHOLE] = pb.TopicNotFound
        async with client.scalable.subscribe_queue(TOPIC, "s") as queue:
            await broker.deliver(LOW, 0, b"x")
            assert (await queue.receive()).data() == b"x"


@on_both
async def test_a_refused_segment_fails_the_opening() -> None:
    async with played(SPLIT) as (broker, client):
        broker.refusals[LOW] = pb.AuthorizationError
        with pytest.raises(AuthorizationError):
            async with client.scalable.subscribe_queue(TOPIC, "s"):
                pass


@on_both
async def test_a_closed_consumer_receives_nothing() -> None:
    async with played(ONE) as (_, client):
        async with client.scalable.subscribe_queue(TOPIC, "s") as queue:
            pass
        with pytest.raises(AlreadyClosed):
            await queue.receive()


# ---- stream


@on_both
async def test_a_stream_consumer_reads_what_the_controller_assigns() -> None:
    async with played(SPLIT) as (broker, client):
        broker.assignment = assignment(1, (1, LOW))
        async with client.scalable.subscribe_stream(TOPIC, "s", consumer_name="me") as stream:
            (asked,) = broker.subscribed
            assert (asked.topic, asked.subscription, asked.consumer_name) == (TOPIC, "s", "me")
            assert asked.consumer_type == pb.STREAM
            assert [(one.topic, one.subType) for one in broker.opened] == [(LOW, pb.CommandSubscribe.Exclusive)]
            await broker.assign(assignment(1, (1, LOW), (2, HIGH)))
            await broker.until(lambda: HIGH in topics(broker))
            assert stream.segment_ids() == [1, 2]
        assert broker.left == [asked.consumer_id]


@on_both
async def test_an_acknowledgement_covers_all_segments() -> None:
    async with played(SPLIT) as (broker, client):
        broker.assignment = assignment(1, (1, LOW), (2, HIGH))
        async with client.scalable.subscribe_stream(TOPIC, "s", ack_receipt_enabled=True) as stream:
            messages = []
            for topic, entry_id in ((LOW, 0), (HIGH, 7), (LOW, 1), (HIGH, 8)):
                await broker.deliver(topic, entry_id, b"")
                messages.append(await stream.receive())
            await stream.acknowledge_cumulative(messages[2])
            assert sorted(one.message_id[0].entryId for one in broker.acks) == [1, 7]
            assert {one.ack_type for one in broker.acks} == {pb.CommandAck.Cumulative}


@on_both
async def test_a_segment_that_is_taken_away_is_left_when_its_messages_are_acknowledged() -> None:
    async with played(SPLIT) as (broker, client):
        broker.assignment = assignment(1, (1, LOW), (2, HIGH))
        async with client.scalable.subscribe_stream(TOPIC, "s", ack_receipt_enabled=True) as stream:
            await broker.deliver(HIGH, 0, b"")
            message = await stream.receive()
            await broker.assign(assignment(1, (1, LOW)))
            await broker.deliver(LOW, 0, b"next")
            assert (await stream.receive()).data() == b"next"
            assert not broker.closed_consumers
            await stream.acknowledge_cumulative(message)
            await broker.until(lambda: len(broker.closed_consumers) == 1)


@on_both
async def test_an_older_assignment_is_ignored() -> None:
    async with played(SPLIT) as (broker, client):
        broker.assignment = assignment(5, (1, LOW))
        async with client.scalable.subscribe_stream(TOPIC, "s") as stream:
            await broker.assign(assignment(4, (2, HIGH)))
            await broker.assign(assignment(5, (1, LOW)))
            await broker.deliver(LOW, 0, b"")
            await stream.receive()
            assert stream.segment_ids() == [1]
            assert topics(broker) == [LOW]


@on_both
async def test_an_assignment_of_no_topic_is_ignored() -> None:
    async with played(SPLIT) as (broker, client):
        broker.assignment = assignment(1, (1, LOW))
        async with client.scalable.subscribe_stream(TOPIC, "s") as stream:
            await broker.assign(assignment(2, (2, "x://y/z")))
            await broker.deliver(LOW, 0, b"")
            await stream.receive()
            assert stream.segment_ids() == [1]


@on_both
async def test_a_consumer_registers_again_when_the_controller_has_moved() -> None:
    async with played(dag(0, *ONE.segments, controller="pulsar://b:6650")) as (broker, client):
        broker.assignment = assignment(0, (0, WHOLE))
        async with client.scalable.subscribe_stream(TOPIC, "s"):
            await broker.push(dag(0, *ONE.segments, controller="pulsar://c:6650"))
            await broker.until(lambda: len(broker.subscribed) == 2)
            assert [str(address) for address in broker.dialled] == ["a:6650", "b:6650", "c:6650"]


@on_both
async def test_a_shared_segment_is_read_by_buckets_and_acknowledged_message_by_message() -> None:
    ranges = ((0, 0x7FFF), (0x8000, 0xFFFF))
    async with played(ONE) as (broker, client):
        broker.assignment = assignment(0, (0, WHOLE), buckets=ranges)
        async with client.scalable.subscribe_stream(TOPIC, "s", ack_receipt_enabled=True) as stream:
            (opened,) = broker.opened
            assert opened.subType == pb.CommandSubscribe.Key_Shared
            meta = opened.keySharedMeta
            assert (meta.keySharedMode, meta.entryBucketDispatch) == (pb.STICKY, True)
            assert tuple((one.start, one.end) for one in meta.hashRanges) == ranges
            for entry_id in range(3):
                await broker.deliver(WHOLE, entry_id, b"")
            messages = [await stream.receive() for _ in range(3)]
            await stream.acknowledge_cumulative(messages[1])
            (ack,) = broker.acks
            assert ack.ack_type == pb.CommandAck.Individual
            assert sorted(one.entryId for one in ack.message_id) == [0, 1]


@on_both
async def test_a_segment_that_is_no_more_shared_is_opened_again_when_it_is_drained() -> None:
    async with played(ONE) as (broker, client):
        broker.assignment = assignment(0, (0, WHOLE), buckets=((0, 0xFFFF),))
        async with client.scalable.subscribe_stream(TOPIC, "s", ack_receipt_enabled=True) as stream:
            await broker.deliver(WHOLE, 0, b"")
            message = await stream.receive()
            await broker.assign(assignment(0, (0, WHOLE)))
            await stream.acknowledge_cumulative(message)
            await broker.until(lambda: len(broker.opened) == 2)
            assert broker.opened[1].subType == pb.CommandSubscribe.Exclusive


@on_both
async def test_a_lost_registration_is_made_again_under_the_same_name() -> None:
    async with played(ONE, starting_backoff_interval=0.001) as (broker, client):
        broker.assignment = assignment(0, (0, WHOLE))
        async with client.scalable.subscribe_stream(TOPIC, "s") as stream:
            await broker.cut()
            await broker.until(lambda: len(broker.subscribed) == 2 and len(broker.opened) == 2)
            assert len({one.consumer_name for one in broker.subscribed}) == 1
            await broker.deliver(WHOLE, 0, b"again")
            assert (await stream.receive()).data() == b"again"


@on_both
async def test_the_controller_of_the_layout_is_asked() -> None:
    with_controller = dag(0, *ONE.segments, controller="pulsar://b:6650")
    async with played(with_controller) as (broker, client), client.scalable.subscribe_stream(TOPIC, "s"):
        assert [str(address) for address in broker.dialled] == ["a:6650", "b:6650"]


@on_both
async def test_a_client_does_not_say_goodbye_to_m1_which_would_close_the_connection() -> None:
    async with played(ONE, {"server_version": "Pulsar Server5.0.0-M1"}) as (broker, client):
        async with client.scalable.subscribe_stream(TOPIC, "s"):
            pass
        assert not broker.left


# ---- checkpoints


@on_both
async def test_a_child_is_read_when_its_parent_has_been_read_to_its_end() -> None:
    async with played(SPLIT) as (broker, client):
        consumer = client.scalable.create_checkpoint_consumer(TOPIC, Checkpoint.earliest)
        async with consumer:
            assert topics(broker) == [WHOLE]
            await broker.deliver(WHOLE, 0, b"parent")
            await broker.end(WHOLE)
            assert (await consumer.receive()).data() == b"parent"
            await broker.until(lambda: len(broker.opened) == 3)
            await broker.deliver(LOW, 0, b"child")
            assert (await consumer.receive()).data() == b"child"


@on_both
async def test_a_checkpoint_continues_in_each_segment_behind_its_last_message() -> None:
    async with played(SPLIT) as (broker, client):
        start = Checkpoint.at({1: MessageId(1, 4), 2: MessageId(1, 9)})
        async with client.scalable.create_checkpoint_consumer(TOPIC, start) as consumer:
            starts = {one.topic: (one.start_message_id.ledgerId, one.start_message_id.entryId) for one in broker.opened}
            assert starts == {LOW: (1, 4), HIGH: (1, 9)}
            assert not any(one.durable for one in broker.opened)
            assert consumer.checkpoint() == start
            await broker.deliver(LOW, 5, b"")
            await consumer.receive()
            assert consumer.checkpoint() == Checkpoint.at({1: MessageId(1, 5), 2: MessageId(1, 9)})


@on_both
async def test_a_group_reads_only_its_assigned_segments() -> None:
    async with played(SPLIT) as (broker, client):
        broker.assignment = assignment(1, (2, HIGH))
        started = client.scalable.create_checkpoint_consumer(TOPIC, Checkpoint.earliest, group="g")
        async with started:
            assert [(one.subscription, one.consumer_type) for one in broker.subscribed] == [("g", pb.CHECKPOINT)]
            assert topics(broker) == [HIGH]


@on_both
async def test_a_merged_segment_waits_for_both_its_parents() -> None:
    async with played(SPLIT) as (broker, client):
        start = Checkpoint.at({1: MessageId.earliest, 2: MessageId.earliest})
        async with client.scalable.create_checkpoint_consumer(TOPIC, start):
            await broker.change(MERGED)
            await broker.end(LOW)
            await broker.until(lambda: len(broker.closed_consumers) == 1)
            assert AGAIN not in topics(broker)
            await broker.end(HIGH)
            await broker.until(lambda: AGAIN in topics(broker))


@on_both
async def test_a_canceled_receive_loses_no_message() -> None:
    async with played(ONE) as (broker, client), client.scalable.subscribe_queue(TOPIC, "s") as queue:
        with anyio.move_on_after(0):
            await queue.receive()
        await broker.deliver(WHOLE, 0, b"x")
        assert (await queue.receive()).data() == b"x"


def test_an_acknowledgement_covers_what_was_delivered_before_it_in_all_segments() -> None:
    deliveries = Deliveries()
    deliveries.add("a", MessageId(1, 0))
    deliveries.add("b", MessageId(2, 0))
    number = deliveries.add("a", MessageId(1, 1))
    deliveries.add("b", MessageId(2, 1))
    assert deliveries.through(number) == {"a": [MessageId(1, 0), MessageId(1, 1)], "b": [MessageId(2, 0)]}


def test_a_segment_is_drained_when_all_its_deliveries_are_acknowledged() -> None:
    deliveries = Deliveries()
    first, last = deliveries.add("a", MessageId(1, 0)), deliveries.add("a", MessageId(1, 1))
    deliveries.done(first, "a")
    assert "a" in deliveries
    deliveries.done(last, "a")
    assert "a" not in deliveries


def test_a_redelivered_message_does_not_turn_a_position_back() -> None:
    deliveries = Deliveries()
    deliveries.add("a", MessageId(1, 5))
    number = deliveries.add("a", MessageId(1, 4))
    assert deliveries.through(number)["a"][-1] == MessageId(1, 5)
