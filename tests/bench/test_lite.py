"""pulsar-lite is started with its own options, and is ready once it answers CONNECT."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest

from yardsticks.bench.__main__ import commands, name_of_other
from yardsticks.bench.brokers import LITE, BrokerError, launched
from yardsticks.bench.programs import OF_LITE

PRETENDER = f"""#!{sys.executable} -S
import socket, sys
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
assert options.keys() == {{"--addr", "--db-path", "--config"}}, options
assert "metrics_addr" in open(options["--config"]).read()
host, port = options["--addr"].split(":")
with socket.create_server((host, int(port))) as listener:
    connection, _ = listener.accept()
    connection.recv(100)
    connection.sendall(bytes(9))
    listener.accept()
"""


@pytest.fixture
def pretender(tmp_path: Path) -> str:
    program = tmp_path / LITE
    program.write_text(PRETENDER)
    program.chmod(0o700)
    return str(program)


def options(against: str) -> argparse.Namespace:
    return argparse.Namespace(on=None, against=against)


def test_it_is_ready_once_it_answers_connect(pretender: str) -> None:
    with launched([pretender], kept=True) as launch:
        assert launch.ready_seconds == launch.connect_seconds > 0
        assert launch.broker.pid == launch.pid


def test_it_is_measured_beside_a_pulsarium_with_the_settings_of_a_comparison(pretender: str, tmp_path: Path) -> None:
    both = commands(options(pretender), tmp_path)
    assert list(both) == ["pulsarium", name_of_other(pretender)] == ["pulsarium", LITE]
    assert both[LITE] == [pretender]
    assert "--config" in both["pulsarium"]


def test_it_is_found_on_the_path(pretender: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commands(options(LITE), tmp_path)[LITE] == [pretender]


def test_a_missing_program_is_named_with_what_helps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BrokerError, match="pulsar-lite is no program: pip install pulsar-lite"):
        commands(options(LITE), tmp_path)


def test_its_programs_need_neither_rest_nor_key_shared() -> None:
    assert OF_LITE == [
        "publish-unbatched",
        "publish-batched",
        "consume-shared-unbatched",
        "consume-shared-batched",
        "consume-exclusive-unbatched",
        "consume-exclusive-batched",
        "last-message-id",
        "send-sync",
        "raw-publish-unbatched",
        "raw-consume-shared-unbatched",
        "raw-consume-exclusive-unbatched",
        "raw-send-sync",
    ]
