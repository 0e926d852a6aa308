"""The application that an exploration runs: a process for each run, or one process for all runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, Final, Protocol

import trio

from pulsarium.cli.exec import NotExecutable, NotFound, environment

if TYPE_CHECKING:
    from pulsarium.cli.run import RunningBrokers

_SHOWN: Final = 4000  # bytes of the end of the output that are shown
_LONGEST: Final = 1 << 20  # bytes of a line that a persistent application may answer


class Application(Protocol):
    """Runs of a command."""

    output: str
    """The end of the output of the last run."""

    async def run(self, number: int, broker: RunningBrokers, seconds: float) -> str:
        """Run the command with a broker, for so many seconds at most. Return the reason of a failure, or ""."""
        ...

    def close(self) -> None:
        """End the process, if one is left."""
        ...


class Process:
    """A process of its own group, whose output goes to a temporary file."""

    def __init__(self, process: trio.Process, output: IO[bytes]) -> None:
        self.process = process
        self._output = output

    @classmethod
    async def start(cls, command: Sequence[str], env: dict[str, str], **pipes: Any) -> Process:
        """Start a command. Raise `Refusal` when that fails."""
        output = tempfile.TemporaryFile()  # noqa: SIM115  closed by `end`
        given = {"stdin": subprocess.DEVNULL, "stdout": output, **pipes}
        try:
            process = await trio.lowlevel.open_process(
                command, env=env, stderr=output, start_new_session=os.name == "posix", **given
            )
        except OSError as error:
            output.close()
            kind = NotFound if isinstance(error, FileNotFoundError) else NotExecutable
            raise kind(f"explore: {command[0]}: {error.strerror}") from None
        return cls(process, output)

    def end(self) -> str:
        """Kill the process and its children, and return the end of the output."""
        with suppress(ProcessLookupError, PermissionError):
            if os.name == "posix":
                os.killpg(self.process.pid, signal.SIGKILL)
            else:
                self.process.kill()
        with self._output as output:
            output.seek(0, os.SEEK_END)
            output.seek(max(0, output.tell() - _SHOWN))
            return output.read().decode(errors="replace")


class EachTime:
    """A new process for each run, which succeeds with exit code 0."""

    def __init__(self, command: Sequence[str]) -> None:
        self.output = ""
        self._command = command

    async def run(self, number: int, broker: RunningBrokers, seconds: float) -> str:
        started = await Process.start(self._command, environment(broker))
        try:
            with trio.move_on_after(seconds) as limit:
                code = await started.process.wait()
        finally:
            self.output = started.end()
        if limit.cancelled_caught:
            return f"COMMAND has not ended after {seconds:g} s"
        return "" if code == 0 else f"COMMAND ended with exit code {code if code > 0 else 128 - code}"

    def close(self) -> None:
        pass


class Persistent:
    """A process for all runs, which answers each line of JSON with "ok" or "failed REASON"."""

    def __init__(self, command: Sequence[str]) -> None:
        self.output = ""
        self._command = command
        self._started: Process | None = None
        self._read = b""

    async def run(self, number: int, broker: RunningBrokers, seconds: float) -> str:
        if self._started is None:
            env = {name: value for name, value in os.environ.items() if not name.startswith(("PULSAR_", "PULSARIUM_"))}
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            self._started, self._read = await Process.start(self._command, env, **pipes), b""
        request = {"run": number, "serviceUrl": broker.service_url, "adminUrl": broker.admin_url}
        answer = None
        try:
            with trio.move_on_after(seconds) as limit:
                answer = await self._ask(self._started.process, json.dumps(request) + "\n")
        finally:
            if answer is None:
                self.close()
        if limit.cancelled_caught:
            return f"COMMAND has not answered after {seconds:g} s"
        if answer is None:
            return 'COMMAND ended before it answered "ok" or "failed REASON"'
        return "" if answer == "ok" else answer

    async def _ask(self, process: trio.Process, request: str) -> str | None:
        """Send a request and return the answer, or None when the process ends."""
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            await process.stdin.send_all(request.encode())
        except trio.BrokenResourceError:
            return None
        while len(self._read) < _LONGEST:
            line, end, rest = self._read.partition(b"\n")
            if end:
                self._read = rest
                text = line.decode(errors="replace").strip()
                if text == "ok" or text.split(" ")[0] == "failed":
                    return text
                os.write(2, line + end)
                continue
            more = await process.stdout.receive_some()
            if not more:
                return None
            self._read += more
        return None

    def close(self) -> None:
        if self._started is not None:
            self.output = self._started.end()
            self._started = None
