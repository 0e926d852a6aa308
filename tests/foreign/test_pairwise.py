from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from .pairwise import pairs_of, pairwise
from .scenario import ALL, EVERYDAY

columns = st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True), min_size=2, max_size=4)


@given(columns)
def test_every_pair_of_values_is_covered(options: list[list[int]]) -> None:
    rows = pairwise(*options)
    covered = set().union(*map(pairs_of, rows))
    assert covered == set().union(*map(pairs_of, itertools.product(*options)))


@given(columns)
def test_rows_come_from_the_product_once_each_and_in_its_order(options: list[list[int]]) -> None:
    product = list(itertools.product(*options))
    places = [product.index(tuple(row)) for row in pairwise(*options)]  # type: ignore[arg-type]
    assert places == sorted(set(places))


def test_one_column_is_all_of_it() -> None:
    assert pairwise("abc") == [("a",), ("b",), ("c",)]


def test_nothing_to_combine() -> None:
    assert pairwise([], [1, 2]) == []


def test_two_columns_are_the_whole_product() -> None:
    assert pairwise("ab", [1, 2, 3]) == list(itertools.product("ab", [1, 2, 3]))


def test_the_everyday_matrix_is_small_and_the_same_every_time() -> None:
    assert len(ALL) == 60
    assert len(EVERYDAY) <= 18
    assert set(EVERYDAY) <= set(ALL)
