"""Frames that are held up: they keep their order, have a limit, and are neither lost nor forgotten."""

from __future__ import annotations

import gc

import pytest
import trio

from pulsarium.broker.lab import Lab
from pulsarium.broker.lab.faults import Close, Delay, Drop, Faults, Reorder, Stall, TappedFrame
from pulsarium.broker.net import slices
from pulsarium.broker.session import gate
from pulsarium.broker.session.outgoing import HIGH_WATER
from pulsarium.broker.session.session import sessions_of
from pulsarium.proto import entry as entries
from tests.broker.wire import Bed, Earliest, Shared, Type, Wire, frame_of, plain

A, B = plain(b"a"), plain(b"b")
BIG = plain(bytes(100_000))


def lab_of(bed: Bed) -> Lab:
    return bed.broker.cluster.attached(Lab)


def has_timers(bed: Bed) -> bool:
    return lab_of(bed).clock.next_in is not None


async def stored(bed: Bed) -> list[bytes]:
    wire = await bed.connect()
    await wire.subscribe(name="reader", initialPosition=Earliest)
    await wire.flow()
    return [entries.payload_of(received.trailing) for received in await wire.rest()]


@pytest.mark.parametrize("action", [Delay(30), Reorder()])
async def test_a_client_that_leaves_meanwhile_loses_nothing(
    faults: Faults, bed: Bed, sender: Wire, action: Delay | Reorder
) -> None:
    rule = faults.add(action, "SEND", count=None)
    await sender.write(sender.sends(A) + sender.sends(B))
    await sender.aclose()
    await trio.sleep(0.01)
    rule.remove()
    assert await stored(bed) == ([b"a", b"b"] if isinstance(action, Delay) else [b"b", b"a"])


async def test_what_is_held_for_a_client_that_leaves_needs_no_further_slice(
    faults: Faults, bed: Bed, sender: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "SLICE", 0)
    monkeypatch.setattr(gate, "LONGEST_RUN", 1)
    faults.add(Delay(30), "SEND", count=None)
    await sender.write(sender.sends(A) + sender.sends(B))
    await sender.aclose()
    assert await stored(bed) == [b"a", b"b"]


async def test_last_words_are_not_delayed(faults: Faults, bed: Bed) -> None:
    faults.add(Delay(30), "CONNECTED")
    wire = bed.dial()
    await wire.send(Type.CONNECT, client_version="x", protocol_version=19)
    await wire.quiet(1)
    await wire.send(Type.CONNECT, client_version="x", protocol_version=19)  # this closes the connection
    assert [received.command.type for received in await wire.closed(within=1)] == [Type.CONNECTED]


async def test_timers_end_with_the_connection(faults: Faults, bed: Bed, wire: Wire) -> None:
    faults.add(Delay(1000), "PING")
    await wire.send(Type.PING)
    await wire.quiet()
    assert has_timers(bed)
    await wire.aclose()
    await trio.sleep(0.1)
    assert not has_timers(bed)
    await (await bed.connect()).alive()


async def test_a_delay_ends_with_its_rule(faults: Faults, bed: Bed, wire: Wire) -> None:
    rule = faults.add(Delay(1000), "PING")
    await wire.send(Type.PING)
    await wire.quiet()
    rule.remove()
    await wire.expect(Type.PONG, within=0.1)
    assert not has_timers(bed)


async def test_an_answer_is_not_waited_for_by_a_rule_that_is_gone(faults: Faults, wire: Wire) -> None:
    faults.observe("FLOW")
    stall = faults.add(Stall(), "LOOKUP_RESPONSE")
    await wire.write(wire.numbered(Type.LOOKUP, topic="t"))
    lost = faults.add(Drop(), "PING", stage="after", sender="client")
    await wire.send(Type.PING)
    await wire.quiet()
    lost.remove()
    stall.remove()
    await wire.expect(Type.LOOKUP_RESPONSE)
    await wire.expect(Type.PONG)


async def test_another_rule_is_not_concerned(faults: Faults, wire: Wire) -> None:
    faults.add(Delay(5), "PING")
    other = faults.add(Drop(), "PING")
    await wire.send(Type.PING)
    await wire.quiet()
    other.remove()
    await wire.quiet(4)
    await wire.expect(Type.PONG, within=1)


async def test_a_stalled_client_is_not_read(faults: Faults, bed: Bed, sender: Wire) -> None:
    rule = faults.add(Stall(), "SEND")
    (session,) = sessions_of(bed.broker)
    total = 200

    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def write() -> None:
            for _ in range(total):
                await sender.write(sender.sends(BIG))

        await trio.sleep(1)
        assert not session.may_read
        assert sender.sequences[0] == total  # the stream in memory has taken all frames, the broker has not
        tap = session.outgoing.tap
        assert tap is not None
        rule.remove()
        await sender.receipts(total)
        await sender.alive()


