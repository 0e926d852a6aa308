"""One broker in a process of its own, started, stopped and killed by the tests."""

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

START_SECONDS = 60.0
"""Long, because a real broker (see `COMMAND`) takes ten seconds."""

COMMAND = "PULSARIUM_TEST_SERVE"
"""Environment: another command with `pulsarium serve`'s options, to prove the tests against a real broker."""

ADDRESS = "PULSARIUM_TEST_BROKER"
"""Environment: "pulsar://host:port,http://host:port" of a running broker, used in place of a process of ours."""


PULSARIUM = (sys.executable, "-P", "-m", "pulsarium", "serve")


@dataclass(frozen=True)
class Address:
    """Where clients find a broker."""

    service_url: str
    admin_url: str

    @property
    def port(self) -> int:
        return urlsplit(self.service_url).port or 0

    @property
    def http_port(self) -> int:
        return urlsplit(self.admin_url).port or 0


def is_pulsarium() -> bool:
    """Whether the tests talk to our broker, and not to another that somebody gave them."""
    return given_address() is None and not os.environ.get(COMMAND)


def given_address() -> Address | None:
    """The running broker that the environment names, if it does."""
    given = os.environ.get(ADDRESS)
    if not given:
        return None
    service_url, admin_url = (part.strip().rstrip("/") for part in given.split(","))
    return Address(service_url, admin_url)


class BrokerProcess:
    """`pulsarium serve` with `options`, on free ports unless told; output goes to `folder`/broker.log."""

    def __init__(
        self,
        folder: Path,
        options: Sequence[str] = (),
        port: int = 0,
        http_port: int = 0,
        command: Sequence[str] | None = None,
    ) -> None:
        """`command` takes the place of `pulsarium serve`, whatever the environment says."""
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
        """Of the process, or of the script that a real broker is the child of."""
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def tail(self, start: int = 0, limit: int = 6000) -> str:
        """The end of the broker's output, from byte `start` of it on."""
        with self.log.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(start, size - limit))
            return log.read().decode(errors="replace")

    def stop(self, seconds: float = 30.0) -> int:
        """SIGTERM; the exit status. One that does not stop is killed, and that fails the test."""
        self._process.terminate()
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the broker did not stop in {seconds:g} s:\n{self.tail()}") from None

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone; a real broker is the child of a script, and goes with it."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
