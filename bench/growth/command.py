"""Run scripts/bench growth: measure how the cost of a message grows, and write a table and a picture."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from textwrap import wrap

from bench.brokers import ROOT
from bench.growth.measures import AXES, Axis
from bench.growth.picture import Costs, short, svg
from bench.program import GROWTH
from bench.report import machine

ABOUT = """\
Measures the broker's CPU time for a message while the number of topics, connections or consumers grows, or the backlog
beside it, and the CPU time of a start while the data directory grows. Each broker has a data directory. Every size is
measured N times in turn, and the median counts.

  scripts/bench growth --write               everything, with 100,000 topics, 5,000 connections and 50 GB of backlog:
                                             half an hour, and 55 GB of disk; writes docs/growth.md and its picture
  scripts/bench growth --up-to 0.01          sizes up to a hundredth of the largest: minutes
  scripts/bench growth topics connections    only these
"""

PAGE = ROOT / "docs" / "growth.md"
PICTURE = ROOT / "docs" / "images" / "growth.svg"

WHY: Mapping[str, str] = {
    "topics": "A message that is alone on its topic in a turn pays for its topic's commit, dispatch, receipt and "
    "acknowledgement alone. Of 64 messages for one topic in a turn, each pays for a part of these. With "
    "up to 100 topics, several messages of a topic share a turn here. With 20 topics in memory, a message "
    "alone takes 23 us of the event loop, spread over 190 calls. With 1,000 topics it takes 35 us, and 46 "
    "us with a data directory. The storage threads take 14 us more.",
}
"""Why an axis exceeds its limit."""


def sizes_of(axis: Axis, up_to: float) -> Sequence[int]:
    """Return the sizes up to a share of the largest, at least two of them."""
    kept = [size for size in axis.sizes if size <= axis.sizes[-1] * up_to]
    return kept if len(kept) > 1 else axis.sizes[:2]


def measured(axis: Axis, up_to: float, repetitions: int, count: int) -> list[tuple[int, float]]:
    runs = [list(axis.measure(sizes_of(axis, up_to), count)) for _ in range(repetitions)]
    return [(size, median(run[place][1] for run in runs)) for place, (size, _) in enumerate(runs[0])]


def table(axis: Axis, points: Sequence[tuple[int, float]]) -> str:
    """Return a Markdown table of one axis, with the reason where the cost exceeds the limit."""
    first = points[0][1]
    unit = "ms of CPU" if axis.name == "start" else "us of CPU a message"
    scale = 1000 if axis.name == "start" else 1
    lines = [f"| {axis.title} | {unit} | over the first |", "|--:|--:|--:|"]
    lines += [f"| {short(size)} | {cost / scale:,.1f} | {cost / first:.2f}x |" for size, cost in points]
    if max(cost for _, cost in points) > axis.limit * first and axis.name in WHY:
        lines += ["", *wrap(WHY[axis.name], 120)]
    return "\n".join(lines)


def page(costs: Costs, up_to: float, repetitions: int) -> str:
    on = machine()
    axes = {axis.name: axis for axis in AXES}
    sizes = "" if up_to >= 1 else f" Sizes are up to {up_to:g} of the largest."
    where = f"{on['cores']} cores ({on['machine']}, {on['system']}), Python {on['python']}, load {on['load']:.1f}."
    head = f"""# Growth

The cost of a message should not depend on the size of anything else. The target is at most {GROWTH:g} times the cost at
the smallest size.
`scripts/bench growth --write` measures this and writes this page.

![The cost at each size over the cost at the smallest size](images/growth.svg)

Medians of {repetitions} run{"s" * (repetitions > 1)}.{sizes} {where}
"""
    return "\n".join([head, "\n\n".join(table(axes[name], points) for name, points in costs.items()), ""])


def main(given: Sequence[str]) -> int:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("bench growth", description=ABOUT, formatter_class=layout)
    parser.add_argument(
        "axes", nargs="*", metavar="AXIS", help=f"measure only these: {', '.join(a.name for a in AXES)}"
    )
    parser.add_argument(
        "--up-to", type=float, default=1.0, metavar="SHARE", help="sizes up to this share of the largest (default: 1)"
    )
    parser.add_argument("--repetitions", type=int, default=3, metavar="N", help="runs of each axis (default: 3)")
    parser.add_argument("--scale", type=float, default=1.0, metavar="FACTOR", help="multiply the number of messages")
    parser.add_argument("--write", action="store_true", help="write docs/growth.md and its picture")
    options = parser.parse_args(given)
    if unknown := set(options.axes) - {axis.name for axis in AXES}:
        parser.error(f"unknown: {', '.join(sorted(unknown))} (the axes are {', '.join(axis.name for axis in AXES)})")
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", file=sys.stderr)
    costs = {}
    for axis in AXES:
        if not options.axes or axis.name in options.axes:
            print(f"measuring {axis.name}", file=sys.stderr, flush=True)
            count = max(1, int(axis.count * (options.scale if axis.name != "start" else 1)))
            costs[axis.name] = measured(axis, options.up_to, options.repetitions, count)
            print(table(axis, costs[axis.name]) + "\n", flush=True)
    if options.write:
        _write(PAGE, page(costs, options.up_to, options.repetitions))
        _write(PICTURE, svg(costs, GROWTH))
    return 0


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
