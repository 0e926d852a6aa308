"""Connections without rules: they have no tap, and no code of the lab runs for them."""

from __future__ import annotations

import sys

from pulsarium.broker.lab.faults import Drop, Faults
from tests.broker.wire import Bed, Wire, plain


def taps(bed: Bed) -> list[object]:
    return [session.outgoing.tap for session in bed.broker.sessions]


async def test_no_connection_has_a_tap(bed: Bed, wire: Wire, sender: Wire) -> None:
    lab = bed.broker.cluster.lab
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
    assert bed.broker.cluster.hooks is None
    assert lab is not None
    assert not lab.busy


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
    assert bed.broker.cluster.hooks is None
    await other.alive()
    await wire.alive()
