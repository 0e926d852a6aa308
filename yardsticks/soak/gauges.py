"""Measure the memory, tasks, threads and files of the broker's process, and judge whether they grow."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median

from yardsticks.bench.accounting import cpu_seconds, memory

MB = 1 << 20
MEMORY_GROWTH = 0.10, 8 * MB
"""The limit of growth from the median of the second quarter to that of the last: a fraction, plus bytes.

A broker takes about a minute until its memory is level, longer on a busy machine. In that minute it grows by 5 MB from
the second quarter to the last. Memory swings by 20 MB for moments.
"""
COUNT_GROWTH = 0.10, 5
"""The same limit for tasks, threads and open files, whose numbers swing because clients come and go."""
ASK_SECONDS = 60.0


@dataclass(frozen=True)
class Sample:
    """The figures of a broker's process at one moment."""

    seconds: float
    memory: int  # RssAnon
    files: int
    threads: int
    tasks: int
    sessions: int
    cpu: float


class Gauges:
    """Gauges of a broker's process, read from outside or, where only the broker knows, over GET /lab/process."""

    def __init__(self, pid: int, admin_url: str) -> None:
        self._pid = pid
        self._url = f"{admin_url}/lab/process"

    def ask(self, query: str = "") -> dict[str, int]:
        with urllib.request.urlopen(self._url + query, timeout=ASK_SECONDS) as answer:
            found: dict[str, int] = json.load(answer)
        return found

    def census(self) -> dict[str, int]:
        """Return the number of objects of each type in the process."""
        found: dict[str, dict[str, int]] = self.ask("?census=true")  # type: ignore[assignment]
        return found["objects"]

    def sample(self, seconds: float) -> Sample:
        files = len(os.listdir(f"/proc/{self._pid}/fd"))  # counted first, because the request opens a connection
        told = self.ask()
        threads = len(os.listdir(f"/proc/{self._pid}/task"))
        used = memory(self._pid).anonymous
        return Sample(seconds, used, files, threads, told["tasks"], told["sessions"], cpu_seconds(self._pid))


GAUGES = {"memory": MEMORY_GROWTH, "tasks": COUNT_GROWTH, "threads": COUNT_GROWTH, "files": COUNT_GROWTH}


@dataclass(frozen=True)
class Trend:
    """The medians of one gauge in the second and in the last quarter, between which the gauge must not rise."""

    name: str
    early: float
    late: float
    bound: float
    most: float

    @property
    def held(self) -> bool:
        return self.late <= self.bound


def trends(samples: Sequence[Sample]) -> list[Trend]:
    """Return the trend of each gauge. The first quarter does not count, because the broker warms up."""
    found = []
    for name, (part, more) in GAUGES.items():
        values = [asdict(sample)[name] for sample in samples]
        quarter = max(1, len(values) // 4)
        early, late = median(values[quarter : 2 * quarter]), median(values[-quarter:])
        found.append(Trend(name, early, late, early * (1 + part) + more, max(values)))
    return found


LEFT = {"tasks": 0, "files": 0, "threads": 2}
"""The limit of each gauge's growth from the start to the end. trio keeps idle threads for a while."""


def left_over(start: Sample, end: Sample) -> list[str]:
    """Return a violation for each gauge that is higher after the last client left than before the first one came."""
    before, after = asdict(start), asdict(end)
    return [
        f"{after[name] - before[name]} {name} are left over: {before[name]} before, {after[name]} after"
        for name, more in LEFT.items()
        if after[name] > before[name] + more
    ]


KINDS = {"Session", "SocketTransport", "Producer", "Consumer", "PersistentTopic", "PersistentSubscription"}
"""Types of which no new object may be left at the end."""


def objects_left(before: Mapping[str, int], after: Mapping[str, int]) -> list[str]:
    """Return a violation for each type with closed or deleted objects in memory, from the counts by type."""
    return [
        f"{count - before.get(name, 0)} objects are left over of {name}"
        for name, count in after.items()
        if name.rpartition(".")[2] in KINDS and name.startswith("pulsarium.") and count > before.get(name, 0)
    ]
