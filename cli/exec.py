"""`pulsarium exec`: a broker for as long as a command runs."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarium.cli.grouped import GroupedCommand
from pulsarium.cli.ready import URLS, Urls
from pulsarium.cli.refusal import Refusal, RequestRefused, RunRefused
from pulsarium.cli.serve import FILE, broker_options, gather, output

if TYPE_CHECKING:
    from pulsarium.broker.config import ServeOptions
    from pulsarium.cli.run import Opener, Running

_FORWARDED: Final = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_FROM_KEYBOARD: Final = ("SIGINT", "SIGQUIT")


class NotFound(Refusal):
    """There is no such program."""

    exit_code = 127


class NotExecutable(Refusal):
    """There is a file of that name, which cannot be run."""

    exit_code = 126


@click.command(
    "exec",
    cls=GroupedCommand,
    context_settings={"allow_interspersed_args": False},
    short_help="Run a broker for as long as a command runs.",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND [ARG]...")
@broker_options(free_ports=True, log_level="warning")
@output("--export", type=FILE, metavar="FILE", help="Write a snapshot there when COMMAND has ended.")
def exec_(command: tuple[str, ...], export: Path | None, log_level: str, log_format: str, **asked: Any) -> None:
    """Run a broker on free ports for as long as COMMAND runs.

    COMMAND finds the broker in PULSAR_SERVICE_URL and PULSAR_ADMIN_URL, which `pulsarium admin` and `pulsarium client`
    read too; where the broker speaks TLS also in PULSAR_SERVICE_URL_TLS and PULSAR_ADMIN_URL_TLS. Signals go on to
    COMMAND. The exit code is the one of COMMAND, 128 and the number of the signal that ended it, 126 if it cannot be
    executed and 127 if it is not there.

    \b
    A test suite with a broker of its own:
      pulsarium exec -- pytest tests
    With topics that are there before, and all that was published in a file afterwards:
      pulsarium exec --seed orders.toml --export after.snapshot -- ./integration-tests
    Several commands:
      pulsarium exec -- sh -c 'pulsarium client produce t -m hello && ./application'

    The options are those of pulsarium serve; ports of a --config file are left alone, so that two runs never meet.
    """
    _look_for(command[0])
    if export is not None and not export.absolute().parent.is_dir():
        raise RequestRefused(f"--export: {export.parent} is not a directory")
    options, loaded = gather(asked, free_ports=True)

    from pulsarium.cli.logs import configure
    from pulsarium.cli.run import run_loop

    configure(log_level, log_format)
    sys.exit(run_loop(options, loaded, partial(accompany, command=command, export=export)))


def _look_for(program: str) -> None:
    if shutil.which(program) is None:
        if os.sep in program and Path(program).exists():
            raise NotExecutable(
                f"exec: {program} cannot be executed; make it executable, or name what runs it before it"
            )
        raise NotFound(f"exec: {program}: command not found; name a program on the PATH, or the path of one")


async def accompany(options: ServeOptions, opener: Opener, command: Sequence[str], export: Path | None = None) -> int:
    """Open the broker, run the command, close the broker, and return the exit code."""
    import trio

    from pulsarium.cli.run import GRACE_SECONDS, log, ready

    run = Run(command)
    heeded = [number for number in _numbers(*_FORWARDED) if signal.getsignal(number) is not signal.SIG_IGN]
    with trio.open_signal_receiver(*heeded) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run.forward, signals)
            with run.scope:
                async with opener(options) as running:
                    with ready(running, options, log.info):
                        await run.to_its_end(environment(running))
                    if export is not None:
                        await _export(running, export)
                    run.scope.deadline = trio.current_time() + GRACE_SECONDS
            nursery.cancel_scope.cancel()
    return run.status


class Run:
    """The command as a process, its exit code, and the signals that go on to it."""

    def __init__(self, command: Sequence[str]) -> None:
        import trio

        self.status = 0
        self.scope = trio.CancelScope()  # of the broker and the command
        self._command = command
        self._process: trio.Process | None = None

    async def to_its_end(self, env: Mapping[str, str]) -> None:
        """Run the command. Raises Refusal if that is not possible."""
        import trio

        try:
            self._process = await trio.lowlevel.open_process(self._command, env=env)
        except FileNotFoundError as error:  # what runs a script
            raise NotFound(f"exec: {self._command[0]}: {error.strerror}") from None
        except OSError as error:
            raise NotExecutable(f"exec: {self._command[0]} cannot be executed: {error.strerror}") from None
        try:
            code = await self._process.wait()
            self.status = code if code >= 0 else 128 - code
        finally:
            if self._process.returncode is None:  # the broker failed
                self._process.terminate()

    async def forward(self, signals: AsyncIterator[int]) -> None:
        """Send signals on to the command; before and after it they end the broker."""
        async for number in signals:
            if self._process is None or self._process.returncode is not None:
                self.status = self.status or 128 + number
                self.scope.cancel()
            elif not (number in _numbers(*_FROM_KEYBOARD) and _is_in_foreground()):
                self._process.send_signal(number)


def _numbers(*names: str) -> list[signal.Signals]:
    """Return the signals of these names that this system has."""
    return [signal.Signals[name] for name in names if hasattr(signal, name)]


def _is_in_foreground() -> bool:
    """Return whether keys of a terminal reach this process, and so the command too, which is of the same group."""
    try:
        with open("/dev/tty") as terminal:
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False


def environment(running: Urls) -> dict[str, str]:
    """Return the environment of this process with the URLs of the broker, and of no other."""
    names = {f"{prefix}_{name.upper()}": name for prefix in ("PULSAR", "PULSARIUM") for name in URLS}
    urls = {variable: getattr(running, name) for variable, name in names.items()}
    others = {variable: value for variable, value in os.environ.items() if variable not in urls}
    return {**others, **{variable: url for variable, url in urls.items() if url is not None}}


async def _export(running: Running, path: Path) -> None:
    from pulsarium.broker.storage.interface import StorageError

    try:
        await running.lab.state.snapshot(path)
    except StorageError as error:
        raise RunRefused(f"--export: {error}") from None
