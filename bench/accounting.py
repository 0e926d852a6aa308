"""What the kernel charges to a process: CPU time and memory."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

_CPUCLOCK_SCHED = 2


class ProcessGoneError(RuntimeError):
    """The process whose account was asked for does not exist any more."""


@dataclass(frozen=True)
class Memory:
    """Bytes: what is resident, and the part of it that no file backs."""

    resident: int
    anonymous: int


def cpu_seconds(pid: int) -> float:
    """User and system time of all threads of a process, the finished ones too.

    That is utime and stime of /proc/PID/stat, read from the clock behind them, which knows more than steps of 10 ms.
    """
    try:
        return time.clock_gettime((~pid << 3) | _CPUCLOCK_SCHED)
    except OSError:
        raise ProcessGoneError(f"process {pid} is gone") from None


def memory(pid: int) -> Memory:
    """VmRSS and RssAnon of a process."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        lines = dict(line.split(":", 1) for line in status.splitlines())
        return Memory(_bytes(lines["VmRSS"]), _bytes(lines["RssAnon"]))
    except (FileNotFoundError, ProcessLookupError, KeyError):  # a zombie has a status, without memory
        raise ProcessGoneError(f"process {pid} is gone") from None


def _bytes(text: str) -> int:
    return int(text.split(maxsplit=1)[0]) * 1024
