"""A foreign program that runs many scenarios in one process: a JSON line in, a JSON line out."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SCENARIO_SECONDS = 50.0
"""Under the limit of a whole test, so that it is the scenario that is blamed."""


class LineProgram:
    """Starts `command` when it is first needed, and again after a scenario that hung. stderr goes to `log`."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._command = command
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._buffer = b""

    def run(self, scenario: str, **arguments: object) -> dict[str, Any]:
        """The result line of a scenario; AssertionError with its error and the program's log when it failed."""
        process = self._process or self._start()
        start = self._log.stat().st_size
        assert process.stdin is not None
        request = json.dumps({"scenario": scenario, **arguments})
        try:
            process.stdin.write(request.encode() + b"\n")
            process.stdin.flush()
            result = dict(json.loads(self._line(process)))
        except (OSError, ValueError, TimeoutError) as error:
            self._kill()
            raise AssertionError(f"{request}: {error!r}\n{self._tail(start)}") from None
        if not result["ok"]:
            raise AssertionError(f"{request}\n{result['error']}\n{self._tail(start)}")
        return result

    def _start(self) -> subprocess.Popen[bytes]:
        self._buffer = b""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        return self._process

    def _line(self, process: subprocess.Popen[bytes]) -> bytes:
        assert process.stdout is not None
        end = time.monotonic() + SCENARIO_SECONDS
        while b"\n" not in self._buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
                raise TimeoutError(f"no result within {SCENARIO_SECONDS:g} s")
            data = os.read(process.stdout.fileno(), 1 << 16)
            if not data:
                raise OSError(f"the program ended with {process.wait()}")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _tail(self, start: int, limit: int = 8000) -> str:
        with self._log.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(start, size - limit))
            return log.read().decode(errors="replace")

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._forget(self._process)

    def _forget(self, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        self._process = None

    def close(self, seconds: float = 10.0) -> None:
        """End of input ends the program; one that stays is killed."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._forget(self._process)
