"""Chunks on Shared (B-28): all chunks of a message go to the consumer that received the first one."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pulsarium.broker.config import PULSAR_4_2
from pulsarium.broker.model.subscription.reasons import Reason
from pulsarium.proto.topic_name import TopicName
from tests.broker.model.dispatch.sharing import got, joined, payloads, reason, why
from tests.broker.wire import TOPIC, Bed, Exclusive, Shared, Wire, plain, serving


def chunk(uuid: str, number: int, of: int = 3) -> bytes:
    return plain(f"{uuid}{number}".encode(), uuid=uuid, chunk_id=number, num_chunks_from_msg=of, total_chunk_msg_size=9)


@pytest.mark.req("B-28")
async def test_all_chunks_go_to_one_consumer(bed: Bed, sender: Wire) -> None:
    wires = [await joined(bed, name, type=Shared) for name in "ab"]
    for number in range(3):
        for uuid in "xy":
            await sender.publish(chunk(uuid, number))
            await sender.publish(plain(b"p"))
    one, two = [[payload for payload in await payloads(wire) if payload != b"p"] for wire in wires]
    assert sorted([one, two]) in ([[b"x0", b"x1", b"x2"], [b"y0", b"y1", b"y2"]], [[], one or two])
    assert sorted(one + two) == [b"x0", b"x1", b"x2", b"y0", b"y1", b"y2"]


@pytest.mark.req("B-28")
async def test_chunks_wait_for_their_consumer(bed: Bed, sender: Wire) -> None:
    first = await joined(bed, "a", type=Shared, permits=1)
    await sender.publish(chunk("x", 0))
    assert await payloads(first) == [b"x0"]
    second = await joined(bed, "b", type=Shared)
    (position, *_) = await sender.publish(chunk("x", 1), chunk("x", 2), plain(b"p"))
    assert await payloads(second) == [b"p"]
    assert why(bed, position) is Reason.WAITING
    await first.flow(10)
    assert await payloads(first) == [b"x1", b"x2"]


@pytest.mark.req("B-28")
async def test_a_consumer_that_leaves_gives_all_chunks_to_another(bed: Bed, sender: Wire) -> None:
    first = await joined(bed, "a", type=Shared, permits=2)
    await sender.publish(chunk("x", 0), chunk("x", 1))
    assert await payloads(first) == [b"x0", b"x1"]
    second = await joined(bed, "b", type=Shared)
    await sender.publish(chunk("x", 2))
    assert await got(second) == []
    await first.aclose()
    assert await payloads(second) == [b"x0", b"x1", b"x2"]


@pytest.mark.req("B-28")
async def test_a_chunk_without_its_first_one_is_delivered_and_later_ones_follow_it(bed: Bed, sender: Wire) -> None:
    wires = [await joined(bed, name, type=Shared) for name in "ab"]
    await sender.publish(chunk("x", 1))
    (owner,) = [wire for wire in wires if await payloads(wire) == [b"x1"]]
    await sender.publish(plain(b"p"), chunk("x", 0), chunk("x", 2))
    assert [each for each in await payloads(owner) if each != b"p"] == [b"x0", b"x2"]


@pytest.mark.req("B-28", "B-18")
async def test_all_chunks_of_a_nacked_message_come_again(bed: Bed, sender: Wire) -> None:
    wire = await joined(bed, "a", type=Shared)
    await sender.publish(*[chunk("x", number) for number in range(3)])
    first = await got(wire)
    await wire.redeliver([message.position for message in first])
    again = await got(wire)
    assert [(m.payload, m.redelivery_count) for m in again] == [(b"x0", 1), (b"x1", 1), (b"x2", 1)]


@pytest.mark.req("B-28")
async def test_on_exclusive_chunks_are_messages_like_others(bed: Bed, sender: Wire) -> None:
    wire = await joined(bed, "a", type=Exclusive)
    await sender.publish(chunk("x", 1), chunk("y", 0))
    assert await payloads(wire) == [b"x1", b"y0"]


# the profile of Pulsar 4.2, with behavior that was seen on a real Pulsar 4.2.4


@pytest.fixture
async def released(autojump_clock: object) -> AsyncIterator[Bed]:
    async with serving(profile=PULSAR_4_2) as bed:
        yield bed


@pytest.fixture
async def releaser(released: Bed) -> Wire:
    wire = await released.connect()
    await wire.producer()
    return wire


@pytest.mark.req("B-28")
async def test_in_pulsar_4_2_an_orphan_chunk_stops_what_comes_behind_it(released: Bed, releaser: Wire) -> None:
    wire = await joined(released, "a", type=Shared)
    (orphan,) = await releaser.publish(chunk("x", 1))
    (behind,) = await releaser.publish(plain(b"p"))
    assert await got(wire) == []
    assert [why(released, each) for each in (orphan, behind)] == [Reason.ORPHAN_CHUNK, Reason.BEHIND_CHUNK]
    assert await got(await joined(released, "b", type=Shared)) == []


@pytest.mark.req("B-28")
async def test_in_pulsar_4_2_what_was_read_with_an_orphan_chunk_is_delivered(released: Bed, releaser: Wire) -> None:
    wire = await joined(released, "a", type=Shared, permits=0)
    await releaser.publish(chunk("x", 1), *[plain(b"%d" % number) for number in range(4)])
    await wire.flow(3)
    (first, _) = messages = await got(wire)
    assert [message.payload for message in messages] == [b"0", b"1"]
    await wire.flow(100)
    assert await got(wire) == []
    await wire.redeliver([first.position])  # the redelivered message is read together with the orphan
    assert await payloads(wire) == [b"0"]
    assert reason(released) is Reason.BEHIND_CHUNK


@pytest.mark.req("B-28")
async def test_in_pulsar_4_2_acknowledging_the_orphan_chunk_lets_others_go_on(released: Bed, releaser: Wire) -> None:
    wire = await joined(released, "a", type=Shared)
    (orphan,) = await releaser.publish(chunk("x", 1))
    await releaser.publish(plain(b"p"))
    assert await got(wire) == []
    await wire.ack(orphan)
    assert await payloads(wire) == [b"p"]


@pytest.mark.req("B-28")
async def test_in_pulsar_4_2_an_orphan_chunk_goes_out_once_its_first_one_is_read(released: Bed, releaser: Wire) -> None:
    wire = await joined(released, "a", type=Shared)
    for entry in (chunk("x", 1, 2), plain(b"p"), chunk("x", 0, 2)):
        await releaser.publish(entry)
    assert await got(wire) == []
    await wire.aclose()
    assert await payloads(await joined(released, "b", type=Shared)) == [b"p", b"x0", b"x1"]


@pytest.mark.req("B-28")
async def test_in_pulsar_4_2_all_wait_for_the_permits_of_who_has_the_first_chunk(released: Bed, releaser: Wire) -> None:
    first = await joined(released, "a", type=Shared, permits=1)
    await releaser.publish(chunk("x", 0))
    assert await payloads(first) == [b"x0"]
    second = await joined(released, "b", type=Shared)
    await releaser.publish(chunk("x", 1))
    (behind,) = await releaser.publish(plain(b"p"))
    assert await got(second) == []
    assert why(released, behind) is Reason.BEHIND_CHUNK
    await first.flow(1)
    assert await payloads(first) == [b"x1"]
    assert await payloads(second) == [b"p"]


@pytest.mark.req("B-28")
async def test_in_pulsar_4_2_who_leaves_keeps_its_chunks_while_its_permits_last(released: Bed, releaser: Wire) -> None:
    first = await joined(released, "a", type=Shared, permits=3)
    await releaser.publish(chunk("x", 0, 9))
    assert await payloads(first) == [b"x0"]
    second = await joined(released, "b", type=Shared)
    await first.aclose()
    await releaser.publish(chunk("x", 1, 9))  # x0 and x1 use up the last two permits
    await releaser.publish(plain(b"p"))
    assert await payloads(second) == [b"p"]
    await releaser.publish(chunk("x", 2, 9))
    await releaser.publish(plain(b"q"))
    assert await got(second) == []
    assert reason(released) is Reason.BEHIND_CHUNK


@pytest.mark.req("B-28")
async def test_in_pulsar_4_2_an_unload_gives_the_chunks_of_who_left_to_another(released: Bed, releaser: Wire) -> None:
    first = await joined(released, "a", type=Shared)
    await releaser.publish(chunk("x", 0))
    assert await payloads(first) == [b"x0"]
    await first.aclose()
    again = await joined(released, "b", type=Shared)
    assert await got(again) == []
    await again.aclose()
    released.broker.topics.unload(TopicName.parse(TOPIC))
    assert await payloads(await joined(released, "c", type=Shared)) == [b"x0"]


@pytest.mark.req("B-28")
async def test_in_pulsar_4_2_a_message_whose_last_chunk_was_lost_comes_again_to_who_joins(
    released: Bed, releaser: Wire
) -> None:
    first = await joined(released, "a", type=Shared)
    await releaser.publish(chunk("x", 0, 2))
    assert await payloads(first) == [b"x0"]
    second = await joined(released, "b", type=Shared)
    await first.aclose()
    await releaser.publish(chunk("x", 1, 2))
    assert await got(second) == []
    await second.aclose()
    assert await payloads(await joined(released, "c", type=Shared)) == [b"x0", b"x1"]


@pytest.mark.req("B-28")
async def test_in_pulsar_4_2_a_chunk_whose_first_one_was_acknowledged_stops_all(released: Bed, releaser: Wire) -> None:
    first = await joined(released, "a", type=Shared)
    positions = await releaser.publish(chunk("x", 0, 2), chunk("x", 1, 2))
    assert await payloads(first) == [b"x0", b"x1"]
    await first.ack(positions[0])
    await first.aclose()
    second = await joined(released, "b", type=Shared)
    await releaser.publish(plain(b"p"))
    assert await got(second) == []


@pytest.mark.req("B-28")
async def test_in_pulsar_4_2_chunks_go_to_the_consumer_of_the_first_one(released: Bed, releaser: Wire) -> None:
    wires = [await joined(released, name, type=Shared) for name in "ab"]
    for number in range(3):
        await releaser.publish(chunk("x", number))
        await releaser.publish(plain(b"p"))
    chunks = [[payload for payload in await payloads(wire) if payload != b"p"] for wire in wires]
    assert sorted(chunks) == [[], [b"x0", b"x1", b"x2"]]
