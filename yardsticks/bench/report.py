"""Compute figures from runs, and print them as text, Markdown or JSON."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from yardsticks.bench.accounting import MB, Memory
from yardsticks.bench.measure import Run, Start
from yardsticks.bench.programs import GROWTH, OUR_CLIENTS, PROGRAMS, Better, Program
from yardsticks.bench.settings import told
from yardsticks.bench.work import percentile

CPU = "CPU, for each message"
RATE = "rate"
LATENCY = "latency of one"
BUSY = "cores in use"
START = "start and memory"
GROWN = "cost of the largest over the smallest"
PARTS = "parts of a run"
GROUPS = (START, CPU, GROWN, PARTS, RATE, LATENCY, BUSY)
LONG = {RATE: "rate", BUSY: "cores in use", GROWN: "cost over that of the smallest"}
"""Suffixes of titles where figures of several groups stand in one table."""
PER_SECOND = "/s"
CONNECTED_BETTER, READY_BETTER, LOADED_BETTER = 15, 12, 10


@dataclass(frozen=True)
class Figure:
    """Runs of each column, in `unit`. The first `ours` columns are Pulsarium's.

    `target` is an upper bound for each of ours, or a lower bound of a rate. `better` is how many times better than the
    next column each of ours must be.
    """

    name: str
    group: str
    title: str
    unit: str
    digits: int
    runs: Mapping[str, Sequence[float]]
    target: float | None = None
    better: float | None = None
    ours: int = 1

    def median(self, column: str) -> float | None:
        runs = self.runs.get(column)
        return statistics.median(runs) if runs else None

    @property
    def ratios(self) -> list[float]:
        """Return how many times better each of ours is: more a second, less of anything else.

        The list is empty for cores in use, which are neither better nor worse, and for growth and shares, which concern
        one broker alone.
        """
        medians = [self.median(column) or 0 for column in self.runs]
        if self.group == BUSY or self.unit == "x" or len(medians) <= self.ours or min(medians) <= 0:
            return []  # memory may shrink
        theirs = medians[self.ours]
        return [each / theirs if self.unit == PER_SECOND else theirs / each for each in medians[: self.ours]]

    @property
    def targets(self) -> list[tuple[str, bool]]:
        """Return the targets as text, each with whether it is met. The list is empty without targets."""
        values = [value for column in list(self.runs)[: self.ours] if (value := self.median(column)) is not None]
        found = []
        if self.target is not None and values:
            least = self.unit == PER_SECOND
            met = min(values) >= self.target if least else max(values) <= self.target
            found.append((f"{'>=' if least else '<='} {self.target:,g}", met))
        if self.better is not None and (ratios := self.ratios):
            found.append((f"{self.better:g}x", min(ratios) >= self.better))
        return found

    @property
    def met(self) -> bool | None:
        """Return whether all targets are met, or None without targets."""
        return all(kept for _, kept in self.targets) if self.targets else None

    def as_json(self) -> dict[str, Any]:
        columns = {name: {"median": self.median(name), "runs": list(runs)} for name, runs in self.runs.items()}
        out: dict[str, Any] = {"figure": self.name, "title": f"{self.title}: {self.group}", "unit": self.unit}
        out |= {"brokers": columns, "times_better": self.ratios}
        if self.met is not None:
            out |= {"target": self.target, "times_better_target": self.better, "met": self.met}
        return out

    def cells(self, columns: Sequence[str]) -> list[str]:
        def shown(value: float | None) -> str:
            return "-" if value is None else f"{value:,.{self.digits}f} {self.unit}".rstrip()

        targets = ", ".join(told if kept else f"{told}  MISSED" for told, kept in self.targets)
        better = ", ".join(f"{ratio:.2f}x" for ratio in self.ratios)
        return [self.title, *(shown(self.median(column)) for column in columns), better, targets]


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
    """Measurements of all columns: brokers, or clients on one broker.

    The targets are for Pulsarium. Those for its advantage apply only `beside_pulsar`. `loaded` is the memory after all
    programs. `settings` are those of the brokers that are `configured`, when two are compared.
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
    of_clients: bool = False

    def figures(self) -> list[Figure]:
        programs = [program for program in PROGRAMS if program.name in self.programs]
        figures = [*self._start(), *(figure for each in programs for figure in self._of(each))]
        families: dict[str, list[Program]] = {}
        for program in programs:
            families.setdefault(program.family, []).append(program)
        figures += [self._growth(members) for family, members in families.items() if family and len(members) > 1]
        if self.of_clients:
            figures = [replace(each, ours=OUR_CLIENTS) for each in figures if each.group in (CPU, RATE, LATENCY)]
        return figures if self.beside_pulsar else [replace(figure, better=None) for figure in figures]

    def _each(self, told: Mapping[str, Sequence[Any]], pick: Callable[[Any], float]) -> dict[str, list[float]]:
        return {broker: [pick(each) for each in told[broker]] for broker in self.brokers if broker in told}

    def _growth(self, members: Sequence[Program]) -> Figure:
        """Return the cost of an operation in the last program of a family over that in the first, run by run."""
        first, last = self.programs[members[0].name], self.programs[members[-1].name]
        pairs = {broker: list(zip(last[broker], first[broker], strict=True)) for broker in last}
        ratios = self._each(pairs, lambda pair: pair[0].cpu_us / pair[1].cpu_us)
        return Figure(f"{members[0].family}.growth", GROWN, members[-1].title, "x", 2, ratios, GROWTH)

    def _start(self) -> Iterable[Figure]:
        """Yield the figures of starts and of memory. The targets of memory are for resident memory."""
        if self.starts:
            connected = self._each(self.starts, lambda start: start.connect_seconds)
            ready = self._each(self.starts, lambda start: start.ready_seconds)
            yield Figure("start-connect", START, "launch to CONNECTED", "s", 2, connected, 0.5, CONNECTED_BETTER)
            yield Figure("start-ready", START, "launch to ready line", "s", 2, ready, 0.8, READY_BETTER)
        idle = {broker: [start.idle for start in starts] for broker, starts in self.starts.items()}
        loaded = {broker: [memory] for broker, memory in self.loaded.items()}
        for when, held, target, better in (("idle", idle, 60, None), ("loaded", loaded, None, LOADED_BETTER)):
            if held:
                resident = self._each(held, lambda memory: memory.resident / MB)
                anonymous = self._each(held, lambda memory: memory.anonymous / MB)
                yield Figure(f"{when}-rss", START, f"VmRSS, {when}", "MB", 1, resident, target, better)
                yield Figure(f"{when}-rss-anon", START, f"RssAnon, {when}", "MB", 1, anonymous)

    def _of(self, program: Program) -> Iterable[Figure]:
        runs, name, title = self.programs[program.name], program.name, program.title

        def of(pick: Callable[[Run], float]) -> dict[str, list[float]]:
            return self._each(runs, pick)

        target, better, least = program.target, program.better, None
        if len(self.brokers) > 1:
            target = None  # storing costs more
        if self.of_clients:
            better, least = Better(rate=1), program.least
        cpu = of(lambda run: run.client_cpu_us if self.of_clients else run.cpu_us)
        yield Figure(f"{name}.cpu", CPU, title, "us", 1, cpu, target, better.cpu)
        yield Figure(f"{name}.rate", RATE, title, PER_SECOND, 0, of(lambda run: run.rate), least, better.rate)
        yield Figure(f"{name}.broker-busy", BUSY, f"{title}: broker", "", 2, of(lambda run: run.broker_busy))
        yield Figure(f"{name}.client-busy", BUSY, f"{title}: client", "", 2, of(lambda run: run.client_busy))
        if program.latencies:
            p50 = of(lambda run: percentile(run.latencies, 50) * 1e6)
            p99 = of(lambda run: percentile(run.latencies, 99) * 1e6)
            yield Figure(f"{name}.p50", LATENCY, f"{title}: p50", "us", 0, p50)
            yield Figure(f"{name}.p99", LATENCY, f"{title}: p99", "us", 0, p99, better=better.p99)
        for part in program.parts:  # not every broker supports every part
            found = {b: [run.parts[part.name] for run in each if part.name in run.parts] for b, each in runs.items()}
            label = f"{name}: {part.title}"
            yield Figure(f"{name}.{part.name}", PARTS, label, part.unit, 2, self._each(found, float), part.target)

    def how(self) -> str:
        """Return how the figures were measured: the runs, and the settings of both brokers."""
        warmed = f" after {self.warm_ups} to warm up" if self.warm_ups else ""
        runs = f"Medians of {self.repetitions} run{'s' * (self.repetitions > 1)}{warmed}."
        return f"{runs} {' and '.join(self.configured)}: {told(self.settings)}." if self.configured else runs

    def cpu_of(self, group: str) -> str:
        """Return the name of a group, with whose CPU it is."""
        return f"{'client' if self.of_clients else 'broker'} {group}" if group == CPU else group

    def as_json(self) -> dict[str, Any]:
        runs = {"warm_ups": self.warm_ups, "repetitions": self.repetitions, "settings": dict(self.settings)}
        figures = [figure.as_json() for figure in self.figures()]
        return {"machine": self.machine, "brokers": self.brokers, **runs, "figures": figures}


