"""Brokers to measure: started and timed here, or running already."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from yardsticks.servers import free_port, stop

POLL_SECONDS = 0.005
# A user has neither the path to this checkout nor the setting to write no byte code.
UNLIKE_A_USER = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
START_SECONDS = 90  # a real broker takes ten
READY_FILE = "ready.json"
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
    found = re.fullmatch(r"(pulsar://[^,]+?)/?, *(https?://[^,]+?)/?, *(\d+)", text)
    if found is None:
        raise BrokerError(f"{text!r} does not have the form pulsar://HOST:PORT,http://HOST:PORT,PID")
    return Broker(found[1], found[2], int(found[3]))


class Launch:
    """A broker in a process of its own, from its launch to `stop`.

    `command` starts a broker that takes the options of `pulsarium serve` and prints the same ready line. `plugins` is a
    folder with more modules for its Python. A `kept` broker has a data directory, which `stop` deletes.
    `connect_seconds` and `ready_seconds` are the times from the launch to CONNECTED and to the ready line.
    """

    def __init__(self, command: Sequence[str], plugins: Path | None = None, *, kept: bool = False) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="pulsarium-bench-")
        folder = Path(self._folder.name)
        self._log = folder / "log"
        port, http_port = free_port(), free_port()
        self._said_ready = threading.Event()
        options = self._options(folder, port, http_port, kept=kept)
        # A user's environment does not have the path to this package.
        environment = {key: value for key, value in os.environ.items() if key not in UNLIKE_A_USER}
        if plugins is not None:
            environment["PYTHONPATH"] = str(plugins)
        with self._log.open("wb") as log:
            begin = time.perf_counter()
            self._process = subprocess.Popen(
                [*command, *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, env=environment
            )
        assert self._process.stdout is not None
        self._listener = threading.Thread(target=self._listen, args=(self._process.stdout, begin), daemon=True)
        self._listener.start()
        try:
            self._await(lambda: _answers_connect(port))
            self.connect_seconds = time.perf_counter() - begin
            self.broker = self._await_ready(folder, port, http_port)
        except BaseException:
            self.stop()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def _options(self, folder: Path, port: int, http_port: int, *, kept: bool) -> list[str]:
        """Return the arguments after the command. The broker may write to `folder`."""
        data = ["--data", str(folder / "data")] if kept else []
        return ["--port", str(port), "--http-port", str(http_port), "--ready-file", str(folder / READY_FILE), *data]

    def _await_ready(self, folder: Path, port: int, http_port: int) -> Broker:
        """Wait for the ready line, and return the broker that the ready file describes."""
        self._await(self._said_ready.is_set)
        told = json.loads((folder / READY_FILE).read_text())
        return Broker(told["service_url"].rstrip("/"), told["admin_url"].rstrip("/"), told["pid"])

    def stop(self) -> None:
        stop(self._process, 30)
        self._listener.join()  # the thread ends with the pipe
        self._folder.cleanup()

    def _listen(self, output: IO[bytes], begin: float) -> None:
        """Record the time of the ready line, and read on so that the broker never blocks on a full pipe."""
        with output:
            for line in output:
                if not self._said_ready.is_set() and b" ready pulsar://" in line:
                    self.ready_seconds = time.perf_counter() - begin
                    self._said_ready.set()

    def _await(self, is_there: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not is_there():
            code = self._process.poll()
            if code is not None or time.monotonic() > deadline:
                what = f"did not start in {START_SECONDS} s" if code is None else f"exited with {code}"
                raise BrokerError(f"the broker {what}; its log ends:\n{self._log.read_text(errors='replace')[-3000:]}")
            time.sleep(POLL_SECONDS)


class LiteLaunch(Launch):
    """A pulsar-lite in a process of its own. It is ready once it answers CONNECT. All its data is in a file."""

    def _options(self, folder: Path, port: int, http_port: int, *, kept: bool) -> list[str]:
        config = folder / "pulsar-lite.toml"
        config.write_text(f'metrics_addr = "127.0.0.1:{http_port}"\ndefault_partitions = 0\n')
        return ["--addr", f"127.0.0.1:{port}", "--db-path", str(folder / "data"), "--config", str(config)]

    def _await_ready(self, folder: Path, port: int, http_port: int) -> Broker:
        self.ready_seconds = self.connect_seconds
        return Broker(f"pulsar://127.0.0.1:{port}", f"http://127.0.0.1:{http_port}", self.pid)


LITE = "pulsar-lite"


def is_lite(program: str | None) -> bool:
    """Return whether this is pulsar-lite, or the path of its program."""
    return program is not None and Path(program).name == LITE


def lite_command(against: str) -> list[str]:
    """Return the command of pulsar-lite. Raise `BrokerError` when its program is not there."""
    found = shutil.which(against)
    if found is None:
        raise BrokerError(
            f"{against} is no program: pip install pulsar-lite, and name the program of that package, "
            "pulsar_lite/bin/pulsar-lite"
        )
    return [found]


def pulsarium_command(*options: str) -> list[str]:
    """Return the command that a user types, if it is installed beside this Python."""
    installed = Path(sys.executable).with_name("pulsarium")
    command = [str(installed)] if installed.exists() else [sys.executable, "-P", "-m", "pulsarium"]
    return [*command, "serve", "--with-parent", *options]


@contextmanager
def launched(command: Sequence[str], plugins: Path | None = None, *, kept: bool = False) -> Iterator[Launch]:
    """Run the broker of a command during a block: a pulsar-lite, or one with the options of `pulsarium serve`."""
    launch = (LiteLaunch if is_lite(command[0]) else Launch)(command, plugins, kept=kept)
    try:
        yield launch
    finally:
        launch.stop()


def _answers_connect(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(CONNECT)
            return len(connection.recv(9)) == 9  # the frame's sizes and the type of its command
    except OSError:
        return False