async def test_bytes_that_wait_behind_a_delay_are_bounded(faults: Faults, bed: Bed, sender: Wire) -> None:
    faults.add(Delay(10), "SEND")
    (session,) = sessions_of(bed.broker)
    for _ in range(50):
        await sender.write(sender.sends(BIG))
        await trio.sleep(0.01)
    assert not session.may_read
    await sender.receipts(50)
    await sender.alive()


async def test_a_client_that_is_not_told_anything_is_sent_little(
    faults: Faults, bed: Bed, wire: Wire, sender: Wire
) -> None:
    await wire.subscribe(type=Shared)
    await wire.flow()
    rule = faults.add(Stall(), "MESSAGE")
    for _ in range(40):
        await sender.publish(BIG)
    await wire.quiet(5)
    waiting = [session.outgoing.waiting for session in sessions_of(bed.broker) if session.consumers]
    assert HIGH_WATER <= waiting[0] < HIGH_WATER + 2 * len(BIG)
    rule.remove()
    assert len(await wire.messages(40)) == 40


async def test_a_client_whose_pong_is_held_is_disconnected(faults: Faults, bed: Bed, wire: Wire) -> None:
    faults.add(Stall(), "PONG", sender="client")
    await wire.send(Type.PONG)
    await wire.closed(within=120)
    assert not sessions_of(bed.broker)


async def test_a_client_whose_pongs_are_lost_is_disconnected(faults: Faults, bed: Bed, wire: Wire) -> None:
    faults.add(Drop(), "PONG", sender="client")
    await wire.expect(Type.PING, within=60)
    await wire.send(Type.PONG)
    assert await wire.closed(within=60) == []
    assert not sessions_of(bed.broker)


async def test_stalled_both_ways_and_closed(faults: Faults, bed: Bed, sender: Wire) -> None:
    faults.add(Stall(), "SEND_RECEIPT")
    faults.add(Stall(), "PING", sender="client")
    await sender.write(sender.sends(A))
    await sender.send(Type.PING)
    await sender.quiet()
    bed.broker.close_sessions()
    assert await sender.closed() == []
    faults.clear()
    assert await stored(bed) == [b"a"]


async def test_answers_before_a_close_fault_still_arrive(faults: Faults, bed: Bed, wire: Wire) -> None:
    faults.add(Close(), "LOOKUP_RESPONSE")
    await wire.send(Type.PING)
    await wire.write(wire.numbered(Type.LOOKUP, topic="t"))
    assert [received.command.type for received in await wire.closed()] == [Type.PONG]


async def test_delays_are_of_the_labs_clock(faults: Faults, bed: Bed, wire: Wire) -> None:
    clock = lab_of(bed).clock
    clock.freeze()
    faults.add(Delay(7 * 86_400), "PING", sender="client")
    await wire.send(Type.PING)
    await wire.quiet(20)
    assert clock.next_in == 7 * 86_400
    await clock.run_next()
    await wire.expect(Type.PONG)


async def test_occurrences_without_an_answer_are_forgotten(
    faults: Faults, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pulsarium.broker.lab.faults.claims.MOST", 3)
    rule = faults.add(Drop(), "ACK", stage="after", count=4)
    for _ in range(4):
        await wire.send(Type.ACK, consumer_id=5, ack_type=0, request_id=1)  # consumer 5 does not exist: no answer
    await wire.alive()
    assert rule.matched == 4
    assert not rule.occurrence.spent


async def test_released_frames_meet_no_rule_that_is_cleared_with_theirs(faults: Faults, sender: Wire) -> None:
    faults.add(Stall(), "PING", sender="client")
    faults.add(Drop(), "SEND")
    faults.add(Stall(), "PONG", sender="broker")
    faults.add(Drop(), "PONG", sender="broker")
    await sender.write(frame_of(Type.PING) * 2 + sender.sends(A))
    await sender.quiet()
    faults.clear()
    await sender.expect(Type.PONG)
    await sender.expect(Type.PONG)
    await sender.receipts(1)
    assert faults.rules == []


async def test_no_entry_is_kept_until_its_receipt(faults: Faults, sender: Wire) -> None:
    gc.collect()  # frees frames of earlier tests
    faults.add(Stall(), "PONG", sender="broker")
    faults.add(Drop(), "SEND", stage="after")
    await sender.write(frame_of(Type.PING) + sender.sends(A))
    await sender.quiet()
    assert not [each for each in gc.get_objects() if isinstance(each, TappedFrame)]
    faults.clear()
    await sender.expect(Type.PONG)
    await sender.receipts(1)
