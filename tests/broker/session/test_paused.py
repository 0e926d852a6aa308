"""Paused connections: later commands wait in their order, also when a fault delays commands."""

from __future__ import annotations

import pytest
import trio

from pulsarium.broker.lab import Lab
from pulsarium.broker.lab.faults import Delay
from pulsarium.broker.session.session import Session, sessions_of
from tests.broker.commands.producer_limits import put
from tests.broker.wire import Bed, Type, Wire, plain

pytestmark = pytest.mark.req("B-42")


def session_of(bed: Bed) -> Session:
    (session,) = sessions_of(bed.broker)
    return session


async def test_reading_resumes_only_after_all_limits_allow_it(bed: Bed, wire: Wire) -> None:
    session = session_of(bed)
    session.pause_reading()
    session.pause_reading()
    await wire.send(Type.PING)
    await wire.quiet()
    session.resume_reading()
    await wire.quiet()
    session.resume_reading()
    await wire.expect(Type.PONG)


async def test_frames_that_were_read_keep_their_order(bed: Bed, wire: Wire) -> None:
    session = session_of(bed)
    await wire.producer()
    put(bed, publishMaxMessageRate={"standalone": {"publishThrottlingRateInMsg": 1}})
    await wire.write(wire.sends(*[plain(b"%d" % number) for number in range(3)]))
    await wire.receipts(1)
    assert not session.may_read
    await wire.write(wire.numbered(Type.CLOSE_PRODUCER, producer_id=0))
    await wire.receipts(2)
    await wire.expect(Type.SUCCESS)
    assert session.may_read


async def test_frames_that_a_rule_delays_too(bed: Bed, wire: Wire) -> None:
    lab = bed.broker.cluster.attached(Lab)
    await wire.producer()
    put(bed, publishMaxMessageRate={"standalone": {"publishThrottlingRateInMsg": 1}})
    lab.faults.add(Delay(0.1), "SEND", sender="client")
    began = trio.current_time()
    await wire.write(wire.sends(*[plain(b"%d" % number) for number in range(4)]))
    positions = await wire.receipts(4)
    assert positions == sorted(positions)
    assert trio.current_time() - began == pytest.approx(3.1, abs=0.3)
    await wire.alive()


async def test_the_end_of_a_connection_ends_its_pause(bed: Bed, wire: Wire) -> None:
    session = session_of(bed)
    session.pause_reading()
    await wire.send(Type.PING)
    session.close("enough")
    bed.broker.turn.finish()
    assert [each.command.type for each in await wire.closed()] == []
    session.resume_reading()
    assert session.gate.halted
