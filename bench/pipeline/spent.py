"""CPU time of a Spark session by its parts, for the profile of a figure."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from bench.accounting import ProcessGoneError, cpu_seconds, tree_of

DRIVER, JVM, TASKS, PLANNING, BROKER = PARTS = ("driver", "JVM", "tasks", "planning", "broker")
"""The process of this program, Spark's Java, processes of Python that run tasks, those that plan, and the broker."""


def spent(broker: int) -> Mapping[str, float]:
    """Return the seconds of CPU of this process, the broker, and the descendants that still run, by their parts."""
    found = dict.fromkeys(PARTS, 0.0)
    for pid in tree_of(os.getpid()) | {broker}:
        with suppress(OSError, ProcessGoneError):  # the process has ended
            command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
            found[BROKER if pid == broker else _part(pid, command)] += cpu_seconds(pid)
    return found


def _part(pid: int, command: list[str]) -> str:
    if pid == os.getpid():
        return DRIVER
    if command[0].rpartition("/")[2] == "java":
        return JVM
    return PLANNING if any(each.startswith("pyspark.sql.worker.") for each in command) else TASKS
