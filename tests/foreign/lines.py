"""A foreign program that runs many scenarios in one process. Requests and results are lines of JSON."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SCENARIO_SECONDS = 240.0
"""Limit of a scenario, in seconds. A whole test may take longer, so that the failure names the scenario."""


class Hung(Exception):
    """A scenario timed out, or its program ended."""


class LineProgram:
    """A program that exchanges JSON objects, one a line. Its stderr goes to `log`.

    It starts when it is first needed, and again after a scenario that hung.
    """

    seconds = SCENARIO_SECONDS

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self.log = log
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._buffer = b""

    def say(self, line: Mapping[str, Any]) -> None:
        """Write a line. Raise `Hung`, as `hear` does, after killing the process."""
        stdin = self._running().stdin
        assert stdin is not None
        try:
            stdin.write(json.dumps(line).encode() + b"\n")
            stdin.flush()
        except OSError as error:
            raise self._hung(error) from None

    def hear(self, end: float) -> dict[str, Any]:
        """Return the next line, and wait until `end` by time.monotonic at most."""
        try:
            return dict(json.loads(self._line(self._running(), end)))
        except (OSError, ValueError) as error:
            raise self._hung(error) from None

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._buffer = b""
            with self.log.open("ab") as log:
                self._process = subprocess.Popen(
                    self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
                )
        return self._process

    def _line(self, process: subprocess.Popen[bytes], end: float) -> bytes:
        assert process.stdout is not None
        while b"\n" not in self._buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
                raise OSError("the program did not answer in time")
            data = os.read(process.stdout.fileno(), 1 << 16)
            if not data:
                raise OSError(f"the program ended with exit code {process.wait()}")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _hung(self, error: Exception) -> Hung:
        self.kill()
        return Hung(str(error))

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._forget(self._process)

    def close(self, seconds: float = 10.0) -> None:
        """End the program by closing its input, or kill it after `seconds`."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._forget(self._process)

    def _forget(self, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        self._process = None

    def run(self, scenario: str, **arguments: object) -> dict[str, Any]:
        """Run a scenario, and return its result. Raise `AssertionError` with the program's log when it fails."""
        start = self.log.stat().st_size if self.log.exists() else 0
        request = {"scenario": scenario, **arguments}
        try:
            self.say(request)
            result = self.hear(time.monotonic() + self.seconds)
        except Hung as error:
            raise AssertionError(f"{json.dumps(request)}: {error}\n{self._tail(start)}") from None
        if not result["ok"]:
            raise AssertionError(f"{json.dumps(request)}\n{result['error']}\n{self._tail(start)}")
        return result

    def _tail(self, start: int, limit: int = 8000) -> str:
        with self.log.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(start, size - limit))
            return log.read().decode(errors="replace")
