"""Rows that do not fit, as messages."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pulsarium.pipeline.sink.letters import letter

MOMENTS = pa.timestamp("us", tz="UTC")


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        (pa.array([None], pa.int32()), None),
        (pa.array(["é"]), "é"),
        (pa.array([b"\xff"]), "/w=="),
        (pa.array([1.5]), 1.5),
        (pa.array([float("nan")]), "nan"),
        (pa.array([Decimal("1.50")]), "1.50"),
        (pa.array([date(2026, 1, 2)]), "2026-01-02"),
        (pa.array([datetime(2026, 1, 2, tzinfo=UTC)], MOMENTS), "2026-01-02T00:00:00+00:00"),
        (pa.array([{"a": [b"\xff"]}]), {"a": ["/w=="]}),
        (pa.array([[("k", 1.5)]], pa.map_(pa.string(), pa.float64())), [["k", 1.5]]),
    ],
)
def test_a_letter_has_the_columns_as_json(column: pa.Array, shown: Any) -> None:
    content = letter(pa.record_batch({"c": column}), "t", "r").content(0)
    assert json.loads(content or b"", parse_constant=pytest.fail) == {"c": shown}


def test_a_letter_has_a_time_that_python_does_not_know() -> None:
    content = letter(pa.record_batch({"c": pa.array([2**62], MOMENTS)}), "t", "r").content(0)
    assert str(2**62) in json.loads(content or b"")["c"]
