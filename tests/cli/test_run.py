"""Runs of `pulsarium serve` from its options to its signal, with a fake broker."""

from __future__ import annotations

import gc
import json
import logging
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from pulsarium.broker.config import Config, LoadedConfig, ServeOptions, load
from pulsarium.broker.net.accepting import PortInUse
from pulsarium.broker.storage.interface import StorageError
from pulsarium.cli import run
from pulsarium.cli.interrupts import GRACE_SECONDS
from pulsarium.cli.refusal import CommandRefusal, RunRefused
from pulsarium.cli.run import note_config, note_openness, refusal_of, serve_until_signal

READY = "pulsarium ready pulsar://127.0.0.1:1 http://127.0.0.1:2"


@dataclass
class Stub:
    """A broker that notes what happens to it."""

    service_url: str = "pulsar://127.0.0.1:1"
    admin_url: str = "http://127.0.0.1:2"
    service_url_tls: str | None = None
    admin_url_tls: str | None = None
    toxiproxy_url: str | None = None
    shut_down_by_an_operator: bool = False
    slow_to_open: bool = False
    slow_to_close: bool = False
    error: Exception | None = None
    events: str = ""
    lab: Any = None

    @property
    def brokers(self) -> list[Stub]:
        return [self]

    async def wait_shut_down(self) -> None:
        if not self.shut_down_by_an_operator:
            await trio.sleep_forever()

    @asynccontextmanager
    async def open(self, options: ServeOptions) -> AsyncIterator[Stub]:
        self.events += "opening "
        if self.slow_to_open:
            await trio.sleep_forever()
        if self.error:
            raise self.error
        try:
            yield self
            self.events += "orderly "
            await trio.sleep(0.1)  # a broker needs time to close its connections and its storage
            if self.slow_to_close:
                await trio.sleep_forever()
        finally:
            self.events += "closed"

    def announce_and_stop(self, number: signal.Signals = signal.SIGTERM) -> Callable[[str], None]:
        """Return a function that records the ready line, and then sends the signal to this process."""

        def announce(line: str) -> None:
            self.events += f"[{line}] "
            signal.raise_signal(number)

        return announce


def never(line: str) -> None:
    raise AssertionError(line)


async def test_an_operator_s_shutdown_closes_it_in_order(autojump_clock: trio.testing.MockClock) -> None:
    stub = Stub(shut_down_by_an_operator=True)
    await serve_until_signal(ServeOptions(), stub.open, lambda line: None)
    assert stub.events == "opening orderly closed"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_closes_it_in_order(number: signal.Signals, autojump_clock: trio.testing.MockClock) -> None:
    stub = Stub()
    await serve_until_signal(ServeOptions(), stub.open, stub.announce_and_stop(number))
    assert stub.events == f"opening [{READY}] orderly closed"
    assert autojump_clock.current_time() == pytest.approx(0.1)


