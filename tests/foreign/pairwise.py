"""All-pairs covering: few rows of a product of options in which every two values still meet."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from typing import TypeAlias

Row: TypeAlias = tuple[Hashable, ...]
Pair: TypeAlias = tuple[int, Hashable, int, Hashable]


def pairs_of(row: Row) -> set[Pair]:
    """Every two values of `row`, each with its column."""
    return {(i, row[i], j, row[j]) for i, j in itertools.combinations(range(len(row)), 2)}


def pairwise(*options: Sequence[Hashable]) -> list[Row]:
    """Rows of the product of `options` (one sequence a column) that hold every pair of values of two columns.

    Greedy over the whole product, ties to the earlier row: the same rows on every run, in product order. Meant for
    products of hundreds of rows, as it looks at each of them for each row it takes.
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
