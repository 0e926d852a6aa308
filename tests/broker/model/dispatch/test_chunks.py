"""Chunks on Shared (B-28): all of a message go to the consumer that got the first one."""

from __future__ import annotations

import pytest

from pulsarium.broker.model.dispatch.reason import Reason
from tests.broker.model.dispatch.sharing import got, joined, payloads, why
from tests.broker.wire import Bed, Exclusive, Shared, Wire, plain


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
async def test_who_leaves_gives_the_whole_message_to_another(bed: Bed, sender: Wire) -> None:
    first = await joined(bed, "a", type=Shared, permits=2)
    await sender.publish(chunk("x", 0), chunk("x", 1))
    assert await payloads(first) == [b"x0", b"x1"]
    second = await joined(bed, "b", type=Shared)
    await sender.publish(chunk("x", 2))
    assert await got(second) == []
    await first.aclose()
    assert await payloads(second) == [b"x0", b"x1", b"x2"]


@pytest.mark.req("B-28")
async def test_a_chunk_without_its_first_one_is_set_aside(bed: Bed, sender: Wire) -> None:
    wire = await joined(bed, "a", type=Shared)
    (orphan, _) = await sender.publish(chunk("x", 1), plain(b"p"))
    assert await payloads(wire) == [b"p"]
    assert why(bed, orphan) is Reason.ORPHAN_CHUNK
    await sender.publish(chunk("x", 0))
    assert await payloads(wire) == [b"x0", b"x1"]


@pytest.mark.req("B-28", "B-18")
async def test_all_chunks_come_again(bed: Bed, sender: Wire) -> None:
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
