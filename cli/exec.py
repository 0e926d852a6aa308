"""`pulsarium exec`: a broker for as long as a command runs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarium.cli.grouped import GroupedCommand
from pulsarium.cli.lab.proxy import in_front_of, refuse_options_of_a_broker, refuse_options_of_a_proxy
from pulsarium.cli.parent import Parent, bound_to_this_thread, with_parent
from pulsarium.cli.ready import URLS, Urls
from pulsarium.cli.refusal import CommandRefusal
from pulsarium.cli.serve import FILE, broker_options, check_folder, gather, output

if TYPE_CHECKING:
    from pulsarium.broker.config import ServeOptions
    from pulsarium.cli.run import Opener

_FORWARDED: Final = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
PATIENCE_SECONDS: Final = 5.0  # between SIGTERM and SIGKILL
_FROM_KEYBOARD: Final = ("SIGINT", "SIGQUIT")


class NotFound(CommandRefusal):
    """The program does not exist."""

    exit_code = 127


class NotExecutable(CommandRefusal):
    """The program exists and cannot be executed."""

    exit_code = 126


@click.command(
    "exec",
    cls=GroupedCommand,
    context_settings={"allow_interspersed_args": False},
    short_help="Run a broker for as long as a command runs.",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND [ARG]...")
@in_front_of()
@broker_options(free_ports=True, log_level="warning")
@with_parent
@output("--export", type=FILE, metavar="FILE", help="Write a snapshot to FILE when COMMAND has ended.")
def exec_(
    command: tuple[str, ...],
    proxy: str | None,
    proxy_admin_url: str | None,
    sure: bool,
    export: Path | None,
    log_level: str,
    log_format: str,
    with_parent: bool,
    **asked: Any,
) -> None:
    """Run a broker on free ports for as long as COMMAND runs.

    COMMAND finds the broker's URLs in PULSAR_SERVICE_URL and PULSAR_ADMIN_URL, which `pulsarium admin` and
    `pulsarium client` read too. With TLS, PULSAR_SERVICE_URL_TLS and PULSAR_ADMIN_URL_TLS are set too. Signals go on
    to COMMAND. The exit code is that of COMMAND, or 128 plus the number of the signal that ended COMMAND. It is 126
    when COMMAND cannot be executed and 127 when COMMAND does not exist. On Linux, COMMAND gets SIGTERM when this
    process is killed.

    \b
    Run a test suite with its own broker:
      pulsarium exec -- pytest tests
    Create topics before, and save all published messages to a file afterwards:
      pulsarium exec --seed orders.toml --export after.snapshot -- ./integration-tests
    Run it through a proxy in front of another cluster:
      pulsarium exec --proxy pulsar://staging:6650 --proxy-admin-url http://staging:8080 -- pytest tests
    Run several commands:
      pulsarium exec -- sh -c 'pulsarium client produce t -m hello && ./application'

    The options are those of pulsarium serve. Ports in a --config file are ignored, so that two runs never collide.
    """
    look_for(command[0], "exec")
    check_folder("--export", export)
    if proxy is not None:
        refuse_options_of_a_broker([*asked, "export", "with_parent"])
        logs = log_level, log_format
        sys.exit(_through_a_proxy(command, proxy, admin_url=proxy_admin_url, sure=sure, logs=logs))
    refuse_options_of_a_proxy()
    options, loaded = gather(asked, free_ports=True)

    from pulsarium.cli.logs import configure
    from pulsarium.cli.run import run_loop

    configure(log_level, log_format)
    parent = Parent(stdin=False) if with_parent else None  # standard input is for COMMAND
    sys.exit(run_loop(options, loaded, partial(accompany, command=command, export=export, parent=parent)))


def _through_a_proxy(
    command: tuple[str, ...], url: str, *, admin_url: str | None, sure: bool, logs: tuple[str, str]
) -> int:
    """Run a command with the URLs of a proxy, and return its exit code. `logs` are a level and a format."""
    from pulsarium.cli.lab.proxy import opener, proxy_of, served, warn_of_production
    from pulsarium.cli.logs import configure
    from pulsarium.cli.run import run_job

    options = proxy_of(url, admin_url=admin_url, sure=sure)
    configure(*logs)
    warn_of_production(options)
    serving = served(options)
    return run_job(serving, accompany, serving, opener(options), command)


def look_for(program: str, asking: str) -> None:
    """Refuse a program that does not exist, or that cannot be executed."""
    if shutil.which(program) is None:
        if os.sep in program and Path(program).exists():
            raise NotExecutable(
                f"{asking}: {program} cannot be executed; make it executable, or name its interpreter before it"
            )
        raise NotFound(f"{asking}: {program}: command not found; name a program on the PATH, or its path")


async def accompany(
    options: ServeOptions,
    opener: Opener,
    command: Sequence[str],
    export: Path | None = None,
    parent: Parent | None = None,
) -> int:
    """Open the broker, run the command, close the broker, and return the exit code."""
    import trio

    from pulsarium.cli.interrupts import GRACE_SECONDS
    from pulsarium.cli.run import export as write_snapshot
    from pulsarium.cli.run import log, ready

    run = CommandProcess(command)
    forwarded = [number for number in _numbers(*_FORWARDED) if signal.getsignal(number) is not signal.SIG_IGN]
    with trio.open_signal_receiver(*forwarded) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run.forward, signals)
            if parent is not None:
                nursery.start_soon(run.follow, parent)
            with run.scope:
                async with opener(options) as running:
                    with ready(running, options, log.info):
                        await run.to_its_end(environment(running))
                    if export is not None:
                        await write_snapshot(running, export, "--export")
                    run.scope.deadline = trio.current_time() + GRACE_SECONDS
            nursery.cancel_scope.cancel()
    return run.status


class CommandProcess:
    """The process of the command, its exit code, and the signals that go on to it."""

    def __init__(self, command: Sequence[str]) -> None:
        import trio

        self.status = 0
        self.scope = trio.CancelScope()  # of the broker and the command
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None

    async def to_its_end(self, env: Mapping[str, str]) -> None:
        """Run the command. Raise `CommandRefusal` if the command cannot be started."""
        import trio

        try:
            self._process = _started(self._command, env)
        except FileNotFoundError as error:  # also when a script's interpreter does not exist
            raise NotFound(f"exec: {self._command[0]}: {error.strerror}") from None
        except OSError as error:
            raise NotExecutable(f"exec: {self._command[0]} cannot be executed: {error.strerror}") from None
        try:
            code = await trio.to_thread.run_sync(self._process.wait, abandon_on_cancel=True)
            self.status = code if code >= 0 else 128 - code
        finally:
            if self._process.returncode is None:  # the broker failed
                self._process.terminate()

    async def forward(self, signals: AsyncIterator[int]) -> None:
        """Send signals on to the command. A signal before or after the command ends the broker."""
        async for number in signals:
            if not (number in _numbers(*_FROM_KEYBOARD) and self._runs and _is_in_foreground()):
                self._send(number)

    async def follow(self, parent: Parent) -> None:
        """End the command when the process that started this one has ended."""
        import trio

        await parent.wait()
        self._send(signal.SIGTERM)
        await trio.sleep(PATIENCE_SECONDS)
        if self._process is not None:
            self._process.kill()

    @property
    def _runs(self) -> bool:
        return self._process is not None and self._process.returncode is None

    def _send(self, number: int) -> None:
        """Signal the command, or end the broker before or after the command."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)
        else:
            self.status = self.status or 128 + number
            self.scope.cancel()


def _started(command: Sequence[str], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start the command on this thread, so that it ends when this process is killed."""
    return subprocess.Popen(command, env=env, preexec_fn=bound_to_this_thread())  # noqa: PLW1509  makes a system call


def _numbers(*names: str) -> list[signal.Signals]:
    """Return the signals of these names that this system has."""
    return [signal.Signals[name] for name in names if hasattr(signal, name)]


def _is_in_foreground() -> bool:
    """Return whether the terminal sends Ctrl-C to this process, and so to the command, which is of the same group."""
    try:
        with open("/dev/tty") as terminal:
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False


def environment(running: Urls) -> dict[str, str]:
    """Return this process's environment with the URLs of this broker, without those of any other."""
    names = {
        f"{prefix}_{name.upper()}": name for prefix in ("PULSAR", "PULSARIUM") for name in (*URLS, "toxiproxy_url")
    }
    urls = {variable: getattr(running, name, None) for variable, name in names.items()}
    others = {variable: value for variable, value in os.environ.items() if variable not in urls}
    return {**others, **{variable: url for variable, url in urls.items() if url is not None}}
