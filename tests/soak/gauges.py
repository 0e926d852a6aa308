"""What the broker's process is made of, second by second, and whether it grows."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median

from bench.accounting import cpu_seconds, memory

MB = 1 << 20
MEMORY_GROWTH = 0.10, 5 * MB
"""What the median of the last quarter may be above that of the second: a part of it, and so many bytes."""
COUNT_GROWTH = 0.10, 5
"""The same of tasks, threads and open files; with clients that come and go these swing."""
ASK_SECONDS = 10.0


@dataclass(frozen=True)
class Sample:
    """At one moment."""

    seconds: float
    memory: int  # RssAnon
    files: int
    threads: int
    tasks: int
    sessions: int
    cpu: float


class Gauges:
    """Of a broker's process, seen from outside but for what only it can tell (GET /lab/process)."""

    def __init__(self, pid: int, admin_url: str) -> None:
        self._pid = pid
        self._url = f"{admin_url}/lab/process"

    def ask(self, query: str = "") -> dict[str, int]:
        with urllib.request.urlopen(self._url + query, timeout=ASK_SECONDS) as answer:
            found: dict[str, int] = json.load(answer)
        return found

    def census(self) -> dict[str, int]:
        """How many objects of each type it has."""
        found: dict[str, dict[str, int]] = self.ask("?census=true")  # type: ignore[assignment]
        return found["objects"]

    def sample(self, seconds: float) -> Sample:
        files = len(os.listdir(f"/proc/{self._pid}/fd"))  # first: to ask takes a connection
        told = self.ask()
        threads = len(os.listdir(f"/proc/{self._pid}/task"))
        used = memory(self._pid).anonymous
        return Sample(seconds, used, files, threads, told["tasks"], told["sessions"], cpu_seconds(self._pid))


GAUGES = {"memory": MEMORY_GROWTH, "tasks": COUNT_GROWTH, "threads": COUNT_GROWTH, "files": COUNT_GROWTH}


@dataclass(frozen=True)
class Trend:
    """Of one gauge: the medians of the second quarter, after which it should not rise, and of the last one."""

    name: str
    early: float
    late: float
    bound: float
    most: float

    @property
    def held(self) -> bool:
        return self.late <= self.bound


def trends(samples: Sequence[Sample]) -> list[Trend]:
    """The first quarter is for warming up."""
    found = []
    for name, (part, more) in GAUGES.items():
        values = [asdict(sample)[name] for sample in samples]
        quarter = max(1, len(values) // 4)
        early, late = median(values[quarter : 2 * quarter]), median(values[-quarter:])
        found.append(Trend(name, early, late, early * (1 + part) + more, max(values)))
    return found


LEFT = {"tasks": 0, "files": 0, "threads": 2}
"""What may be more in the end than at the start. Threads: trio keeps idle ones for a while."""


def left_over(start: Sample, end: Sample) -> list[str]:
    """What is more than it was before the first client came, now that the last one has gone."""
    before, after = asdict(start), asdict(end)
    return [
        f"{after[name] - before[name]} {name} are left over: {before[name]} before, {after[name]} after"
        for name, more in LEFT.items()
        if after[name] > before[name] + more
    ]


KINDS = {"Session", "SocketTransport", "Producer", "Consumer", "PersistentTopic", "PersistentSubscription"}
"""Types of objects of which none may be left but those that were there before."""


def objects_left(before: Mapping[str, int], after: Mapping[str, int]) -> list[str]:
    """What is still in memory, though it was closed or deleted; of counts by type."""
    return [
        f"{count - before.get(name, 0)} objects are left over of {name}"
        for name, count in after.items()
        if name.rpartition(".")[2] in KINDS and name.startswith("pulsarium.") and count > before.get(name, 0)
    ]
