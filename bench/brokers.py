"""Brokers to measure: started and timed here, or running already."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
POLL_SECONDS = 0.005
# A user has neither the path to this checkout nor the setting to write no byte code.
UNLIKE_A_USER = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
START_SECONDS = 90  # a real broker takes ten
# A CONNECT frame: protocol version 21, client version "bench".
CONNECT = bytes.fromhex("00000011 0000000d 0802 1209 0a0562656e6368 2015")


class BrokerError(RuntimeError):
    """A broker that does not start, or a broker name of the wrong form. The text is for the user."""


@dataclass(frozen=True)
class Broker:
    """URLs and process of a broker."""

    service_url: str
    admin_url: str
    pid: int


def running(text: str) -> Broker:
    """Return the broker of `pulsar://HOST:PORT,http://HOST:PORT,PID`."""
    parts = [part.strip().rstrip("/") for part in text.split(",")]
    if (
        len(parts) != 3
        or not parts[0].startswith("pulsar://")
        or not parts[1].startswith("http")
        or not parts[2].isdigit()
    ):
        raise BrokerError(f"{text!r} does not have the form pulsar://HOST:PORT,http://HOST:PORT,PID")
    return Broker(parts[0], parts[1], int(parts[2]))


class Launch:
    """A broker in a process of its own, from its launch to `stop`.

    `command` starts a broker that takes the options of `pulsarium serve` and prints the same ready line. `plugins` is a
    folder with more modules for its Python. A `kept` broker has a data directory, which `stop` deletes.
    `connect_seconds` and `ready_seconds` are the times from the launch to CONNECTED and to the ready line.
    """

    def __init__(self, command: Sequence[str], plugins: Path | None = None, *, kept: bool = False) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="pulsarium-bench-")
        ready = Path(self._folder.name, "ready.json")
        self._log = Path(self._folder.name, "log")
        port, http_port = free_port(), free_port()
        self._said_ready = threading.Event()
        # A user's environment does not have the path to this package.
        data = ["--data", str(Path(self._folder.name, "data"))] if kept else []
        environment = {key: value for key, value in os.environ.items() if key not in UNLIKE_A_USER}
        if plugins is not None:
            environment["PYTHONPATH"] = str(plugins)
        with self._log.open("wb") as log:
            begin = time.perf_counter()
            self._process = subprocess.Popen(
                [*command, "--port", str(port), "--http-port", str(http_port), "--ready-file", str(ready), *data],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
            )
        assert self._process.stdout is not None
        self._listener = threading.Thread(target=self._listen, args=(self._process.stdout, begin), daemon=True)
        self._listener.start()
        try:
            self._await_connected(port)
            self.connect_seconds = time.perf_counter() - begin
            self._await_ready_line()
            told = json.loads(ready.read_text())
        except BaseException:
            self.stop()
            raise
        self.broker = Broker(told["service_url"].rstrip("/"), told["admin_url"].rstrip("/"), told["pid"])

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join()  # the thread ends with the pipe
        self._folder.cleanup()

    def _listen(self, output: IO[bytes], begin: float) -> None:
        """Record the time of the ready line, and read on so that the broker never blocks on a full pipe."""
        with output:
            for line in output:
                if not self._said_ready.is_set() and b" ready pulsar://" in line:
                    self.ready_seconds = time.perf_counter() - begin
                    self._said_ready.set()

    def _await_connected(self, port: int) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not _answers_connect(port):
            self._check_alive(deadline)
            time.sleep(POLL_SECONDS)

    def _await_ready_line(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self._said_ready.wait(0.1):
            self._check_alive(deadline)

    def _check_alive(self, deadline: float) -> None:
        code = self._process.poll()
        if code is None and time.monotonic() < deadline:
            return
        what = f"did not start in {START_SECONDS} s" if code is None else f"exited with {code}"
        raise BrokerError(f"the broker {what}; its log ends:\n{self._log.read_text(errors='replace')[-3000:]}")


def pulsarium_command() -> list[str]:
    """Return the command that a user types, if it is installed beside this Python."""
    installed = Path(sys.executable).with_name("pulsarium")
    return [str(installed), "serve"] if installed.exists() else [sys.executable, "-P", "-m", "pulsarium", "serve"]


def _answers_connect(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(CONNECT)
            return len(connection.recv(9)) == 9  # the frame's sizes and the type of its command
    except OSError:
        return False


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
