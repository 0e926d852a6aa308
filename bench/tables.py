"""Print figures as text, Markdown or JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from bench.figure import BUSY, CPU, GROUPS, GROWN, RATE, Figure
from bench.report import Results
from bench.settings import told

LONG = {CPU: "broker CPU", RATE: "rate", BUSY: "cores in use", GROWN: "cost over that of the smallest"}
"""Suffixes of titles where figures of several groups stand in one table."""


def as_json(results: Results) -> dict[str, Any]:
    figures = [figure.as_json() for figure in results.figures()]
    runs = {"warm_ups": results.warm_ups, "repetitions": results.repetitions, "settings": dict(results.settings)}
    return {"machine": results.machine, "brokers": results.brokers, **runs, "figures": figures}


def how(results: Results) -> str:
    """Return how the figures were measured: the runs, and the settings of both brokers."""
    warmed = f" after {results.warm_ups} to warm up" if results.warm_ups else ""
    runs = f"Medians of {results.repetitions} run{'s' * (results.repetitions > 1)}{warmed}."
    return f"{runs} {' and '.join(results.configured)}: {told(results.settings)}." if results.configured else runs


def table(results: Results) -> str:
    """Return a block per quantity and a line per program: medians, the first broker's advantage, and targets."""
    groups = {group: [row(f, results.brokers) for f in results.figures() if f.group == group] for group in GROUPS}
    better = "better" if len(results.brokers) > 1 else ""
    blocks = [[[group, *results.brokers, better, "target"], *rows] for group, rows in groups.items() if rows]
    columns = [max(len(cells[n]) for block in blocks for cells in block) for n in range(len(results.brokers) + 2)]
    return "\n\n".join([how(results), *("\n".join(_line(cells, columns) for cells in block) for block in blocks)])


def markdown(results: Results) -> str:
    """Return the figures with targets, then the others, without the cores in use."""
    figures = sorted(results.figures(), key=lambda figure: GROUPS.index(figure.group))
    on = results.machine
    where = f"{on['cores']} cores ({on['machine']}, {on['system']}), Python {on['python']}"
    held, free = [f for f in figures if f.targets], [f for f in figures if not f.targets and f.group != BUSY]
    blocks = ["\n".join(_markdown_lines(each, results.brokers)) for each in (held, free) if each]
    if held and free:
        blocks.insert(1, "Figures without a target, from the same run:")
    return "\n\n".join([f"{how(results)} On {where}.", *blocks])


def _markdown_lines(figures: Iterable[Figure], brokers: Sequence[str]) -> list[str]:
    heads = ["", *brokers, "better", "target"]
    lines = [heads, ["---", *("---:" for _ in brokers), "---:", "---"]]
    for figure in figures:
        group = LONG.get(figure.group)
        title = f"{figure.title}: {group}" if group else figure.title
        lines.append([title, *row(figure, brokers)[1:]])
    if len(brokers) == 1:
        lines = [[*cells[:-2], cells[-1]] for cells in lines]
    if not any(figure.targets for figure in figures):
        lines = [cells[:-1] for cells in lines]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    numbers = [cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:], strict=True)]
    return "  ".join([row[0].ljust(widths[0]), *numbers, row[-1]]).rstrip()


def row(figure: Figure, brokers: Sequence[str]) -> list[str]:
    def shown(value: float | None) -> str:
        return "-" if value is None else f"{value:,.{figure.digits}f} {figure.unit}".rstrip()

    targets = ", ".join(told if kept else f"{told}  MISSED" for told, kept in figure.targets)
    better = "" if figure.ratio is None else f"{figure.ratio:.2f}x"
    return [figure.title, *(shown(figure.median(broker)) for broker in brokers), better, targets]
