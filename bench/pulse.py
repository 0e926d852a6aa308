"""The longest time for which a broker's loop did not turn, as a bystander's PINGs see it."""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.connection import Connection as Pipe
from types import TracebackType

from bench.accounting import cpu_seconds
from bench.raw_driver import PING, Connection
from pulsarium.proto.framing import frame
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand

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
