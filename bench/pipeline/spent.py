"""CPU time of a Spark session by its parts, for the profile of a figure."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
DRIVER, JVM, TASKS, PLANNING, BROKER = PARTS = ("driver", "JVM", "tasks", "planning", "broker")
"""The process of this program, Spark's Java, processes of Python that run tasks, those that plan, and the broker."""


def spent(broker: int) -> Mapping[str, float]:
    """Return the seconds of CPU of this process, the broker, and the descendants that still run, by their parts."""
    parents, seconds, commands = {}, {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            commands[int(folder.name)] = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:  # the process has ended
            continue
        parents[int(folder.name)] = int(fields[1])
        seconds[int(folder.name)] = (int(fields[11]) + int(fields[12])) / _TICKS
    found = dict.fromkeys(PARTS, 0.0)
    for pid, own in seconds.items():
        if pid == broker:
            found[BROKER] += own
        elif os.getpid() in _line(pid, parents):
            found[_part(pid, commands[pid])] += own
    return found


def _line(pid: int, parents: Mapping[int, int]) -> list[int]:
    """Return a process and its ancestors."""
    found = [pid]
    while (pid := parents.get(pid, 0)) > 0:
        found.append(pid)
    return found


def _part(pid: int, command: list[str]) -> str:
    if pid == os.getpid():
        return DRIVER
    if command[0].rpartition("/")[2] == "java":
        return JVM
    return PLANNING if any(each.startswith("pyspark.sql.worker.") for each in command) else TASKS
