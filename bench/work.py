"""What a measuring program is told, and what it tells."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Work:
    """`count` operations on `topic` of the broker at `service_url`, with payloads of `size` bytes.

    `pid` is the broker's process, for programs that look at it between their parts, `admin_url` its REST.
    """

    service_url: str
    topic: str
    count: int
    size: int
    pid: int
    admin_url: str


@dataclass(frozen=True)
class Done:
    """What was done: operations; where each was waited for, the seconds each took; figures of parts of the run.

    `seconds`, `cpu` and `broker_cpu` where only a part of the run counts.
    """

    operations: int
    latencies: list[float] = field(default_factory=list)
    parts: dict[str, float] = field(default_factory=dict)
    seconds: float | None = None
    cpu: float | None = None
    broker_cpu: float | None = None


Timed = Callable[[], Done]
"""The part of a program that is measured; everything before it is preparation."""


def one_by_one(count: int, operation: Callable[[], object]) -> Done:
    """Each is waited for before the next."""
    latencies = []
    before = time.perf_counter()
    for _ in range(count):
        operation()
        after = time.perf_counter()
        latencies.append(after - before)
        before = after
    return Done(count, latencies)