def table(results: Results) -> str:
    """Return a block per quantity and a line per program: medians, the first broker's advantage, and targets."""
    groups = {group: [f.cells(results.brokers) for f in results.figures() if f.group == group] for group in GROUPS}
    better = "better" if len(results.brokers) > 1 else ""
    blocks = [
        [[results.cpu_of(group), *results.brokers, better, "target"], *rows] for group, rows in groups.items() if rows
    ]
    widths = [max(len(cells[n]) for block in blocks for cells in block) for n in range(len(results.brokers) + 2)]

    def line(row: Sequence[str]) -> str:
        numbers = [cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:], strict=True)]
        return "  ".join([row[0].ljust(widths[0]), *numbers, row[-1]]).rstrip()

    return "\n\n".join([results.how(), *("\n".join(map(line, block)) for block in blocks)])


def markdown(results: Results) -> str:
    """Return the figures with targets, then the others, without the cores in use."""
    figures = sorted(results.figures(), key=lambda figure: GROUPS.index(figure.group))
    on = results.machine
    where = f"{on['cores']} cores ({on['machine']}, {on['system']}), Python {on['python']}"
    held, free = [f for f in figures if f.targets], [f for f in figures if not f.targets and f.group != BUSY]
    blocks = [_markdown(each, results) for each in (held, free) if each]
    if held and free:
        blocks.insert(1, "Figures without a target, from the same run:")
    return "\n\n".join([f"{results.how()} On {where}.", *blocks])


def _markdown(figures: Sequence[Figure], results: Results) -> str:
    rows = [["", *results.brokers, "better", "target"]]
    for figure in figures:
        group = results.cpu_of(CPU).partition(",")[0] if figure.group == CPU else LONG.get(figure.group)
        title = f"{figure.title}: {group}" if group else figure.title
        rows.append([title, *figure.cells(results.brokers)[1:]])
    if len(results.brokers) == 1:
        rows = [[*cells[:-2], cells[-1]] for cells in rows]
    return in_markdown(rows if any(figure.targets for figure in figures) else [cells[:-1] for cells in rows])


def in_markdown(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as a Markdown table, whose first row is its head. All columns but the first are numbers."""
    lines = ["---", *("---:" for _ in rows[0][1:])]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (rows[0], lines, *rows[1:]))
