"""Pairwise selection: few combinations of options that contain every pair of values."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from typing import TypeAlias

Row: TypeAlias = tuple[Hashable, ...]
Pair: TypeAlias = tuple[int, Hashable, int, Hashable]


def pairs_of(row: Row) -> set[Pair]:
    """Return every pair of values in `row`, each value with its column."""
    return {(i, row[i], j, row[j]) for i, j in itertools.combinations(range(len(row)), 2)}


def pairwise(*options: Sequence[Hashable]) -> list[Row]:
    """Return combinations of `options` (one sequence a column) that contain every pair of values of two columns.

    The choice is greedy, and the earlier of two equal rows wins. So every run gives the same rows, in product order.
    The function suits products of hundreds of rows, because it looks at all rows for each row that it takes.
    """
    product: list[Row] = list(itertools.product(*options))
    if len(options) < 2:
        return product
    order = {row: place for place, row in enumerate(product)}
    missing: set[Pair] = set().union(*map(pairs_of, product))
    chosen: list[Row] = []
    while missing:
        best = max(product, key=lambda row: (len(pairs_of(row) & missing), -order[row]))
        chosen.append(best)
        missing -= pairs_of(best)
    return sorted(chosen, key=order.__getitem__)
