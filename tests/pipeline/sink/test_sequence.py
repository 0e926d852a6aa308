"""Sequence ids of rows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.pipeline.sink.once import MOST_BATCHES, MOST_ROWS, OutOfNumbers, batch_of, row_of, sequence_id

PLACES = st.tuples(st.integers(0, MOST_BATCHES - 1), st.integers(0, MOST_ROWS - 1))


@given(PLACES, PLACES)
def test_later_rows_have_higher_numbers(one: tuple[int, int], other: tuple[int, int]) -> None:
    assert (one < other) == (sequence_id(*one) < sequence_id(*other))


@given(PLACES)
def test_a_sequence_id_names_its_place(place: tuple[int, int]) -> None:
    number = sequence_id(*place)
    assert 0 <= number < 2**63
    assert (batch_of(number), row_of(number)) == place


def test_no_number_is_of_no_batch() -> None:
    assert batch_of(-1) == -1


@pytest.mark.parametrize("place", [(-1, 0), (MOST_BATCHES, 0), (0, -1), (0, MOST_ROWS)])
def test_a_row_beyond_the_range_of_sequence_ids_is_refused(place: tuple[int, int]) -> None:
    with pytest.raises(OutOfNumbers):
        sequence_id(*place)
