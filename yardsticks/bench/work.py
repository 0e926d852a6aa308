"""Input and result of a measuring program."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Work:
    """`count` operations on `topic` of the broker at `service_url`, with payloads of `size` bytes.

    `pid` is the broker's process, for programs that measure their parts. `admin_url` is its REST API.
    """

    service_url: str
    topic: str
    count: int
    size: int
    pid: int
    admin_url: str


@dataclass(frozen=True)
class Done:
    """Result of a run: the number of operations, latencies, and figures of parts.

    `latencies` are in seconds, and empty when the run measures no single operations. `seconds`, `cpu` and
    `broker_cpu` are set when only a part of the run counts.
    """

    operations: int
    latencies: list[float] = field(default_factory=list)
    parts: dict[str, float] = field(default_factory=dict)
    seconds: float | None = None
    cpu: float | None = None
    broker_cpu: float | None = None


Timed = Callable[[], Done]
"""The measured part of a program. Everything before is preparation."""


def one_by_one(count: int, operation: Callable[[], object]) -> Done:
    """Run an operation `count` times, each after the previous one has ended."""
    latencies = []
    before = time.perf_counter()
    for _ in range(count):
        operation()
        after = time.perf_counter()
        latencies.append(after - before)
        before = after
    return Done(count, latencies)


def percentile(values: Sequence[float], percent: int) -> float:
    """Return the smallest value that at least `percent` of 100 values do not exceed, or 0 without values."""
    ordered = sorted(values)
    return ordered[math.ceil(len(ordered) * percent / 100) - 1] if ordered else 0.0
