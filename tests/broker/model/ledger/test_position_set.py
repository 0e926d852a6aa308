"""Sets of positions, compared with plain Python sets."""

from __future__ import annotations

from itertools import pairwise
from struct import pack

from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.position_set import LAST_ID, PositionSet
from tests.broker.steps import steps_of

positions = st.builds(Position, st.integers(0, 4), st.one_of(st.integers(0, 12), st.integers(LAST_ID - 4, LAST_ID - 1)))
anywhere = st.one_of(
    positions, st.builds(Position, st.integers(-1, 5), st.sampled_from([-1, -2, LAST_ID + 1, 2**63 - 1, -(2**63)]))
)
changes = st.one_of(
    st.tuples(st.just("add"), positions),
    st.tuples(st.just("update"), st.lists(positions, max_size=8)),
    st.tuples(st.just("discard"), anywhere),
    st.tuples(st.just("remove_through"), positions),
    st.tuples(st.just("add_range"), st.tuples(st.integers(0, 4), st.integers(0, 12), st.integers(0, 14))),
)


def made_by(program: list[tuple[str, object]]) -> tuple[PositionSet, set[Position]]:
    made, model = PositionSet(), set[Position]()
    for verb, argument in program:
        if verb == "add_range":
            ledger_id, first, stop = argument  # type: ignore[misc]
            made.add_range(ledger_id, first, stop)  # type: ignore[has-type]
            model |= {Position(ledger_id, entry_id) for entry_id in range(first, stop)}  # type: ignore[has-type]
            continue
        if verb == "update":
            assert isinstance(argument, list)
            made.update(argument)
            model.update(argument)
            continue
        assert isinstance(argument, Position)
        getattr(made, verb)(argument)
        if verb == "add":
            model.add(argument)
        elif verb == "discard":
            model.discard(argument)
        else:
            model = {position for position in model if position > argument}
    return made, model


@given(st.lists(changes, max_size=20), anywhere, positions)
def test_a_position_set_behaves_as_a_plain_set(
    program: list[tuple[str, object]], probe: Position, place: Position
) -> None:
    made, model = made_by(program)
    assert list(made) == sorted(model)
    assert len(made) == len(model)
    assert bool(made) is bool(model)
    assert made.first() == min(model, default=None)
    assert (probe in made) is (probe in model)
    for ledger_id in range(5):
        assert set(made.of(ledger_id) or ()) == {p.entry_id for p in model if p.ledger_id == ledger_id}
    check_ranges(made, model)
    assert made.count_through(place) == sum(position <= place for position in model)
    end = place.entry_id
    while Position(place.ledger_id, end) in model:
        end += 1
    assert made.run_end(*place) == end - 1
    assert made.take_run(*place) == end - 1
    taken = {p for p in model if p.ledger_id == place.ledger_id and place.entry_id <= p.entry_id < end}
    assert list(made) == sorted(model - taken)
    made.clear()
    assert list(made) == []
    assert not made


def check_ranges(made: PositionSet, model: set[Position]) -> None:
    """Assert that the ranges cover exactly the positions of the set, and do not touch each other."""
    ranges = list(made.ranges())
    assert made.count_ranges() == len(ranges)
    covered = [
        Position(last.ledger_id, entry_id)
        for before, last in ranges
        for entry_id in range(before.entry_id + 1, last.entry_id + 1)
    ]
    assert covered == sorted(model)
    for (_, last), (before, _) in pairwise(ranges):
        assert before > last or before.ledger_id > last.ledger_id


@given(st.integers(0, LAST_ID - 5010), st.integers(1, 5000), st.integers(1, 3))
def test_long_runs_of_positions_are_one_range(first: int, length: int, gap: int) -> None:
    made = PositionSet()
    made.add_range(1, first, first + length)
    made.add_range(1, first + length + gap, first + length + gap + 3)
    assert made.run_end(1, first) == first + length - 1
    assert made.run_end(1, first + length // 2) == first + length - 1
    assert made.count_ranges() == 2
    assert made.take_run(1, first) == first + length - 1
    assert len(made) == 3


@given(
    st.lists(
        st.tuples(st.integers(0, 300_000), st.integers(1, 70_000), st.sampled_from([1, 2, 50])), min_size=1, max_size=4
    ),
    st.floats(0, 1),
)
def test_words_have_a_bit_for_each_entry_up_to_the_last(pieces: list[tuple[int, int, int]], part: float) -> None:
    """Bitmaps keep runs, few entries and many entries in different forms, and several of them in one ledger."""
    entries = PositionSet()
    for first, length, step in pieces:
        if step == 1:
            entries.add_range(7, first, first + length)
        else:
            entries.update(Position(7, entry) for entry in range(first, first + length, step))
    kept = [position.entry_id for position in entries]
    last = kept[int(part * (len(kept) - 1))]
    bits = bytearray(last // 64 * 8 + 8)
    for entry in kept:
        if entry <= last:
            bits[entry >> 3] |= 1 << (entry & 7)
    assert pack(f"<{len(bits) // 8}q", *entries.words(7, last)) == bits


def test_words_of_a_ledger_take_no_step_for_each_entry() -> None:
    """An acknowledgement encodes all of them."""
    entries = PositionSet()
    entries.update(Position(7, entry) for entry in range(0, 6 << 16, 2))
    assert 0 < steps_of(lambda: entries.words(7, (6 << 16) - 2)) < 1000