async def test_collections_of_garbage_leave_out_what_the_start_has_made(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub = Stub()

    def freeze() -> None:
        stub.events += "frozen "

    monkeypatch.setattr(gc, "freeze", freeze)
    await serve_until_signal(ServeOptions(), stub.open, stub.announce_and_stop())
    assert stub.events == f"opening frozen [{READY}] orderly closed"


async def test_a_snapshot_is_written_before_the_broker_closes(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stub = Stub()

    async def write(running: Stub, path: Path, option: str) -> None:
        stub.events += f"{option} {path.name} "

    monkeypatch.setattr(run, "export", write)
    options = ServeOptions(export_on_exit=tmp_path / "last.snapshot")
    await serve_until_signal(options, stub.open, stub.announce_and_stop())
    assert stub.events == f"opening [{READY}] --export-on-exit last.snapshot orderly closed"


async def test_what_stands_around_a_broker_begins_before_it_is_announced(
    autojump_clock: trio.testing.MockClock,
) -> None:
    stub = Stub()

    @asynccontextmanager
    async def around(running: object) -> AsyncIterator[None]:
        stub.events += "begun "
        yield
        stub.events += "ended "

    await serve_until_signal(ServeOptions(), stub.open, stub.announce_and_stop(), around)
    assert stub.events == f"opening begun [{READY}] ended orderly closed"


async def test_a_close_that_hangs_is_cut_short(autojump_clock: trio.testing.MockClock) -> None:
    stub = Stub(slow_to_close=True)
    await serve_until_signal(ServeOptions(), stub.open, stub.announce_and_stop())
    assert stub.events == f"opening [{READY}] orderly closed"
    assert autojump_clock.current_time() == pytest.approx(GRACE_SECONDS)


async def test_a_signal_while_it_opens(autojump_clock: trio.testing.MockClock) -> None:
    stub = Stub(slow_to_open=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_until_signal, ServeOptions(), stub.open, never)
        await trio.testing.wait_all_tasks_blocked()
        signal.raise_signal(signal.SIGTERM)
    assert stub.events == "opening "
    assert autojump_clock.current_time() == pytest.approx(GRACE_SECONDS)


async def test_a_second_signal_ends_the_process(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    stub = Stub(slow_to_close=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_until_signal, ServeOptions(), stub.open, stub.announce_and_stop())
        await trio.testing.wait_all_tasks_blocked(cushion=0.2)
        assert codes == []
        signal.raise_signal(signal.SIGINT)
        await trio.testing.wait_all_tasks_blocked()
        assert codes == [130]


async def test_the_ready_file_is_there_while_it_serves(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    path = tmp_path / "ready.json"
    stub = Stub()
    stop = stub.announce_and_stop()

    def announce(line: str) -> None:
        written = json.loads(path.read_text())
        assert (written["service_url"], written["pid"]) == (stub.service_url, os.getpid())
        stop(line)

    await serve_until_signal(ServeOptions(ready_file=path), stub.open, announce)
    assert os.listdir(tmp_path) == []


async def test_a_ready_file_that_cannot_be_written(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    stub = Stub()
    options = ServeOptions(ready_file=tmp_path)
    with pytest.raises(BaseExceptionGroup) as caught:
        await serve_until_signal(options, stub.open, never)
    refusal = refusal_of(caught.value, options)
    assert refusal is not None
    assert refusal.message.startswith(f"--ready-file {tmp_path}: ")
    assert stub.events == "opening closed"


@pytest.mark.parametrize("option", ["--port", "--http-port"])
async def test_a_busy_port(option: str, autojump_clock: trio.testing.MockClock) -> None:
    with pytest.raises(BaseExceptionGroup) as caught:
        await serve_until_signal(ServeOptions(), Stub(error=PortInUse(6650, option)).open, never)
    refusal = refusal_of(caught.value, ServeOptions())
    assert refusal is not None
    assert (refusal.message, refusal.exit_code) == (
        f"port 6650 is in use; choose another with {option} N, or {option} 0 for a free one",
        1,
    )


def test_expected_failures_are_one_line() -> None:
    options = ServeOptions(config=Config(bindAddress="10.9.9.9", brokerServicePort=80))
    for error, message in [
        (StorageError("d is in use by another pulsarium (pid 7)"), "d is in use by another pulsarium (pid 7)"),
        (
            PermissionError(13, "Permission denied"),
            "cannot listen with --host 10.9.9.9 --port 80 --http-port 8080: Permission",
        ),
        (OSError(99, "Cannot assign requested address"), "cannot listen with --host 10.9.9.9"),
        (socket.gaierror(-2, "Name or service not known"), "cannot listen with --host 10.9.9.9"),
        (ExceptionGroup("", [ExceptionGroup("", [StorageError("full")]), StorageError("full")]), "full"),
        (RunRefused("said"), "said"),
    ]:
        refusal = refusal_of(error, options)
        assert isinstance(refusal, CommandRefusal)
        assert refusal.exit_code == 1
        assert refusal.message.startswith(message)


def test_a_bug_keeps_its_traceback() -> None:
    for error in (KeyError("x"), OSError(5, "I/O"), ExceptionGroup("", [StorageError("full"), KeyError("x")])):
        assert refusal_of(error, ServeOptions()) is None


def test_keys_without_effect_are_named_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    ignored = tuple(f"someLongKeyOfTheFile{number}" for number in range(300))
    with caplog.at_level(logging.INFO, "pulsarium"):
        note_config(LoadedConfig(Config(), ignored))
    (only,) = caplog.records
    assert str(only.msg) == f"these keys have no effect here: {', '.join(ignored)}"


def test_misspelled_keys_are_warned_about_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    unknown = tuple(f"key{number} (broker.conf:{number})" for number in range(12))
    note_config(LoadedConfig(Config(), unknown=unknown))
    (only,) = caplog.records
    assert only.levelno == logging.WARNING
    assert str(only.msg) == f"unknown broker.conf keys, check the spelling: {', '.join(unknown[:10])}, and 2 more"


def test_keys_of_other_releases_are_told_apart_from_misspelled_ones(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "pulsarium"):
        note_config(LoadedConfig(Config(), elsewhere=("one (2.7)", "two (2.8 to 4.1)")))
    (only,) = caplog.records
    assert only.levelno == logging.INFO
    assert str(only.msg) == (
        "other releases of Pulsar have these keys, and they have no effect here: one (2.7), two (2.8 to 4.1)"
    )


def test_each_key_that_asks_for_something_missing_has_a_warning_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    note_config(LoadedConfig(Config(), missing=(("one", "no kafka"), ("two", "no filter"))))
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.WARNING, 'this key has no effect here key=one why="no kafka"'),
        (logging.WARNING, 'this key has no effect here key=two why="no filter"'),
    ]


@pytest.mark.parametrize(
    ("setting", "warns"),
    [
        ("tokenSecretKey=data:;base64,c2VjcmV0", True),
        ("tokenSecretKey=c2VjcmV0", True),
        ("basicAuthConf=data:;base64,c2VjcmV0", True),
        ("tokenSecretKey=file:///k", False),
        ("tokenSecretKey=my/secret.key", False),
        ("tokenPublicKey=data:;base64,c2VjcmV0", False),
        ("tokenSecretKey=", False),
    ],
)
def test_a_secret_on_the_command_line_is_warned_about_and_not_shown(
    setting: str, warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    note_config(load(None, [setting]))
    key = setting.partition("=")[0]
    line = f"everybody on this machine sees the secret in the list of processes: name a file key={key}"
    assert [record.getMessage() for record in caplog.records] == [line] * warns


def test_a_secret_in_a_file_is_not_warned_about(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    (tmp_path / "broker.conf").write_text("tokenSecretKey=data:;base64,c2VjcmV0\n")
    note_config(load(tmp_path / "broker.conf"))
    assert caplog.records == []


@pytest.mark.parametrize(
    ("address", "secured", "warns"),
    [
        ("127.0.0.1", False, False),
        ("::1", False, False),
        ("localhost", False, False),
        ("0.0.0.0", False, True),
        ("::", False, True),
        ("broker.example", False, True),
        ("0.0.0.0", True, False),
    ],
)
def test_an_open_broker_that_others_may_reach(
    address: str, secured: bool, warns: bool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "in_a_container", lambda: False)
    note_openness(Config(bindAddress=address, authenticationEnabled=secured))
    assert ["everybody who reaches this broker" in str(record.msg) for record in caplog.records] == [True] * warns


def test_a_broker_in_a_container_is_open_without_a_warning(
    caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mark").touch()
    monkeypatch.setattr(run, "CONTAINER_MARKS", (tmp_path / "none", tmp_path / "mark"))
    note_openness(Config(bindAddress="0.0.0.0"))
    assert caplog.records == []


def test_nothing_is_said_of_a_config_without_such_keys(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "pulsarium"):
        note_config(LoadedConfig(Config()))
    assert caplog.records == []
