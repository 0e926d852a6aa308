"""CPU time and memory that the kernel charges to a process, and the longest pause of a broker's loop."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections import deque
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from select import select
from types import TracebackType

from pulsarium.proto.framing import frame
from yardsticks.bench.wire import PING, PONG, Connection

_CPUCLOCK_SCHED = 2
MB = 1_000_000
SAMPLE_SECONDS = 0.1


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
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        lines = dict(line.split(":", 1) for line in status.splitlines())
        return Memory(*(int(lines[name].split(maxsplit=1)[0]) * 1024 for name in ("VmRSS", "RssAnon")))
    except (FileNotFoundError, ProcessLookupError, KeyError):  # a zombie has a status without memory
        raise ProcessGoneError(f"process {pid} has ended") from None


class Meter:
    """Meter of a broker's CPU and memory, part by part."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._cpu = cpu_seconds(pid)
        self._resident = memory(pid).resident

    def spent(self, operations: int) -> float:
        """Return the microseconds of CPU per operation since the last call."""
        before, self._cpu = self._cpu, cpu_seconds(self._pid)
        return (self._cpu - before) / operations * 1e6

    def gained(self) -> float:
        """Return the resident megabytes since the meter's start."""
        return (memory(self._pid).resident - self._resident) / MB


class Peak:
    """The largest RssAnon of a process during a block, in megabytes."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.megabytes = memory(pid).anonymous / MB
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._look()

    def _sample(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            self._look()

    def _look(self) -> None:
        self.megabytes = max(self.megabytes, memory(self._pid).anonymous / MB)


PING_SECONDS = 0.002  # from a PING to the next one
FORK = multiprocessing.get_context("fork")


class Pulse:
    """Ping a broker during a block, from a process of its own, which this process's work does not slow down.

    PINGs do not wait for PONGs, so each moment of the block counts alike. `waits` are the seconds from a PING to its
    PONG. `gap` is the longest time between two PONGs, in seconds.
    """

    def __init__(self, service_url: str) -> None:
        self.gap = 0.0
        self.waits: list[float] = []
        self._told, theirs = FORK.Pipe()
        self._process = FORK.Process(target=_ping, args=(service_url, theirs), daemon=True)

    def __enter__(self) -> Pulse:
        self._process.start()
        self._told.recv()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if error is None:
                self._told.send(None)
                self.gap, self.waits = self._told.recv()
        finally:
            self._process.kill()
            self._process.join()


def _ping(service_url: str, told: Pipe[object, object]) -> None:
    connection, ping, pong = Connection(service_url), frame(PING), PONG.SerializeToString()
    waits: list[float] = []
    gap = last = due = 0.0
    sent: deque[float] = deque()

    def is_over() -> bool:
        return gap > 0 and told.poll()  # a short block may end before the second PONG

    while sent or not is_over():
        if (now := time.perf_counter()) >= due and not is_over():
            connection.socket.sendall(ping)
            sent.append(now)
            due = now + PING_SECONDS
        if not select([connection.socket], (), (), max(0.0, due - now))[0]:
            continue
        answers, now = connection.read().count(pong), time.perf_counter()
        waits += [now - sent.popleft() for _ in range(answers)]
        if answers:
            if last:
                gap = max(gap, now - last)
            else:
                told.send(None)  # after the first PONG the block may begin
            last = now
    told.send((gap, waits))
