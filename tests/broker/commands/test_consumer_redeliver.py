"""REDELIVER_UNACKNOWLEDGED_MESSAGES."""

from __future__ import annotations

import pytest

from pulsarium.broker.model.ledger.position import Position
from tests.broker.wire import (
    TOPIC,
    Bed,
    Exclusive,
    Failover,
    Shared,
    Type,
    Wire,
    entry_ids,
    plain,
)


@pytest.mark.req("B-18", "B-19", "B-20")
async def test_redelivery_on_shared(bed: Bed, wire: Wire, sender: Wire) -> None:
    await wire.subscribe(type=Shared)
    await wire.flow(100)
    positions = await sender.publish_numbered(6)
    await wire.messages(6)
    await wire.ack(positions[0])

    async def again(count: int) -> list[tuple[int, int]]:
        messages = await wire.messages(count)
        await wire.quiet()
        return [(message.position.entry_id, message.redelivery_count) for message in messages]

    await wire.redeliver([positions[3], positions[1]])
    assert await again(2) == [(1, 1), (3, 1)]  # in the order of their positions
    await wire.redeliver([positions[0]])  # acknowledged
    await wire.redeliver([Position(999, 0)])  # unknown
    await wire.redeliver([positions[1]], consumer_id=99)  # no consumer has this id
    assert await again(0) == []
    await wire.redeliver([positions[1], positions[1]])  # counts as one redelivery
    assert await again(1) == [(1, 2)]
    await wire.redeliver()
    assert await again(5) == [(1, 3), (2, 1), (3, 2), (4, 1), (5, 1)]
    other = await bed.connect()
    await other.subscribe(type=Shared)
    await other.flow(100)
    await other.redeliver(positions)  # the other consumer has these messages
    messages = await other.messages(5) if await _first_is(other) else await wire.messages(5)
    assert [(m.position.entry_id, m.redelivery_count) for m in messages] == [(1, 4), (2, 2), (3, 3), (4, 2), (5, 2)]


async def _first_is(wire: Wire) -> bool:
    """Return whether a frame arrives here soon."""
    try:
        first = await wire.next(0.1)
    except Exception:  # the messages go to the other consumer
        return False
    wire.inbox.appendleft(first)
    return True


@pytest.mark.req("B-18")
async def test_replays_come_before_new_messages(wire: Wire, sender: Wire) -> None:
    await wire.subscribe(type=Shared)
    await wire.flow(2)
    await sender.publish_numbered(4)
    first = await wire.messages(2)
    await wire.redeliver([message.position for message in first])
    await wire.flow(4)
    assert entry_ids(await wire.messages(4)) == [0, 1, 2, 3]


@pytest.mark.req("B-18", "B-19")
async def test_messages_left_by_a_closed_consumer_count_no_redelivery(bed: Bed, wire: Wire, sender: Wire) -> None:
    other = await bed.connect()
    await wire.subscribe(type=Shared)
    await wire.flow(100)
    await sender.publish_numbered(4)
    messages = await wire.messages(4)
    await wire.redeliver([messages[1].position])
    await wire.message()
    await other.subscribe(type=Shared)
    await other.flow(100)
    await wire.aclose()
    again = await other.messages(4)
    assert [(m.position.entry_id, m.redelivery_count) for m in again] == [(0, 0), (1, 1), (2, 0), (3, 0)]
    await other.ask(Type.CLOSE_CONSUMER, consumer_id=0)  # the last consumer: the broker forgets the counts
    await other.subscribe(type=Shared)
    await other.flow(100)
    assert [m.redelivery_count for m in await other.messages(4)] == [0, 0, 0, 0]


@pytest.mark.req("B-18", "B-19", "C-09")
@pytest.mark.parametrize("type", [Exclusive, Failover])
async def test_redelivery_in_order(wire: Wire, sender: Wire, type: int) -> None:
    await wire.subscribe(type=type)
    await wire.flow(100)
    positions = await sender.publish_numbered(5)
    if type == Failover:
        await wire.expect(Type.ACTIVE_CONSUMER_CHANGE)
    await wire.messages(5)
    await wire.ack(positions[2])
    for ids in ([positions[4]], []):  # ids are ignored
        await wire.redeliver(ids)
        again = await wire.messages(4)
        assert entry_ids(again) == [0, 1, 3, 4]
        assert [m.redelivery_count for m in again] == [0, 0, 0, 0]
        assert not any(m.command.HasField("consumer_epoch") for m in again)
        await wire.quiet()
    for epoch, stamped in ((1, 1), (0, 1), (5, 5), (5, 5), (4, 5)):
        await wire.redeliver(consumer_epoch=epoch)
        assert {m.command.consumer_epoch for m in await wire.messages(4)} == {stamped}
    await sender.publish(plain(b"new"))
    assert (await wire.message()).command.consumer_epoch == 5


@pytest.mark.req("C-09")
async def test_messages_of_a_non_persistent_topic_have_no_epoch(bed: Bed, wire: Wire) -> None:
    topic = TOPIC.replace("persistent", "non-persistent")
    await wire.subscribe(topic=topic, consumer_epoch=3)
    await wire.flow()
    sender = await bed.connect()
    await sender.producer(topic)
    await sender.publish(plain(b"x"))
    assert not (await wire.message()).command.HasField("consumer_epoch")


@pytest.mark.req("C-09")
@pytest.mark.parametrize(("type", "epoch"), [(Exclusive, 0), (Exclusive, 3), (Shared, 3)])
async def test_an_epoch_given_at_the_start(wire: Wire, sender: Wire, type: int, epoch: int) -> None:
    await wire.subscribe(type=type, consumer_epoch=epoch)
    await wire.flow()
    await sender.publish_numbered(1)
    command = (await wire.message()).command
    assert command.HasField("consumer_epoch") is (type == Exclusive)
    assert command.consumer_epoch == (epoch if type == Exclusive else 0)
    if type == Shared:
        await wire.redeliver(consumer_epoch=9)
        assert not (await wire.message()).command.HasField("consumer_epoch")


@pytest.mark.req("C-09")
async def test_an_epoch_that_is_negative_is_not_greater(wire: Wire, sender: Wire) -> None:
    await wire.subscribe(consumer_epoch=3)
    await wire.flow()
    await sender.publish_numbered(1)
    await wire.message()
    await wire.redeliver(consumer_epoch=2**64 - 1)
    assert (await wire.message()).command.consumer_epoch == 3


@pytest.mark.req("B-03")
async def test_a_standby_cannot_rewind(bed: Bed, wire: Wire, sender: Wire) -> None:
    other = await bed.connect()
    for number, consumer in enumerate((wire, other)):
        await consumer.subscribe(type=Failover, priority_level=number)
        await consumer.flow()
    assert not (await other.expect(Type.ACTIVE_CONSUMER_CHANGE)).is_active
    assert (await wire.expect(Type.ACTIVE_CONSUMER_CHANGE)).is_active
    assert not (await other.expect(Type.ACTIVE_CONSUMER_CHANGE)).is_active
    await sender.publish_numbered(2)
    await wire.messages(2)
    await other.redeliver()
    await other.quiet()
    await wire.quiet()
