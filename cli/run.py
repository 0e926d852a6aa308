"""Run a broker from its options to its signal."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeVar, TypeVarTuple, Unpack

import trio

from pulsarium.broker.auth.sources import names_file
from pulsarium.broker.config import Config, ConfigError, LoadedConfig, ServeOptions
from pulsarium.broker.config.keys import documented_keys
from pulsarium.broker.config.listeners import is_loopback
from pulsarium.broker.logs import PartLog
from pulsarium.cli.garbage import keep_what_is_there
from pulsarium.cli.interrupts import GRACE_SECONDS
from pulsarium.cli.parent import Parent
from pulsarium.cli.ready import Urls, ready_content, remove_ready_file, remove_stale_ready_file, write_ready_file
from pulsarium.cli.refusal import CommandRefusal, RunRefused

if TYPE_CHECKING:
    from pulsarium.broker.lab.lab import Lab

log = PartLog("serve")

# The commit thread needs the interpreter a few times a transaction; a busy loop must yield within a millisecond.
SWITCH_INTERVAL: Final = 0.001
M_ARENA_MAX: Final = -8
CONTAINER_MARKS: Final = (Path("/.dockerenv"), Path("/run/.containerenv"))
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_MOST_UNKNOWN: Final = 10  # keys in one line of the log
_CANNOT_BIND: Final = (errno.EACCES, errno.EPERM, errno.EADDRNOTAVAIL)


class RunningBrokers(Urls, Protocol):
    """Brokers that can serve; the URLs are those of the first broker."""

    @property
    def brokers(self) -> Sequence[Urls]: ...
    @property
    def toxiproxy_url(self) -> str | None: ...
    @property
    def lab(self) -> Lab: ...
    async def wait_shut_down(self) -> None: ...


T = TypeVar("T")
Given = TypeVarTuple("Given")
Opener = Callable[[ServeOptions], AbstractAsyncContextManager[RunningBrokers]]
Job = Callable[[ServeOptions, Opener], Awaitable[T]]
Around = Callable[[RunningBrokers], AbstractAsyncContextManager[None]]


def run(
    options: ServeOptions,
    loaded: LoadedConfig,
    announce: Callable[[str], None] | None = None,
    *,
    around: Around | None = None,
    with_parent: bool = False,
) -> None:
    """Serve until SIGINT or SIGTERM, or until the process that started this one has ended.

    `around` begins before the broker is announced, and ends before it closes. Raise `CommandRefusal` when a port is
    taken, or when the data directory or the disk cannot be used.
    """
    parent = Parent(stdin=True) if with_parent else None
    announced = announce or print_ready
    run_loop(options, loaded, partial(serve_until_signal, announce=announced, around=around, parent=parent))


def run_loop(options: ServeOptions, loaded: LoadedConfig, job: Job[T]) -> T:
    """Run `job` with the function that opens the broker, on a loop that is tuned for a broker.

    Raise `CommandRefusal` as `run` does.
    """
    from pulsarium.broker.server import open_broker

    note_config(loaded)
    note_openness(options.config)
    sys.setswitchinterval(SWITCH_INTERVAL)
    raise_file_limit()
    share_one_heap()
    return run_job(options, job, options, open_broker)


def run_job(serving: ServeOptions, job: Callable[[Unpack[Given]], Awaitable[T]], *given: *Given) -> T:
    """Run `job` on a loop, and return its result. Raise `CommandRefusal` for a failure that is expected."""
    try:
        return trio.run(job, *given)
    except BaseException as error:
        refusal = refusal_of(error, serving)
        if refusal is None:
            raise
        raise refusal from None


def raise_file_limit() -> None:
    """Raise the limit of file descriptors to the most this process may have, because each connection takes one."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # macOS reports no number and does not accept every number
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def share_one_heap() -> None:
    """Let all threads share one heap of glibc.

    With several heaps, the memory that the loop frees stays unused while the storage thread fills its own heap, so the
    process takes twice the memory. Under the interpreter's lock one heap costs nothing.
    """
    with suppress(OSError, AttributeError, TypeError):  # musl, macOS and Windows have no mallopt
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)


def note_config(loaded: LoadedConfig) -> None:
    """Log the keys that have no effect. Warn of unknown keys, of missing capabilities, and of secrets in --set."""
    if loaded.unknown:
        more = f", and {len(loaded.unknown) - _MOST_UNKNOWN} more" if len(loaded.unknown) > _MOST_UNKNOWN else ""
        line = f"unknown broker.conf keys, check the spelling: {', '.join(loaded.unknown[:_MOST_UNKNOWN])}{more}"
        log.warning(line)
    if loaded.ignored:
        line = f"these keys have no effect here: {', '.join(loaded.ignored)}"
        log.info(line)
    if loaded.elsewhere:
        line = f"other releases of Pulsar have these keys, and they have no effect here: {', '.join(loaded.elsewhere)}"
        log.info(line)
    for name, lost in loaded.missing:
        log.warning("this key has no effect here", key=name, why=lost)
    for name, place in loaded.places.items():
        key = documented_keys()[name]
        value = getattr(loaded.config, name)
        if place == "--set" and key.meaning.secret and value and not names_file(value):
            log.warning("everybody on this machine sees the secret in the list of processes: name a file", key=name)
        if key.meaning.without_effect and value != key.default:
            log.warning("this key has no effect here", key=name, why=key.meaning.without_effect)


