"""Real servers to measure and test against: Pulsar standalones, and Spark clusters. What starting a server needs."""

from __future__ import annotations

import errno
import random
import socket
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def stop(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Stop a process with SIGTERM, and after `seconds` with SIGKILL."""
    process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def free_port(count: int = 1) -> int:
    """Return the first of `count` free ports in a row.

    They lie below the system's ephemeral ports, so that they stay free while the broker is down.
    """
    chance = random.SystemRandom()
    for _ in range(1000):
        port = chance.randrange(15_000, 32_000)
        if all(map(_is_free, range(port, port + count))):
            return port
    raise AssertionError("no port is free")


def _is_free(port: int) -> bool:
    with socket.socket() as attempt:
        attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            attempt.bind(("127.0.0.1", port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            return False
    return True
