"""SEEK and GET_LAST_MESSAGE_ID."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.model.ledger.position import Position
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.held import HeldStorage
from tests.broker.wire import (
    TOPIC,
    Bed,
    Earliest,
    Exclusive,
    Failover,
    Shared,
    Type,
    Wire,
    batch_of,
    message_id,
    plain,
    position_of,
    serving,
)

LOOSE = "non-persistent://public/default/t"
NOWHERE = Position(-1, -1)


@pytest.fixture
async def five(bed: Bed) -> list[Position]:
    """Publish messages with the publish times 1000, 2000, ..., 5000, and return their positions."""
    sender = await bed.connect()
    await sender.producer()
    return await sender.publish(*[plain(b"%d" % i, publish_time=(i + 1) * 1000) for i in range(5)])


async def seek(wire: Wire, within: float = 10, **fields: Any) -> None:
    """Seek the connection's only consumer. The broker closes the consumer before it answers."""
    await wire.write(wire.numbered(Type.SEEK, consumer_id=0, **fields))
    closed = await wire.expect(Type.CLOSE_CONSUMER, within)
    assert (closed.consumer_id, closed.request_id) == (0, 2**64 - 1)
    assert (await wire.expect(Type.SUCCESS)).request_id == wire.requests


async def reads(wire: Wire, positions: list[Position], type: int = Exclusive, **fields: Any) -> None:
    """Subscribe again, and expect messages at these positions and no others."""
    await wire.subscribe(type=type, **fields)
    await wire.flow()
    if type == Failover:
        await wire.expect(Type.ACTIVE_CONSUMER_CHANGE)
    assert [message.position for message in await wire.messages(len(positions))] == positions
    await wire.quiet()


# SEEK


@pytest.mark.req("B-34")
@pytest.mark.parametrize("type", [Exclusive, Shared, Failover])
async def test_seeking_by_id(wire: Wire, five: list[Position], type: int) -> None:
    await reads(wire, five, type, initialPosition=Earliest)
    await wire.ack(*five)
    last = Position(2**63 - 1, 2**63 - 1)
    beyond = Position(five[0].ledger_id, 99)
    for target, first in [(five[2], 2), (five[0], 0), (NOWHERE, 0), (last, 5), (five[4], 4), (beyond, 5), (five[1], 1)]:
        await seek(wire, message_id=message_id(target))
        await reads(wire, five[first:], type)


@pytest.mark.req("B-34", "B-50")
async def test_seeking_over_ledgers(bed: Bed, wire: Wire, five: list[Position]) -> None:
    sender = await bed.connect()
    bed.broker.topics.unload(TopicName.parse(TOPIC))
    await sender.producer()
    positions = five + await sender.publish(plain(b"5"), plain(b"6"))
    between = Position(five[0].ledger_id, 99)
    await reads(wire, positions, initialPosition=Earliest)
    for target, first in [(five[4], 4), (between, 5), (positions[5], 5), (positions[6], 6), (NOWHERE, 0)]:
        await seek(wire, message_id=message_id(target))
        await reads(wire, positions[first:])


@pytest.mark.req("B-34")
@pytest.mark.parametrize("time", [0, 999, 1000, 1001, 3000, 4999, 5000, 5001, 2**63 - 1, -1, -60_000, -(2**63)])
async def test_seeking_by_time(wire: Wire, five: list[Position], time: int) -> None:
    """Times before 1970 count too: official clients send `reader.seek(-60000)` like this."""
    await wire.subscribe()
    await seek(wire, message_publish_time=time % 2**64)
    await reads(wire, [position for i, position in enumerate(five) if (i + 1) * 1000 >= time])


@pytest.mark.req("B-34")
@pytest.mark.parametrize(("time", "first"), [(-4, 1), (0, 2), (1000, 2), (1001, 3)])
async def test_messages_of_a_negative_time_are_older_than_all_others(
    bed: Bed, wire: Wire, time: int, first: int
) -> None:
    sender = await bed.connect()
    await sender.producer()
    times = (-5, -3, 1000)
    positions = await sender.publish(*[plain(b"x", publish_time=each % 2**64) for each in times])
    await wire.subscribe()
    await seek(wire, message_publish_time=time % 2**64)
    await reads(wire, positions[first:])


