"""CPU time and memory that the kernel charges to a process, and the longest pause of a broker's loop."""

from __future__ import annotations

import multiprocessing
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from types import TracebackType

from bench.raw_driver import PING, Connection
from pulsarium.proto.framing import frame
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand

_CPUCLOCK_SCHED = 2


class ProcessGoneError(RuntimeError):
    """The process no longer exists."""


@dataclass(frozen=True)
class Memory:
    """Resident memory in bytes, and the part of it that no file backs."""

    resident: int
    anonymous: int


def cpu_seconds(pid: int) -> float:
    """Return user and system time of all threads of a process, finished threads included, in seconds.

    It is utime and stime of /proc/PID/stat, read from the underlying clock, whose steps are finer than 10 ms.
    """
    try:
        return time.clock_gettime((~pid << 3) | _CPUCLOCK_SCHED)
    except OSError:
        raise ProcessGoneError(f"process {pid} has ended") from None


def memory(pid: int) -> Memory:
    """Return VmRSS and RssAnon of a process."""
    return Memory(*_lines(pid, "VmRSS", "RssAnon"))


def peak_memory(pid: int) -> int:
    """Return the most resident bytes that a process ever had."""
    return _lines(pid, "VmHWM")[0]


def tree_of(pid: int) -> set[int]:
    """Return a process and all its descendants that still run."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # the process has ended
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(stat.parent.name))
    found, more = {pid}, [pid]
    while more:
        more = [child for each in more for child in children.get(each, ())]
        found.update(more)
    return found


SAMPLE_SECONDS = 0.5


class ProcessTree:
    """CPU time and most resident memory of a process and its descendants, as far as they run during a block.

    `cpu` is in seconds, from the start of each process on. `peak` is in bytes, with shared pages once for each process.
    """

    def __init__(self, pid: int) -> None:
        self.peak = 0
        self._pid = pid
        self._seconds: dict[int, float] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    @property
    def cpu(self) -> float:
        return sum(self._seconds.values())

    def __enter__(self) -> ProcessTree:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        is_over = False
        while not is_over:
            is_over = self._over.wait(SAMPLE_SECONDS)
            resident = 0
            for pid in tree_of(self._pid):
                with suppress(ProcessGoneError):
                    self._seconds[pid] = cpu_seconds(pid)
                    resident += memory(pid).resident
            self.peak = max(self.peak, resident)


def _lines(pid: int, *names: str) -> list[int]:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        lines = dict(line.split(":", 1) for line in status.splitlines())
        return [_bytes(lines[name]) for name in names]
    except (FileNotFoundError, ProcessLookupError, KeyError):  # a zombie has a status without memory
        raise ProcessGoneError(f"process {pid} has ended") from None


def _bytes(text: str) -> int:
    return int(text.split(maxsplit=1)[0]) * 1024


PING_SECONDS = 0.001  # between a PONG and the next PING
FORK = multiprocessing.get_context("fork")


class Pulse:
    """Ping a broker during a block, from a process of its own, which this process's work does not slow down.

    `gap` is the longest time between two PONGs, in seconds. `cpu` is the most CPU time of the broker's threads between
    two PONGs. A longer gap is caused by another process.
    """

    def __init__(self, service_url: str, pid: int) -> None:
        self.gap = self.cpu = 0.0
        self._told, theirs = FORK.Pipe()
        self._process = FORK.Process(target=_ping, args=(service_url, pid, theirs), daemon=True)

    def __enter__(self) -> Pulse:
        self._process.start()
        self._told.recv()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if error is None:
                self._told.send(None)
                self.gap, self.cpu = self._told.recv()
        finally:
            self._process.kill()
            self._process.join()


def _ping(service_url: str, pid: int, told: Pipe[object, object]) -> None:
    connection, ping = Connection(service_url), frame(PING)
    gap = most = last = spent = 0.0
    while not told.poll():
        connection.socket.sendall(ping)
        connection.expect(BaseCommand.PONG)
        before, last = last, time.perf_counter()
        spent_before, spent = spent, cpu_seconds(pid)
        if before:
            gap, most = max(gap, last - before), max(most, spent - spent_before)
        else:
            told.send(None)  # after the first PONG the block may begin
        time.sleep(PING_SECONDS)
    told.send((gap, most))
