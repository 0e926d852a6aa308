"""Print which share of each folder ran, from the report of `scripts/test --coverage`."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

ALL = "all"


class Share(NamedTuple):
    """Lines and branches, and how many of them ran."""

    lines: int = 0
    lines_run: int = 0
    branches: int = 0
    branches_run: int = 0

    def __add__(self, other: object) -> Share:
        """Add the numbers of both shares."""
        assert isinstance(other, Share)
        return Share(*(one + another for one, another in zip(self, other, strict=True)))

    @property
    def percent(self) -> float:
        """Return the percentage of lines and branches that ran, or 100 when there are none."""
        there = self.lines + self.branches
        return 100 * (self.lines_run + self.branches_run) / there if there else 100.0


def by_folder(report: dict[str, Any]) -> dict[str, Share]:
    """Return the share of each folder by its name, in order, and at last that of all."""
    found: defaultdict[str, Share] = defaultdict(Share)
    for file, measured in sorted(report["files"].items()):
        each = measured["summary"]
        share = Share(each["num_statements"], each["covered_lines"], each["num_branches"], each["covered_branches"])
        found[str(PurePosixPath(file).parent)] += share
    return {**dict(sorted(found.items())), ALL: sum(found.values(), Share())}


def table(shares: dict[str, Share]) -> str:
    """Return a table with a line for each folder: its share, and the lines and branches that did not run."""
    width = max(map(len, shares))
    lines = [f"{'':{width}}  ran  lines  not run  branches  not run"]
    for folder, each in shares.items():
        lines.append(
            f"{folder:{width}} {each.percent:3.0f}%  {each.lines:5}  {each.lines - each.lines_run:7}"
            f"  {each.branches:8}  {each.branches - each.branches_run:7}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(by_folder(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))))