@pytest.mark.req("B-34")
async def test_seeking_by_the_brokers_own_time(autojump_clock: object) -> None:
    stamped = ("org.apache.pulsar.common.intercept.AppendBrokerTimestampMetadataInterceptor",)
    async with serving(Config(brokerEntryMetadataInterceptors=stamped)) as bed:
        wire = await bed.connect()
        await wire.producer()
        await wire.subscribe()
        times, positions = [], []
        for _ in range(4):
            positions += await wire.publish(plain(b"x", publish_time=1))
            times.append(bed.broker.clock.now_ms())
            await wire.quiet(1)
        for index, time in enumerate(times):
            await seek(wire, message_publish_time=time)
            await reads(wire, positions[index:])
        await seek(wire, message_publish_time=1)
        await reads(wire, positions)


@pytest.mark.req("B-34")
async def test_seeking_by_time_over_what_has_none(bed: Bed, wire: Wire) -> None:
    sender = await bed.connect()
    await sender.producer()
    await sender.publish(b"\0\0\0\3xyz", plain(b"a", publish_time=1000))
    await wire.subscribe()
    for time in (1, 1000):
        await seek(wire, message_publish_time=time)
        await wire.subscribe()
        await wire.flow()
        assert (await wire.message()).payload == b"a"


@pytest.mark.req("B-34")
async def test_seeking_into_a_batch(bed: Bed, wire: Wire) -> None:
    sender = await bed.connect()
    await sender.producer()
    (position,) = await sender.publish(batch_of(b"a", b"b", b"c"))
    await wire.subscribe()
    await seek(wire, message_id=message_id(position, batch_index=1, ack_set=[0b110]))
    await wire.subscribe()
    await wire.flow()
    message = await wire.message()
    assert (message.position, list(message.command.ack_set)) == (position, [0b110])
    await seek(wire, message_id=message_id(position))
    await wire.subscribe()
    await wire.flow()
    assert (await wire.message()).command.ack_set == []


@pytest.mark.req("B-34")
async def test_every_consumer_of_the_subscription_is_closed(bed: Bed, wire: Wire, five: list[Position]) -> None:
    other, stranger = await bed.connect(), await bed.connect()
    for consumer in (wire, other):
        await consumer.subscribe(type=Shared)
    await stranger.subscribe(name="another")
    await seek(wire, message_id=message_id(five[0]))
    await other.expect(Type.CLOSE_CONSUMER)
    await stranger.quiet()
    await reads(other, five, Shared)


@pytest.mark.req("B-34")
async def test_seeking_forgets_what_was_acknowledged_and_owed(bed: Bed, wire: Wire, five: list[Position]) -> None:
    await reads(wire, five, Shared, initialPosition=Earliest)
    await wire.ack(five[1], five[3])
    await wire.redeliver([five[2]])
    await wire.message()
    await seek(wire, message_id=message_id(five[1]))
    await wire.subscribe(type=Shared)
    await wire.flow()
    messages = await wire.messages(4)
    assert [message.position for message in messages] == five[1:]
    assert [message.redelivery_count for message in messages] == [0] * 4
    stats = await wire.ask(Type.CONSUMER_STATS, consumer_id=0)
    assert (stats.unackedMessages, stats.msgBacklog) == (4, 4)


@pytest.mark.req("B-34")
async def test_a_second_seek_right_behind_the_first(wire: Wire, five: list[Position]) -> None:
    await wire.subscribe()
    await wire.write(b"".join(wire.numbered(Type.SEEK, consumer_id=0, message_id=message_id(five[i])) for i in (1, 3)))
    closed, refused, done = [(await wire.next()).command for _ in range(3)]
    assert closed.type == Type.CLOSE_CONSUMER
    assert (refused.error.request_id, refused.error.error) == (3, pb.UnknownError)
    assert refused.error.message == "Error when resetting subscription: Failed to fence subscription"
    assert done.success.request_id == 2
    await reads(wire, five[1:])


