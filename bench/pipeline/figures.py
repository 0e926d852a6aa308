"""Measured rates, and their table."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from bench.report import machine


@dataclass(frozen=True)
class Figure:
    """Seconds that each run took for so many rows, in so many Spark partitions."""

    what: str
    rows: int
    partitions: int
    seconds: Sequence[float]

    @property
    def rate(self) -> float:
        return self.rows / median(self.seconds)


def as_json(figures: Iterable[Figure]) -> dict[str, Any]:
    return {"machine": machine(), "figures": [{**asdict(each), "rate": each.rate} for each in figures]}


def table(figures: Iterable[Figure]) -> str:
    """Return a Markdown table, as docs/pipeline.md shows it."""
    rows = [
        f"| {each.what} | {each.partitions} | {each.rows:,} | {median(each.seconds):.1f} | {each.rate:,.0f} "
        f"| {each.rate / each.partitions:,.0f} |"
        for each in figures
    ]
    head = [
        "| what | Spark partitions | rows | seconds | rows a second | of each partition |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    cores = f"{os.cpu_count()} cores, which broker, driver and workers share: more partitions than that gain nothing."
    return "\n".join([*head, *rows, "", cores])
