"""The order of rows in each attempt."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsarium.pipeline.sink.once import by_content

SCHEMA = pa.schema(
    [
        ("number", pa.int64()),
        ("text", pa.string()),
        ("real", pa.float64()),
        ("bytes", pa.binary()),
        ("map", pa.map_(pa.string(), pa.string())),
        ("list", pa.list_(pa.int32())),
        ("struct", pa.struct([("inner", pa.int32())])),
    ]
)
ROWS = st.fixed_dictionaries(
    {
        "number": st.none() | st.integers(0, 3),
        "text": st.none() | st.sampled_from("ab"),
        "real": st.none() | st.sampled_from([0.0, 1.5, float("inf")]),
        "bytes": st.none() | st.binary(max_size=1),
        "map": st.none() | st.lists(st.tuples(st.sampled_from("ab"), st.none()), max_size=1),
        "list": st.none() | st.lists(st.integers(0, 1), max_size=2),
        "struct": st.none() | st.fixed_dictionaries({"inner": st.integers(0, 1)}),
    }
)


def batches(rows: list[dict[str, Any]], size: int) -> list[pa.RecordBatch]:
    return list(pa.Table.from_pylist(rows, SCHEMA).to_batches(max_chunksize=size))


def rows_of(found: list[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in found for row in batch.to_pylist()]


@settings(max_examples=50)
@given(st.lists(ROWS, min_size=1, max_size=20), st.randoms(use_true_random=False), st.integers(1, 5))
def test_rows_are_sorted_alike_in_any_order_of_arrival(
    rows: list[dict[str, Any]], chance: random.Random, size: int
) -> None:
    shuffled = chance.sample(rows, len(rows))
    one, other = (rows_of(list(by_content(iter(batches(each, size))))) for each in (rows, shuffled))
    assert one == other
    assert sorted(map(repr, one)) == sorted(map(repr, rows_of(batches(rows, size))))