@pytest.mark.req("B-34", "B-14")
async def test_a_reader_comes_back_where_it_sought(wire: Wire, five: list[Position]) -> None:
    await reads(wire, five[3:], durable=False, start_message_id=message_id(five[3]))
    await seek(wire, message_id=message_id(five[1]))
    await reads(wire, five[1:], durable=False, start_message_id=message_id(five[4]))
    await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    await reads(wire, five[4:], durable=False, start_message_id=message_id(five[4]))


@pytest.mark.req("B-34")
async def test_a_seek_to_nowhere(wire: Wire) -> None:
    await wire.subscribe()
    code, text = await wire.refused(Type.SEEK, consumer_id=0)
    assert (code, text) == (pb.MetadataError, "Message id and message publish time were not present")
    assert await wire.refused(Type.SEEK, consumer_id=7) == (code, text)
    code, text = await wire.refused(Type.SEEK, consumer_id=7, message_publish_time=1)
    assert (code, text) == (pb.MetadataError, "Consumer not found")


@pytest.mark.req("B-34", "B-37")
async def test_a_loose_subscription_does_not_move(wire: Wire) -> None:
    await wire.subscribe(LOOSE)
    await wire.ask(Type.SEEK, consumer_id=0, message_publish_time=1)
    await wire.flow()
    await wire.alive()


@pytest.mark.req("B-34", "B-13")
async def test_a_seek_is_answered_when_it_is_kept(autojump_clock: object) -> None:
    store = HeldStorage()
    async with serving(storage=store) as bed:
        wire, other = await bed.connect(), await bed.connect()
        await wire.producer(producer_id=1)
        positions = await wire.publish(plain(b"a"), plain(b"b"), producer_id=1)
        await wire.subscribe()
        store.holding = True
        await wire.write(wire.numbered(Type.SEEK, consumer_id=0, message_id=message_id(positions[0])))
        await wire.expect(Type.CLOSE_CONSUMER)
        await wire.quiet()
        code, text = await other.refused(
            Type.SUBSCRIBE, topic=TOPIC, subscription="sub", subType=Exclusive, consumer_id=0
        )
        assert (code, text) == (pb.ServiceNotReady, "Subscription is fenced")
        store.release()
        await wire.expect(Type.SUCCESS)
        await reads(wire, positions)
    async with serving(storage=store) as bed:
        await reads(await bed.connect(), positions)


# GET_LAST_MESSAGE_ID


async def last(wire: Wire, consumer_id: int = 0) -> pb.CommandGetLastMessageIdResponse:
    found: pb.CommandGetLastMessageIdResponse = await wire.ask(Type.GET_LAST_MESSAGE_ID, consumer_id=consumer_id)
    return found


@pytest.mark.req("B-35")
async def test_the_last_message(bed: Bed, wire: Wire) -> None:
    sender = await bed.connect()
    await sender.producer()
    await wire.subscribe()
    found = await last(wire)
    assert position_of(found.last_message_id) == NOWHERE
    assert (found.last_message_id.batch_index, found.last_message_id.partition) == (-1, -1)
    (first,) = await sender.publish(plain(b"a"))
    found = await last(wire)
    assert (position_of(found.last_message_id), found.last_message_id.batch_index) == (first, -1)
    assert position_of(found.consumer_mark_delete_position) == Position(first.ledger_id, -1)
    (second,) = await sender.publish(batch_of(b"b", b"c", b"d"))
    await wire.ack(first)
    found = await last(wire)
    assert (position_of(found.last_message_id), found.last_message_id.batch_index) == (second, 2)
    assert position_of(found.consumer_mark_delete_position) == first
    await sender.publish(batch_of(b"e"))
    assert (await last(wire)).last_message_id.batch_index == 0


