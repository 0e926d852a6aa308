"""Compute figures from runs."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bench.accounting import Memory
from bench.figure import BUSY, CPU, GROWN, LATENCY, PARTS, PER_SECOND, RATE, START, Figure
from bench.measure import Run, Start
from bench.program import GROWTH, Program
from bench.programs import PROGRAMS

MB = 1_000_000
CONNECTED_BETTER = 15
READY_BETTER = 12
LOADED_BETTER = 10


def machine() -> dict[str, Any]:
    """Return the machine's description, without which the figures mean little."""
    return {
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "load": os.getloadavg()[0],
    }


@dataclass
class Results:
    """Measurements of all brokers.

    The targets are for the first broker. Those for its advantage apply only `beside_pulsar`. `loaded` is the memory
    after all programs. `settings` are those of the brokers that are `configured`, when two are compared.
    """

    brokers: list[str]
    starts: dict[str, list[Start]] = field(default_factory=dict)
    programs: dict[str, dict[str, list[Run]]] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=machine)
    loaded: dict[str, Memory] = field(default_factory=dict)
    warm_ups: int = 0
    repetitions: int = 1
    settings: Mapping[str, str] = field(default_factory=dict)
    configured: Sequence[str] = ()
    beside_pulsar: bool = True

    def figures(self) -> list[Figure]:
        figures = self._figures()
        return figures if self.beside_pulsar else [replace(figure, better=None) for figure in figures]

    def _figures(self) -> list[Figure]:
        programs = [program for program in PROGRAMS if program.name in self.programs]
        families = {program.family: program for program in programs if program.family}
        grown = [self._growth(name, last) for name, last in families.items() if len(self._members(name)) > 1]
        return self._start_figures() + self._loaded_figures() + [f for p in programs for f in self._of(p)] + grown

    def _members(self, family: str) -> list[str]:
        return [program.name for program in PROGRAMS if program.family == family and program.name in self.programs]

    def _growth(self, family: str, last: Program) -> Figure:
        """Return the cost of an operation in the last program of a family over that in the first, run by run."""
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

        def figure(
            name: str, title: str, unit: str, pick: Callable[[Start], float], target: float, better: float | None = None
        ) -> Figure:
            runs = {b: [pick(s) for s in self.starts[b]] for b in self.brokers if b in self.starts}
            return Figure(name, START, title, unit, 1 if unit == "MB" else 2, runs, target, better)

        return [
            figure("start-connect", "launch to CONNECTED", "s", lambda s: s.connect_seconds, 0.5, CONNECTED_BETTER),
            figure("start-ready", "launch to ready line", "s", lambda s: s.ready_seconds, 0.8, READY_BETTER),
            *self._memory("idle", {b: [s.idle for s in starts] for b, starts in self.starts.items()}, target=60),
        ]

    def _loaded_figures(self) -> list[Figure]:
        if not self.loaded:
            return []
        return self._memory("loaded", {b: [memory] for b, memory in self.loaded.items()}, better=LOADED_BETTER)

    def _memory(
        self,
        when: str,
        told: Mapping[str, Sequence[Memory]],
        target: float | None = None,
        better: float | None = None,
    ) -> list[Figure]:
        """Return the figures of memory. The targets are for resident memory."""
        resident = {b: [m.resident / MB for m in told[b]] for b in self.brokers if b in told}
        anonymous = {b: [m.anonymous / MB for m in told[b]] for b in self.brokers if b in told}
        return [
            Figure(f"{when}-rss", START, f"VmRSS, {when}", "MB", 1, resident, target, better),
            Figure(f"{when}-rss-anon", START, f"RssAnon, {when}", "MB", 1, anonymous),
        ]

    def _of(self, program: Program) -> list[Figure]:
        runs = self.programs[program.name]

        def of(pick: Callable[[Run], float]) -> dict[str, list[float]]:
            return {b: [pick(r) for r in runs[b]] for b in self.brokers if b in runs}

        name, title, better = program.name, program.title, program.better
        target = program.target if len(self.brokers) == 1 else None  # storing costs more
        figures = [
            Figure(f"{name}.cpu", CPU, title, "us", 1, of(lambda r: r.cpu_us), target, better.cpu),
            Figure(f"{name}.rate", RATE, title, PER_SECOND, 0, of(lambda r: r.rate), better=better.rate),
            Figure(f"{name}.broker-busy", BUSY, f"{title}: broker", "", 2, of(lambda r: r.broker_busy)),
            Figure(f"{name}.client-busy", BUSY, f"{title}: client", "", 2, of(lambda r: r.client_busy)),
        ]
        if program.latencies:
            p50, p99 = of(lambda r: percentile(r.latencies, 50) * 1e6), of(lambda r: percentile(r.latencies, 99) * 1e6)
            figures.append(Figure(f"{name}.p50", LATENCY, f"{title}: p50", "us", 0, p50))
            figures.append(Figure(f"{name}.p99", LATENCY, f"{title}: p99", "us", 0, p99, better=better.p99))
        for part in program.parts:
            runs_of_part = {  # not every broker supports every part
                b: [run.parts[part.name] for run in runs[b] if part.name in run.parts]
                for b in self.brokers
                if b in runs
            }
            label = f"{name}: {part.title}"
            figures.append(Figure(f"{name}.{part.name}", PARTS, label, part.unit, 2, runs_of_part, part.target))
        return figures


def percentile(values: Sequence[float], percent: int) -> float:
    """Return the smallest value that at least `percent` of 100 values do not exceed, or 0 without values."""
    ordered = sorted(values)
    return ordered[math.ceil(len(ordered) * percent / 100) - 1] if ordered else 0.0
