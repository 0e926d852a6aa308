"""Connections without rules: they have no tap, and no code of the lab runs for them."""

from __future__ import annotations

import sys

from pulsarium.broker.lab import Lab
from pulsarium.broker.lab.faults import Drop, Faults
from pulsarium.broker.session.session import sessions_of
from tests.broker.lab.attended import is_attended
from tests.broker.wire import Bed, Wire, plain


def taps(bed: Bed) -> list[object]:
    return [session.outgoing.tap for session in sessions_of(bed.broker)]


async def test_no_connection_has_a_tap(bed: Bed, wire: Wire, sender: Wire) -> None:
    lab = bed.broker.cluster.attached(Lab)
    entered = []

    def watch(frame: object, event: str, argument: object) -> None:
        name = frame.f_code.co_filename  # type: ignore[attr-defined]
        if event == "call" and "/lab/" in name and "/broker/lab/" in name and "/tests/" not in name:
            entered.append(frame.f_code.co_name)  # type: ignore[attr-defined]

    sys.setprofile(watch)
    try:
        await wire.subscribe()
        await wire.flow()
        await sender.publish(plain(b"a"))
        await wire.message()
        third = await bed.connect()
        await third.alive()
    finally:
        sys.setprofile(None)
    assert entered == []
    assert taps(bed) == [None] * 3
    assert not is_attended(bed.broker.cluster)
    assert lab is not None
    assert not lab.taps.busy


async def test_taps_come_with_the_first_rule_and_go_with_the_last(faults: Faults, bed: Bed, wire: Wire) -> None:
    assert taps(bed) == [None]
    one = faults.add(Drop(), "SEND")
    two = faults.observe("SEND")
    other = await bed.connect()
    assert None not in taps(bed)
    one.remove()
    assert None not in taps(bed)
    two.remove()
    assert taps(bed) == [None, None]
    assert not is_attended(bed.broker.cluster)
    await other.alive()
    await wire.alive()
