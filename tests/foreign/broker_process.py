"""A broker in its own process, which tests start, stop and kill."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from .deadline import eventually

START_SECONDS = 150.0
"""Limit of a broker's start, in seconds. A real broker (see `COMMAND`) takes ten."""

COMMAND = "PULSARIUM_TEST_SERVE"
"""Environment variable: a command that replaces `pulsarium serve` and has its options, such as a real broker's."""

ADDRESS = "PULSARIUM_TEST_BROKER"
"""Environment variable: "pulsar://host:port,http://host:port" of a running broker that the tests use."""


PULSARIUM = (sys.executable, "-P", "-m", "pulsarium", "serve", "--with-parent")
PULSAR = (str(Path(__file__).resolve().parents[2] / "scripts" / "reference-pulsar"),)
"""The command of a real broker, with the options of `pulsarium serve`."""


class AddressError(ValueError):
    """The URLs of a broker have another form."""


@dataclass(frozen=True)
class Address:
    """The URLs of a broker."""

    service_url: str
    admin_url: str

    @classmethod
    def parse(cls, urls: str) -> Address:
        """Return the broker at `pulsar://host:port,http://host:port`. Raise `AddressError` for another form."""
        service_url, _, admin_url = (part.strip().rstrip("/") for part in urls.partition(","))
        if not service_url.startswith("pulsar://") or not admin_url.startswith("http"):
            raise AddressError(f"{urls!r} is not of the form pulsar://HOST:PORT,http://HOST:PORT")
        return cls(service_url, admin_url)

    @property
    def port(self) -> int:
        return urlsplit(self.service_url).port or 0

    @property
    def http_port(self) -> int:
        return urlsplit(self.admin_url).port or 0


def is_pulsarium() -> bool:
    """Return whether the tests run against Pulsarium, and not against a broker that the environment names."""
    return given_address() is None and not os.environ.get(COMMAND)


def given_address() -> Address | None:
    """Return the running broker that the environment names, or None."""
    given = os.environ.get(ADDRESS)
    return Address.parse(given) if given else None


class BrokerProcess:
    """A process of `pulsarium serve` with `options`, by default on free ports. Output goes to `folder`/broker.log."""

    def __init__(
        self,
        folder: Path,
        options: Sequence[str] = (),
        port: int = 0,
        http_port: int = 0,
        command: Sequence[str] | None = None,
    ) -> None:
        """Start the broker, and wait until it is ready. `command` replaces the environment's command too."""
        folder.mkdir(parents=True, exist_ok=True)
        self.log = folder / "broker.log"
        ready = folder / "ready.json"
        ready.unlink(missing_ok=True)
        command = command or shlex.split(os.environ.get(COMMAND, "")) or PULSARIUM
        ports = ["--port", str(port), "--http-port", str(http_port), "--ready-file", str(ready)]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, *ports, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
                start_new_session=True,
            )
        try:
            self.addresses = eventually(
                lambda: self._ready(ready), what=f"{ready.name} of {command}", seconds=START_SECONDS
            )
        except BaseException:
            self.kill()
            raise
        self.address = self.addresses[0]

    def _ready(self, file: Path) -> list[Address] | None:
        code = self._process.poll()
        if code is not None:
            raise AssertionError(f"the broker exited with {code} before it was ready:\n{self.tail()}")
        if not file.exists() or not (text := file.read_text()).strip():
            return None
        ready = json.loads(text)
        return [
            Address(each["service_url"].rstrip("/"), each["admin_url"].rstrip("/"))
            for each in ready.get("brokers") or [ready]
        ]

    @property
    def pid(self) -> int:
        """Return the id of the process. For a real broker, this is the script that started the broker."""
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def tail(self, start: int = 0, limit: int = 6000) -> str:
        """Return the end of the broker's output: at most `limit` bytes, and none before byte `start`."""
        with self.log.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(start, size - limit))
            return log.read().decode(errors="replace")

    def stop(self, seconds: float = 30.0) -> int:
        """Stop the broker with SIGTERM, and return its exit status. If it does not stop, kill it and fail the test."""
        self._process.terminate()
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the broker did not stop in {seconds:g} s:\n{self.tail()}") from None

    def kill(self) -> None:
        """Kill the broker, and wait for its end. A real broker dies together with the script that started it."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
