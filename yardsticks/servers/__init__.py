"""Real servers to measure and test against: Pulsar standalones, and Spark clusters. What starting a server needs."""

from __future__ import annotations

import atexit
import errno
import random
import socket
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

T = TypeVar("T", str, bytes)

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60.0  # seconds for a process to end


def stop(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Stop a process with SIGTERM, and after `seconds` with SIGKILL."""
    process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def ending(process: subprocess.Popen[T]) -> Iterator[subprocess.Popen[T]]:
    """Wait for the end of a process, and kill it when it does not come, or when the block failed.

    Without this, `with subprocess.Popen(...)` waits forever after a failure, and the run of all tests with it.
    """
    with process:
        try:
            yield process
            process.wait(PATIENCE)
        finally:
            process.kill()


_given = ExitStack()
"""The UDP ports of the numbers that `free_port` gave away. They are closed when the process ends."""

atexit.register(_given.close)


def free_port(count: int = 1) -> int:
    """Return the first of `count` free ports in a row, which no other call returns as long as this process lives.

    They lie below the system's ephemeral ports, so that they stay free while the broker is down. Calls in other
    processes see the same UDP ports in use: a port that waits for its server is not given to two servers.
    """
    chance = random.SystemRandom()
    for _ in range(1000):
        port = chance.randrange(15_000, 32_000)
        if _take(range(port, port + count)):
            return port
    raise AssertionError("no port is free")


def _take(ports: Iterable[int]) -> bool:
    with ExitStack() as stack:
        for port in ports:
            mark = stack.enter_context(socket.socket(type=socket.SOCK_DGRAM))
            if not (_is_free(port) and _binds(mark, port)):
                return False
        _given.push(stack.pop_all())
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as attempt:
        attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return _binds(attempt, port)


def _binds(sock: socket.socket, port: int) -> bool:
    try:
        sock.bind(("127.0.0.1", port))
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        return False
    return True
