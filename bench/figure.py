"""A measured quantity: its runs, its medians and its targets."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

CPU = "broker CPU, for each message"
RATE = "rate"
LATENCY = "latency of one"
BUSY = "cores in use"
START = "start and memory"
GROWN = "cost of the largest over the smallest"
PARTS = "parts of a run"
GROUPS = (START, CPU, GROWN, PARTS, RATE, LATENCY, BUSY)
PER_SECOND = "/s"
RELATIVE = ("x", "%")


@dataclass(frozen=True)
class Figure:
    """Runs of each broker, in `unit`.

    `target` is an upper bound for the first broker. `better` is how many times better than the second broker the first
    must be.
    """

    name: str
    group: str
    title: str
    unit: str
    digits: int
    runs: Mapping[str, Sequence[float]]
    target: float | None = None
    better: float | None = None

    def median(self, broker: str) -> float | None:
        runs = self.runs.get(broker)
        return statistics.median(runs) if runs else None

    @property
    def ratio(self) -> float | None:
        """Return how many times better the first broker is: more a second, less of anything else.

        Return None for cores in use, which are neither better nor worse, and for growth and shares, which concern one
        broker alone.
        """
        medians = [self.median(broker) for broker in self.runs]
        if self.group == BUSY or self.unit in RELATIVE or len(medians) < 2:
            return None
        ours, theirs = medians[0] or 0, medians[1] or 0
        if ours <= 0 or theirs <= 0:  # memory may shrink
            return None
        return ours / theirs if self.unit == PER_SECOND else theirs / ours

    @property
    def targets(self) -> list[tuple[str, bool]]:
        """Return the targets as text, each with whether it is met. The list is empty without targets."""
        value, ratio = self.median(next(iter(self.runs), "")), self.ratio
        bound = [] if self.target is None or value is None else [(f"<= {self.target:g}", value <= self.target)]
        times = [] if self.better is None or ratio is None else [(f"{self.better:g}x", ratio >= self.better)]
        return bound + times

    @property
    def met(self) -> bool | None:
        """Return whether the first broker meets all targets, or None without targets."""
        return all(kept for _, kept in self.targets) if self.targets else None

    def as_json(self) -> dict[str, Any]:
        brokers = {name: {"median": self.median(name), "runs": list(runs)} for name, runs in self.runs.items()}
        out: dict[str, Any] = {"figure": self.name, "title": f"{self.title}: {self.group}", "unit": self.unit}
        out["brokers"] = brokers
        if self.ratio is not None:
            out["times_better"] = self.ratio
        if self.met is not None:
            out |= {"target": self.target, "times_better_target": self.better, "met": self.met}
        return out