def note_openness(config: Config, can: str = "everybody who reaches this broker may do everything") -> None:
    """Warn when the broker accepts other machines without authentication. `can` says what their people can do.

    A container has no other address that clients outside can reach, and its engine decides who they are.
    """
    if not (config.authenticationEnabled or is_loopback(config.bindAddress) or in_a_container()):
        line = f"{can}: set authenticationEnabled, or bind 127.0.0.1"
        log.warning(line, address=config.bindAddress)


def in_a_container() -> bool:
    """Return whether this process runs in a container of Docker, Podman or Kubernetes."""
    return "KUBERNETES_SERVICE_HOST" in os.environ or any(mark.exists() for mark in CONTAINER_MARKS)


def print_ready(line: str) -> None:
    print(line, flush=True)


async def serve_until_signal(
    options: ServeOptions,
    opener: Opener,
    announce: Callable[[str], None],
    around: Around | None = None,
    parent: Parent | None = None,
) -> None:
    """Open the broker, announce it, and close it at the first signal; a second signal ends the process at once."""
    if options.ready_file is not None:
        remove_stale_ready_file(options.ready_file)
    stopping = trio.Event()
    with trio.open_signal_receiver(*_SIGNALS) as signals:
        async with trio.open_nursery() as nursery:
            serving = trio.CancelScope()
            nursery.start_soon(_stop_on_signal, signals, stopping, serving)
            if parent is not None:
                nursery.start_soon(_stop_with_parent, parent, stopping, serving)
            with serving:
                async with opener(options) as running:
                    # From here on a signal cancels nothing: the broker closes in its own order, within the grace.
                    if not stopping.is_set():
                        nursery.start_soon(_stop_when_shut_down, running, stopping)
                        keep_what_is_there()
                        async with nullcontext() if around is None else around(running):
                            with ready(running, options, announce):
                                await stopping.wait()
                        if options.export_on_exit is not None:
                            await export(running, options.export_on_exit, "--export-on-exit")
                            serving.deadline = trio.current_time() + GRACE_SECONDS
            nursery.cancel_scope.cancel()


@contextmanager
def ready(running: RunningBrokers, options: ServeOptions, announce: Callable[[str], None]) -> Iterator[None]:
    """Announce the broker with the ready line, and keep the ready file while the block runs."""
    urls = (running.service_url, running.admin_url, running.service_url_tls, running.admin_url_tls)
    line = " ".join(["pulsarium ready", *(url for url in urls if url is not None)])
    path = options.ready_file
    if path is None:
        announce(line)
        yield
        return
    content = ready_content(running.brokers, os.getpid(), running.toxiproxy_url)
    try:
        write_ready_file(path, content)
    except OSError as error:
        raise RunRefused(f"--ready-file {path}: {error.strerror}") from None
    try:
        announce(line)
        yield
    finally:
        remove_ready_file(path, content)


async def export(running: RunningBrokers, path: Path, option: str) -> None:
    """Write a snapshot to a file. Raise `RunRefused`, which names the option, when that fails."""
    from pulsarium.broker.storage.interface import StorageError

    try:
        await running.lab.state.snapshot(path)
    except StorageError as error:
        raise RunRefused(f"{option}: {error}") from None


async def _stop_when_shut_down(running: RunningBrokers, stopping: trio.Event) -> None:
    await running.wait_shut_down()
    log.info("stopping", reason="shut down over REST")
    stopping.set()


async def _stop_with_parent(parent: Parent, stopping: trio.Event, serving: trio.CancelScope) -> None:
    log.info("stopping", reason=await parent.wait())
    stopping.set()
    serving.deadline = min(serving.deadline, trio.current_time() + GRACE_SECONDS)


async def _stop_on_signal(signals: AsyncIterator[int], stopping: trio.Event, serving: trio.CancelScope) -> None:
    async for number in signals:
        name = signal.Signals(number).name
        if stopping.is_set():
            log.warning("stopped by a second signal", signal=name)
            os._exit(128 + number)
        log.info("stopping", signal=name)
        stopping.set()
        serving.deadline = trio.current_time() + GRACE_SECONDS


def refusal_of(error: BaseException, options: ServeOptions) -> CommandRefusal | None:
    """Return the message for an expected failure, or None when `error` contains a bug."""
    from pulsarium.broker.net.accepting import PortInUse
    from pulsarium.broker.storage.interface import StorageError

    match error:
        case BaseExceptionGroup(exceptions=errors):
            refusals = [refusal_of(each, options) for each in errors]
            return None if None in refusals else refusals[0]
        case CommandRefusal():
            return error
        case PortInUse(port=port, option=option):
            return RunRefused(f"port {port} is in use; choose another with {option} N, or {option} 0 for a free one")
        case StorageError() | ConfigError():
            return RunRefused(str(error))
        case OSError() if isinstance(error, socket.gaierror) or error.errno in _CANNOT_BIND:
            asked = f"--host {options.host} --port {options.port} --http-port {options.http_port}"
            return RunRefused(f"cannot listen with {asked}: {error.strerror}; pass a local address as --host")
        case _:
            return None
