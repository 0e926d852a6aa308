"""A small matrix, for the tests of reports."""

from __future__ import annotations

from pulsarium.matrix.cell import Cell, Outcome, Result

RESULTS = [
    Result(Cell("reader", "python", "pip", "none"), Outcome.PASS, "", 1.5, "a b/reader.pulscap", "a b/reader.log"),
    Result(Cell("reader", "go", "pip", "none"), Outcome.FAIL, "got <1>, wanted 2 | 3", 0.1, "", "go/reader.log"),
    Result(Cell("seek-id", "python", "pip", "none"), Outcome.TIMEOUT, "no answer in time"),
    Result(Cell("seek-id", "go", "pip", "none"), Outcome.UNSUPPORTED, "no such call"),
    Result(Cell("reader", "rust", "pip", "none"), Outcome.SKIPPED, "no cargo on PATH"),
]
