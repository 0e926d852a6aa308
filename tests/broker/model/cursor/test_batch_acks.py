"""Partly acknowledged batches, compared with sets of the messages that are not acknowledged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.model.cursor.records import BatchAcks
from pulsarium.broker.model.ledger.position import Position
from pulsarium.proto.message_id import bits_of, words_of

indexes = st.sets(st.integers(0, 200), max_size=40)
positions = st.builds(Position, st.integers(0, 2), st.integers(0, 3))
words = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4)


def words_with(remaining: set[int]) -> list[int]:
    """Return an ack set as a client writes it, by Java's BitSet.toLongArray."""
    return words_of(sum(1 << index for index in remaining))


@given(indexes)
def test_words_have_a_bit_for_each_message_that_remains(remaining: set[int]) -> None:
    made = words_with(remaining)
    assert all(-(2**63) <= word < 2**63 for word in made)
    assert not made or made[-1] != 0
    assert {i for i in range(len(made) * 64) if made[i // 64] >> i % 64 & 1} == remaining


@given(words)
def test_any_words_come_back_without_trailing_zeros(words: list[int]) -> None:
    trimmed = list(words)
    while trimmed and trimmed[-1] == 0:
        trimmed.pop()
    assert words_of(bits_of(words)) == trimmed


@pytest.mark.req("S54-09")
@pytest.mark.parametrize(
    ("size", "acked", "words"),
    [
        (10, {3}, [1015]),
        (70, set(range(64)), [0, 63]),
        (64, set(), [-1]),
        (64, set(range(63)), [-(2**63)]),
        (65, set(range(64)), [0, 1]),
        (128, set(), [-1, -1]),
        (65, {64}, [-1]),  # a last word without bits is left out
        (5, set(range(5)), []),
    ],
)
def test_words_as_java_writes_them(size: int, acked: set[int], words: list[int]) -> None:
    assert words_with(set(range(size)) - acked) == words
    assert words_of(bits_of([*words, 0, 0])) == words


def test_recorded_ack_sets_are_read_and_written() -> None:
    assert bits_of([-2]) == 2**64 - 2
    assert words_of(2**64 | 21) == [21, 1]


@pytest.mark.req("S54-14")
def test_late_acks_bring_nothing_back() -> None:
    made, position = BatchAcks(), Position(1, 0)
    assert not made.merge(position, [30])  # acknowledges index 0 of 5
    assert not made.merge(position, [29])  # acknowledges index 1 of 5
    assert not made.merge(position, [30])  # acknowledges index 0 again
    assert made.words(position) == [28]
    assert made.remaining(position) == 3


@pytest.mark.req("S54-10")
@pytest.mark.parametrize("words", [[], [0], [0, 0]])
def test_nothing_left_is_all_acknowledged(words: list[int]) -> None:
    made, position = BatchAcks(), Position(1, 0)
    made.merge(position, [7, 1])
    assert made.merge(position, words)
    assert len(made) == 0
    assert made.words(position) == []


steps = st.one_of(
    st.tuples(st.just("merge"), positions, indexes),
    st.tuples(st.just("forget"), positions, st.just(set[int]())),
    st.tuples(st.just("forget_through"), positions, st.just(set[int]())),
)


@given(st.lists(steps, max_size=20))
def test_batch_acks_behave_as_plain_sets(program: list[tuple[str, Position, set[int]]]) -> None:
    made, model = BatchAcks(), dict[Position, set[int]]()
    for verb, position, remaining in program:
        if verb == "merge":
            left = model.get(position, remaining) & remaining
            assert made.merge(position, words_with(remaining)) is not bool(left)
            model.pop(position, None)
            if left:
                model[position] = left
        elif verb == "forget":
            made.forget(position)
            model.pop(position, None)
        else:
            made.forget_through(position)
            model = {known: left for known, left in model.items() if known > position}
        assert len(made) == len(model)
        assert [(known, made.words(known)) for known in made] == [
            (known, words_with(left)) for known, left in sorted(model.items())
        ]
        for probe in {position, Position(9, 9)}:
            assert made.remaining(probe) == len(model.get(probe, ()))
            assert made.words(probe) == words_with(model.get(probe, set()))
    made.clear()
    assert list(made) == []
