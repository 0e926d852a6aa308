"""CPU time and memory that the kernel charges to a process, and the longest time for which its loop did not turn."""

from __future__ import annotations

import multiprocessing
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from types import TracebackType

from bench.raw_driver import PING, Connection
from pulsarium.proto.framing import frame
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand

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


PING_SECONDS = 0.001  # between a PONG and the next PING
FORK = multiprocessing.get_context("fork")


class Pulse:
    """Pings a broker while its block runs, from a process of its own, which this one's work does not slow down.

    `gap` is the longest time in seconds from one PONG to the next, `cpu` the most CPU time of the broker's threads from
    one to the next: a gap that is longer is another process's doing.
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
            told.send(None)  # the first PONG came: the block may begin
        time.sleep(PING_SECONDS)
    told.send((gap, most))
