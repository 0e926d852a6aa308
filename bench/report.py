"""Figures out of runs, and the figures as JSON and as tables."""

from __future__ import annotations

import math
import os
import platform
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .measure import Run, Start
from .programs import GROWTH, PROGRAMS, Program

MB = 1_000_000
CPU = "broker CPU, for each message"
RATE = "rate"
LATENCY = "latency of one"
BUSY = "cores in use"
START = "start and idle"
GROWN = "cost of the largest over the smallest"
PARTS = "parts of a run"
GROUPS = (START, CPU, GROWN, PARTS, RATE, LATENCY, BUSY)


@dataclass(frozen=True)
class Figure:
    """One measured quantity: the runs of each broker, in `unit`; `target` is an upper bound for the first broker."""

    name: str
    group: str
    title: str
    unit: str
    digits: int
    runs: Mapping[str, Sequence[float]]
    target: float | None = None

    def median(self, broker: str) -> float | None:
        runs = self.runs.get(broker)
        return statistics.median(runs) if runs else None

    @property
    def met(self) -> bool | None:
        """Whether the first broker keeps the target; None where there is no target or no figure."""
        value = self.median(next(iter(self.runs), ""))
        return None if self.target is None or value is None else value <= self.target

    @property
    def ratio(self) -> float | None:
        """The second broker's median over the first's."""
        medians = [self.median(broker) for broker in self.runs]
        if len(medians) < 2 or medians[1] is None or not medians[0]:
            return None
        return medians[1] / medians[0]

    def as_json(self) -> dict[str, Any]:
        brokers = {name: {"median": self.median(name), "runs": list(runs)} for name, runs in self.runs.items()}
        out: dict[str, Any] = {"figure": self.name, "title": f"{self.title}: {self.group}", "unit": self.unit}
        out["brokers"] = brokers
        if self.target is not None:
            out |= {"target": self.target, "met": self.met}
        if self.ratio is not None:
            out["ratio"] = self.ratio
        return out


def machine() -> dict[str, Any]:
    """What the figures are taken on; without it they mean little."""
    return {
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "load": os.getloadavg()[0],
    }


@dataclass
class Results:
    """Everything measured. The first broker is the one the targets are for."""

    brokers: list[str]
    starts: dict[str, list[Start]] = field(default_factory=dict)
    programs: dict[str, dict[str, list[Run]]] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=machine)

    def figures(self) -> list[Figure]:
        programs = [program for program in PROGRAMS if program.name in self.programs]
        families = {program.family: program for program in programs if program.family}
        grown = [self._growth(name, last) for name, last in families.items() if len(self._members(name)) > 1]
        return self._start_figures() + [f for p in programs for f in self._of(p)] + grown

    def _members(self, family: str) -> list[str]:
        return [program.name for program in PROGRAMS if program.family == family and program.name in self.programs]

    def _growth(self, family: str, last: Program) -> Figure:
        """What an operation costs in the last program of a family over what it costs in the first, run by run."""
        first = self.programs[self._members(family)[0]]
        runs = self.programs[last.name]
        ratios = {
            broker: [large.cpu_us / small.cpu_us for large, small in zip(runs[broker], first[broker], strict=True)]
            for broker in self.brokers
            if broker in runs
        }
        return Figure(f"{family}.growth", GROWN, last.title, "x", 2, ratios, GROWTH)

    def _start_figures(self) -> list[Figure]:
        if not self.starts:
            return []

        def of(pick: Callable[[Start], float]) -> dict[str, list[float]]:
            return {b: [pick(s) for s in self.starts[b]] for b in self.brokers if b in self.starts}

        return [
            Figure("start-connect", START, "launch to CONNECTED", "s", 2, of(lambda s: s.connect_seconds), 0.5),
            Figure("start-ready", START, "launch to ready line", "s", 2, of(lambda s: s.ready_seconds), 0.8),
            Figure("idle-rss", START, "VmRSS", "MB", 1, of(lambda s: s.idle.resident / MB), 60),
            Figure("idle-rss-anon", START, "RssAnon", "MB", 1, of(lambda s: s.idle.anonymous / MB)),
        ]

    def _of(self, program: Program) -> list[Figure]:
        runs = self.programs[program.name]

        def of(pick: Callable[[Run], float]) -> dict[str, list[float]]:
            return {b: [pick(r) for r in runs[b]] for b in self.brokers if b in runs}

        name, title = program.name, program.title
        figures = [
            Figure(f"{name}.cpu", CPU, title, "us", 1, of(lambda r: r.cpu_us), program.target),
            Figure(f"{name}.rate", RATE, title, "/s", 0, of(lambda r: r.rate)),
            Figure(f"{name}.broker-busy", BUSY, f"{title}: broker", "", 2, of(lambda r: r.broker_busy)),
            Figure(f"{name}.client-busy", BUSY, f"{title}: client", "", 2, of(lambda r: r.client_busy)),
        ]
        if program.latencies:
            p50, p99 = of(lambda r: percentile(r.latencies, 50) * 1e6), of(lambda r: percentile(r.latencies, 99) * 1e6)
            figures.append(Figure(f"{name}.p50", LATENCY, f"{title}: p50", "us", 0, p50))
            figures.append(Figure(f"{name}.p99", LATENCY, f"{title}: p99", "us", 0, p99))
        for part in program.parts:
            runs_of_part = {  # not every broker can do every part
                b: [run.parts[part.name] for run in runs[b] if part.name in run.parts]
                for b in self.brokers
                if b in runs
            }
            label = f"{name}: {part.title}"
            figures.append(Figure(f"{name}.{part.name}", PARTS, label, part.unit, 2, runs_of_part, part.target))
        return figures


def percentile(values: Sequence[float], percent: int) -> float:
    """The smallest of the values that at least `percent` of 100 do not exceed; 0 for none."""
    ordered = sorted(values)
    return ordered[math.ceil(len(ordered) * percent / 100) - 1] if ordered else 0.0


def as_json(results: Results) -> dict[str, Any]:
    return {"machine": results.machine, "brokers": results.brokers, "figures": [f.as_json() for f in results.figures()]}


def table(results: Results) -> str:
    """A block a quantity, a line a program: each broker's median, the ratio, the target."""
    groups = {group: [_row(f, results.brokers) for f in results.figures() if f.group == group] for group in GROUPS}
    ratio = "ratio" if len(results.brokers) > 1 else ""
    blocks = [[[group, *results.brokers, ratio, "target"], *rows] for group, rows in groups.items() if rows]
    columns = [max(len(row[n]) for block in blocks for row in block) for n in range(len(results.brokers) + 2)]
    return "\n\n".join("\n".join(_line(row, columns) for row in block) for block in blocks)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    numbers = [cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:], strict=True)]
    return "  ".join([row[0].ljust(widths[0]), *numbers, row[-1]]).rstrip()


def _row(figure: Figure, brokers: Sequence[str]) -> list[str]:
    def shown(value: float | None) -> str:
        return "-" if value is None else f"{value:,.{figure.digits}f} {figure.unit}".rstrip()

    target = "" if figure.target is None else f"<= {figure.target:g}{'' if figure.met else '  MISSED'}"
    ratio = "" if figure.ratio is None else f"{figure.ratio:.1f}x"
    return [figure.title, *(shown(figure.median(broker)) for broker in brokers), ratio, target]
