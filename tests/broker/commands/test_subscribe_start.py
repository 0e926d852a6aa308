"""SUBSCRIBE: the start position of a new subscription."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.model.ledger.position import Position
from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import (
    TOPIC,
    Bed,
    Earliest,
    Exclusive,
    Failover,
    Latest,
    Shared,
    Type,
    Wire,
    message_id,
    plain,
)

EARLIEST = {"ledgerId": 2**64 - 1, "entryId": 2**64 - 1}
LATEST = {"ledgerId": 2**63 - 1, "entryId": 2**63 - 1}


@pytest.mark.parametrize("type", [Exclusive, Shared, Failover])
@pytest.mark.parametrize(("start", "expected"), [(Earliest, 5), (Latest, 0), (None, 0)])
async def test_the_first_position(
    wire: Wire, five: list[Position], type: int, start: int | None, expected: int
) -> None:
    fields: dict[str, Any] = {} if start is None else {"initialPosition": start}
    await wire.subscribe(type=type, **fields)
    await wire.flow()
    if type == Failover:
        await wire.expect(Type.ACTIVE_CONSUMER_CHANGE)
    messages = await wire.messages(expected)
    assert [message.position for message in messages] == five[:expected]
    await wire.quiet(2)
    (new,) = await wire.publish(plain(b"new"), producer_id=50)
    assert (await wire.message()).position == new


@pytest.mark.req("C-07")
async def test_a_start_id_says_nothing_to_a_durable_subscription(wire: Wire, five: list[Position]) -> None:
    await wire.subscribe(initialPosition=Earliest, start_message_id=message_id(five[3]))
    await wire.flow()
    assert len(await wire.messages(5)) == 5


@pytest.mark.req("B-14", "C-07")
@pytest.mark.parametrize(
    ("start", "initial", "first"),
    [
        (None, Latest, 5),
        (None, Earliest, 0),
        (EARLIEST, Latest, 0),
        (LATEST, Latest, 5),
        (0, Latest, 0),
        (2, Latest, 2),
        (4, Latest, 4),
        (5, Latest, 5),
        (99, Latest, 5),
    ],
)
async def test_the_first_position_of_a_reader(
    wire: Wire, five: list[Position], start: dict[str, int] | int | None, initial: int, first: int
) -> None:
    fields: dict[str, Any] = {"durable": False, "initialPosition": initial}
    if isinstance(start, int):
        start = {"ledgerId": five[0].ledger_id, "entryId": start}
    if start is not None:
        fields["start_message_id"] = start
    await wire.subscribe(**fields)
    await wire.flow()
    assert [message.position for message in await wire.messages(5 - first)] == five[first:]
    await wire.quiet()
    (new,) = await wire.publish(plain(b"new"), producer_id=50)
    assert (await wire.message()).position == new


@pytest.mark.req("B-14", "C-07")
async def test_a_reader_inside_a_batch_gets_all_of_it(wire: Wire, five: list[Position]) -> None:
    await wire.subscribe(durable=False, start_message_id=message_id(five[4], batch_index=1))
    await wire.flow()
    message = await wire.message()
    assert message.position == five[4]
    assert message.command.ack_set == []


@pytest.mark.req("B-14", "C-07")
async def test_readers_in_other_ledgers(bed: Bed, wire: Wire, five: list[Position]) -> None:
    bed.broker.topics.unload(TopicName.parse(TOPIC))
    await wire.expect(Type.CLOSE_PRODUCER)
    await wire.producer(producer_id=50)
    (sixth,) = await wire.publish(plain(b"6"), producer_id=50)
    assert sixth.ledger_id > five[0].ledger_id
    for number, (start, first) in enumerate([(five[4], 4), (Position(five[0].ledger_id, 99), 5), (sixth, 5)]):
        await wire.subscribe(name=f"r{number}", consumer_id=number, durable=False, start_message_id=message_id(start))
        await wire.flow(consumer_id=number)
        assert [message.position for message in await wire.messages(6 - first)] == [*five, sixth][first:]


@pytest.mark.req("B-14")
async def test_a_reader_is_gone_with_its_consumer(bed: Bed, wire: Wire, five: list[Position]) -> None:
    await wire.subscribe(durable=False, start_message_id=EARLIEST)
    assert list(bed.topic().subscriptions) == ["sub"]
    await wire.flow()
    await wire.ack(*[message.position for message in await wire.messages(3)])
    await wire.messages(2)
    await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    assert list(bed.topic().subscriptions) == []
    await wire.subscribe(durable=False, start_message_id=message_id(five[1]))  # its start position counts again
    await wire.flow()
    assert (await wire.message()).position == five[1]


@pytest.mark.req("B-14", "C-07")
async def test_a_reader_that_is_there_keeps_its_place(bed: Bed, wire: Wire, five: list[Position]) -> None:
    await wire.subscribe(type=Shared, durable=False, start_message_id=EARLIEST)
    await wire.flow(2)
    await wire.messages(2)
    other = await bed.connect()
    await other.subscribe(type=Shared, durable=False, start_message_id=message_id(five[4]))
    await other.flow()
    assert [message.position for message in await other.messages(3)] == five[2:]


@pytest.mark.req("C-08")
async def test_a_subscription_may_begin_in_the_past(bed: Bed, wire: Wire) -> None:
    now = bed.broker.clock.now_ms()
    await wire.producer()
    ages = [3600, 120, 60, 10, 0]
    positions = await wire.publish(*[plain(b"x", publish_time=now - age * 1000) for age in ages])
    for number, (rollback, first) in enumerate([(100_000, 0), (121, 1), (61, 2), (30, 3), (1, 4)]):
        for durable in (True, False):
            fields: dict[str, Any] = {"start_message_rollback_duration_sec": rollback, "durable": durable}
            await wire.subscribe(name=f"s{number}", consumer_id=number, **fields)
            await wire.flow(consumer_id=number)
            assert [message.position for message in await wire.messages(5 - first)] == positions[first:]
            await wire.quiet(0)
            await wire.ask(Type.CLOSE_CONSUMER, consumer_id=number)
            if durable:
                await wire.subscribe(name=f"s{number}", consumer_id=number)
                await wire.ask(Type.UNSUBSCRIBE, consumer_id=number)


@pytest.mark.req("C-08")
@pytest.mark.parametrize("seconds", [-1, -100, -(2**63)])
async def test_a_rollback_that_is_negative_is_none(bed: Bed, wire: Wire, seconds: int) -> None:
    await wire.producer()
    positions = await wire.publish(plain(b"x", publish_time=bed.broker.clock.now_ms() - 1000))
    rollback: dict[str, Any] = {"start_message_rollback_duration_sec": seconds % 2**64}
    starts = [(durable, start) for durable in (True, False) for start in (Earliest, Latest)]
    for number, (durable, start) in enumerate(starts):
        name = f"s{number}"
        await wire.subscribe(name=name, consumer_id=number, durable=durable, initialPosition=start, **rollback)
        await wire.flow(consumer_id=number)
        expected = positions if start == Earliest else []
        assert [message.position for message in await wire.messages(len(expected))] == expected
        await wire.quiet()


@pytest.mark.req("C-08")
async def test_a_subscription_that_is_there_begins_again(bed: Bed, wire: Wire) -> None:
    now = bed.broker.clock.now_ms()
    await wire.producer()
    await wire.publish(*[plain(b"%d" % age, publish_time=now - age * 1000) for age in (300, 200, 100)])
    await wire.subscribe(type=Shared)
    await wire.flow()
    await wire.quiet()
    await wire.write(
        wire.numbered(
            Type.SUBSCRIBE,
            topic=TOPIC,
            subscription="sub",
            subType=Shared,
            consumer_id=1,
            start_message_rollback_duration_sec=250,
        )
    )
    assert (await wire.expect(Type.CLOSE_CONSUMER)).consumer_id == 0
    await wire.expect(Type.SUCCESS)
    await wire.flow(consumer_id=1)
    assert await wire.payloads(2) == [b"200", b"100"]
    await wire.quiet()


@pytest.mark.req("C-07", "B-14")
async def test_a_reader_keeps_no_message_from_the_next_reader(bed: Bed, wire: Wire, five: list[Position]) -> None:
    bed.broker.topics.unload(TopicName.parse(TOPIC))  # closes the ledger
    await wire.expect(Type.CLOSE_PRODUCER)
    for _ in range(3):
        await wire.subscribe(durable=False, start_message_id=EARLIEST)
        await wire.flow()
        assert [message.position for message in await wire.messages(5)] == five
        await wire.ack(*five)
        await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
