"""The banner of a broker that has started, for people at a terminal."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import click
import pytest

from pulsarium.broker.config import ServeOptions, load
from pulsarium.cli.banner import announce, banner

READY = "pulsarium ready pulsar://0.0.0.0:6650 http://0.0.0.0:8080"


def shown(options: ServeOptions, line: str = READY) -> str:
    return click.unstyle(banner(options, line))


class FakeTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_script_reads_the_ready_line_and_a_terminal_the_banner(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe, terminal = io.StringIO(), FakeTerminal()
    monkeypatch.setattr(sys, "stdout", pipe)
    announce(ServeOptions(), READY)
    assert pipe.getvalue() == f"{READY}\n"
    monkeypatch.setattr(sys, "stdout", terminal)
    announce(ServeOptions(), READY)
    assert "pulsarium ready" not in terminal.getvalue()
    assert "is ready" in terminal.getvalue()


@pytest.mark.parametrize("address", ["0.0.0.0", "127.0.0.1", "[::]", "[::1]"])
def test_urls_of_this_machine_name_localhost(address: str) -> None:
    said = shown(ServeOptions(), READY.replace("0.0.0.0", address))
    assert "clients   pulsar://localhost:6650\n" in said
    assert "console   http://localhost:8080\n" in said
    assert address not in said


def test_the_banner_says_where_the_data_is(tmp_path: Path) -> None:
    assert "in memory, gone when the broker stops" in shown(ServeOptions())
    assert f"messages  in {tmp_path}\n" in shown(ServeOptions(data=tmp_path))


def test_the_banner_says_when_topics_vanish() -> None:
    assert "vanish when nobody uses them for 1m; --set" in shown(ServeOptions())
    keeps = load(None, ["brokerDeleteInactiveTopicsEnabled=false"]).config
    assert "vanish" not in shown(ServeOptions(config=keeps))


def test_the_next_command_names_a_broker_on_another_port() -> None:
    assert ": pulsarium client produce orders" in shown(ServeOptions())
    said = shown(ServeOptions(), READY.replace("6650", "7000"))
    assert ": pulsarium client --url pulsar://localhost:7000 produce orders" in said


def test_the_banner_has_the_urls_of_tls() -> None:
    said = shown(ServeOptions(), f"{READY} pulsar+ssl://host:6651 https://host:8443")
    assert "TLS       pulsar+ssl://host:6651 https://host:8443\n" in said
