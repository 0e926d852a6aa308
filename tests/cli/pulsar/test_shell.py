"""`bin/pulsar-shell`: lines of admin and client commands."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulsarium.broker.testing import PulsarBroker, running
from pulsarium.cli.pulsar import shell


@pytest.fixture(scope="module")
def broker() -> Iterator[PulsarBroker]:
    with running() as broker:
        yield broker


@pytest.fixture
def home(broker: PulsarBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder whose client.conf leads to the broker."""
    for name in ("PULSAR_ADMIN_URL", "PULSARIUM_ADMIN_URL", "PULSAR_SERVICE_URL", "PULSARIUM_SERVICE_URL"):
        monkeypatch.delenv(name, raising=False)
    urls = f"brokerServiceUrl={broker.service_url}\nwebServiceUrl={broker.admin_url}\n"
    (tmp_path / "client.conf").write_text(urls)
    monkeypatch.setenv("PULSAR_CLIENT_CONF", str(tmp_path / "client.conf"))
    return tmp_path


def run(home: Path, capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str]:
    """Return the exit code and the output."""
    with pytest.raises(SystemExit) as ended:
        shell.main(home, arguments)
    return ended.value.code, capfd.readouterr().out


def test_one_line_is_executed(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(home, capfd, "-e", "admin tenants list") == (0, "public\npulsar\n")
    assert run(home, capfd, "-e", "admin tenants get nobody")[0] == 1


def test_lines_of_a_file_are_executed_to_the_end(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (home / "lines").write_text("# a comment\nadmin tenants get nobody\n\nadmin tenants list\n")
    assert run(home, capfd, "-f", str(home / "lines"))[1] == "public\npulsar\n"
    assert run(home, capfd, "-f", str(home / "lines"), "--fail-on-error") == (1, "")


def test_the_shell_ends_at_exit(home: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("client produce t -m 'a message'\nexit\nadmin tenants list\n"))
    assert run(home, capfd) == (0, "")


def test_an_unknown_word_and_an_open_quotation_are_told(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for line, said in (("nonsense", "admin ARGS, client ARGS"), ("admin 'x", "close the quotation mark")):
        with pytest.raises(SystemExit, match="2"):
            shell.main(home, ["-e", line])
        assert said in capfd.readouterr().err


def test_help_names_the_commands(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, out = run(home, capfd, "-e", "help")
    assert (code, out.startswith("admin ARGS, client ARGS")) == (0, True)


def test_a_file_that_is_not_there_is_told_in_one_line(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        shell.main(home, ["-f", "none"])
    assert "--filename none: " in capfd.readouterr().err
