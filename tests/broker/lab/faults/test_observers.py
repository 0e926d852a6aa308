"""Observers of frames: each is told what happened to each frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pulsarium.broker.lab import Lab
from pulsarium.broker.lab.faults import (
    Action,
    Answer,
    Close,
    Corrupt,
    Delay,
    Drop,
    Duplicate,
    Faults,
    Reorder,
    Stall,
    Truncate,
    WrongRequestId,
)
from pulsarium.proto.commands import Direction
from tests.broker.lab.faults.observers import Seen
from tests.broker.wire import Bed, Type, Wire, frame_of, plain


@pytest.fixture
def seen(bed: Bed, sender: Wire) -> Seen:
    """Return an observer that begins after a connection with a producer was opened."""
    lab = bed.broker.cluster.attached(Lab)
    seen = Seen()
    lab.taps.observe(seen)
    return seen


@pytest.mark.parametrize(
    ("action", "notes"),
    [
        (Drop(), [{"fault": 1, "did": "dropped", "arrived": False}]),
        (Answer("UnknownError"), [{"fault": 1, "did": "answered", "arrived": False}]),
        (Delay(1), [{"fault": 1, "did": "delayed"}]),
        (Reorder(), [{"fault": 1, "did": "reordered"}]),
        (Duplicate(), [{}, {"fault": 1, "did": "duplicated"}]),
        (Corrupt(), [{"fault": 1, "did": "corrupted"}]),
        (WrongRequestId(), [{"fault": 1, "did": "renumbered"}]),
        (Truncate(7), [{"fault": 1, "did": "truncated", "keep": 7, "arrived": False}]),
        (Close(), [{"fault": 1, "did": "closed", "arrived": False}]),
        (Stall(), []),
    ],
)
async def test_an_observer_sees_the_effect_of_each_action(
    faults: Faults, seen: Seen, sender: Wire, action: Action, notes: list[Mapping[str, Any]]
) -> None:
    faults.add(action, "SEND")
    await sender.write(sender.sends(plain(b"a")))
    await sender.rest(2)
    assert seen.of("SEND") == notes
    if isinstance(action, Close | Truncate):
        assert seen.ended == [(Direction.BROKER, f"fault 1: {action.kind} SEND")]


async def test_observers_hear_of_lost_frames_at_the_end(faults: Faults, seen: Seen, bed: Bed, sender: Wire) -> None:
    faults.add(Stall(), "SEND")
    faults.add(Stall(), "PONG", sender="broker")
    await sender.write(frame_of(Type.PING) + sender.sends(plain(b"a"), plain(b"b")))
    await sender.rest()
    assert seen.of("SEND") == seen.of("PONG") == []
    bed.broker.close_sessions()
    lost = {"did": "lost", "arrived": False}
    assert seen.of("SEND") == [{"fault": 1} | lost, lost]
    assert seen.of("PONG") == [{"fault": 2} | lost]


async def test_an_answer_that_was_put_in_the_place_of_another(faults: Faults, seen: Seen, sender: Wire) -> None:
    faults.add(Answer("UnknownError"), "SEND", stage="after")
    await sender.write(sender.sends(plain(b"a")))
    await sender.rest()
    assert seen.of("SEND") == [{}]
    assert seen.of("SEND_ERROR") == [{"fault": 1, "did": "answered"}]
    assert seen.of("SEND_RECEIPT") == []


async def test_a_slow_client_counts_as_alive(seen: Seen, sender: Wire) -> None:
    data = sender.sends(plain(b"a"))
    for start in range(0, len(data), 10):
        await sender.write(data[start : start + 10])
        await sender.rest(25)
    assert seen.of("SEND") == [{}]
    assert seen.ended == []


async def test_frames_are_shown_as_they_were(seen: Seen, sender: Wire) -> None:
    data = sender.sends(plain(b"a"), plain(b"b"))
    await sender.write(data)
    await sender.receipts(2)
    assert b"".join(seen.data[:2]) == data
    assert [(sender.value, name) for sender, name, _ in seen.frames] == [
        ("client", "SEND"),
        ("client", "SEND"),
        ("broker", "SEND_RECEIPT"),
        ("broker", "SEND_RECEIPT"),
    ]