@pytest.mark.req("B-35", "B-36")
async def test_the_last_message_of_a_partition(bed: Bed, wire: Wire) -> None:
    bed.broker.topics.create_partitions(TopicName.parse(TOPIC), 2)
    await wire.subscribe(f"{TOPIC}-partition-1")
    assert (await last(wire)).last_message_id.partition == 1


@pytest.mark.req("B-35", "B-50")
async def test_the_last_message_after_an_unload(bed: Bed, wire: Wire, five: list[Position]) -> None:
    bed.broker.topics.unload(TopicName.parse(TOPIC))
    await wire.subscribe()
    assert position_of((await last(wire)).last_message_id) == five[4]


@pytest.mark.req("B-35")
async def test_the_last_message_is_one_that_is_kept(store: HeldStorage, bed: Bed) -> None:
    wire, sender = await bed.connect(), await bed.connect()
    await sender.producer()
    await wire.subscribe()
    await wire.flow()
    (first,) = await sender.publish(plain(b"a"))
    await wire.message()
    store.holding = True
    await sender.write(sender.sends(plain(b"b")))
    await sender.quiet()
    await wire.quiet()  # nor is the message delivered
    await wire.write(wire.numbered(Type.GET_LAST_MESSAGE_ID, consumer_id=0))
    await wire.quiet()
    store.release()
    reply = (await wire.reply(wire.requests)).getLastMessageIdResponse
    assert position_of(reply.last_message_id) == first  # the last message at the time of the request
    assert (await wire.message()).payload == b"b"


async def test_the_last_message_of_a_stranger_or_a_loose_topic(wire: Wire) -> None:
    unknown = await wire.refused(Type.GET_LAST_MESSAGE_ID, consumer_id=7)
    assert unknown == (pb.MetadataError, "Consumer not found")
    await wire.subscribe(LOOSE)
    loose = await wire.refused(Type.GET_LAST_MESSAGE_ID, consumer_id=0)
    assert loose == (pb.UnknownError, "Failed to recover Transaction Buffer.")


async def test_a_last_message_that_cannot_be_read(bed: Bed, wire: Wire) -> None:
    sender = await bed.connect()
    await sender.producer()
    await wire.subscribe()
    await sender.publish(b"\0\0\0\3xyz")
    code, text = await wire.refused(Type.GET_LAST_MESSAGE_ID, consumer_id=0)
    assert code == pb.MetadataError
    assert text.startswith("Failed to get batch size for entry ")


async def failover_pair(bed: Bed, wire: Wire) -> tuple[Wire, Wire]:
    """Return the connections of an active and a passive Failover consumer, in this order."""
    other = await bed.connect()
    for each, name in ((wire, "a"), (other, "b")):
        await each.subscribe(type=Failover, consumer_name=name)
    active = {}
    for each in (wire, other):
        changes = [received.command.active_consumer_change for received in await each.rest(2)]
        active[each] = changes[-1].is_active
    assert sorted(active.values()) == [False, True]
    return (wire, other) if active[wire] else (other, wire)


@pytest.mark.req("B-34")
async def test_only_the_active_consumer_is_sent_away_and_comes_again(bed: Bed, wire: Wire) -> None:
    active, passive = await failover_pair(bed, wire)
    await seek(active, message_id=message_id(NOWHERE))
    await passive.quiet(2)
    refusal = "Unconnected or shared consumer attempting to unsubscribe"
    assert await passive.refused(Type.UNSUBSCRIBE, consumer_id=0) == (pb.MetadataError, refusal)
    await active.subscribe(type=Failover, consumer_name="c")
    heard = [received.command for each in (active, passive) for received in await each.rest(2)]
    assert sorted(each.active_consumer_change.is_active for each in heard) == [False, True]


@pytest.mark.req("B-50")
async def test_nobody_is_made_active_while_all_are_sent_away(bed: Bed, wire: Wire) -> None:
    active, passive = await failover_pair(bed, wire)
    bed.broker.topics.unload(TopicName.parse(TOPIC))
    for each in (active, passive):
        assert [received.command.type for received in await each.rest(2)] == [Type.CLOSE_CONSUMER]
