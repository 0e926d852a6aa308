"""What is remembered of how a subscription went past entries."""

from __future__ import annotations

from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.passes import KEPT, How, Pass, Passes


def at(entry: int) -> Position:
    return Position(7, entry)


def test_the_last_one_that_went_past_it() -> None:
    passes = Passes(at(-1))
    passes.note(How.CUMULATIVE, at(-1), at(3))
    passes.note(How.CUMULATIVE, at(4), at(5))
    passes.note(How.EXPIRED, at(5), at(5), 1)
    passes.note(How.SKIPPED, at(6), at(8), 2)
    cumulative, skipped = Pass(How.CUMULATIVE, at(-1), at(5), 0), Pass(How.SKIPPED, at(6), at(8), 2)
    assert [passes.of(at(entry)) for entry in (0, 5, 6, 7, 8, 9)] == [
        cumulative,
        cumulative,
        None,
        skipped,
        skipped,
        None,
    ]


def test_a_seek_forgets() -> None:
    passes = Passes(at(3))
    passes.note(How.SKIPPED, at(3), at(9), 1)
    passes.sought(at(4), 2)
    assert passes.of(at(9)) is None
    found = passes.of(at(2))
    assert found is not None
    assert (found.how, found.through, found.ms) == (How.SEEK, at(4), 2)
    assert passes.start < at(0)


def test_not_all_is_remembered() -> None:
    passes = Passes(at(-1))
    for entry in range(KEPT + 5):
        passes.note(How.EXPIRED, at(entry - 1), at(entry), 1)
    assert passes.forgotten == at(4)
    assert passes.of(at(4)) is None
    assert passes.of(at(5)) is not None
