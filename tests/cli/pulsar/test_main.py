"""`bin/pulsar` with its subcommands and errors. `bin/pulsar-admin` and `bin/pulsar-client` with conf/client.conf."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pulsarium.broker.config.version import VERSION
from pulsarium.cli.client.session import ClientRun
from pulsarium.cli.pulsar.main import admin, client, main


def run(home: Path, capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str, str]:
    """Return exit status, stdout and stderr."""
    with pytest.raises(SystemExit) as ended:
        main(home, arguments)
    return (ended.value.code or 0, *capfd.readouterr())


@pytest.mark.parametrize("name", ["functions-worker", "websocket", "nonsense"])
def test_a_subcommand_that_is_not_there_is_refused_in_one_line(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, capfd, name) == (
        2,
        "",
        (
            f"pulsarium: bin/pulsar {name} does not exist; use standalone, tokens, broker, "
            "initialize-cluster-metadata, zookeeper, configuration-store, bookie, autorecovery, proxy, help, version\n"
        ),
    )


def test_an_option_that_pulsar_has_not_is_refused_in_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, capfd, "standalone", "--nonsense") == (
        2,
        "",
        "pulsarium: No such option '--nonsense'. See bin/pulsar standalone --help.\n",
    )


def test_the_version_is_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, capfd, "version") == (0, f"Current version of pulsarium is: {VERSION}\n", "")


@pytest.mark.parametrize("arguments", [(), ("help",), ("--help",)])
def test_help_names_the_subcommands(
    arguments: tuple[str, ...], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run(tmp_path, capfd, *arguments)
    assert (status, err) == (0, "")
    for name in ("standalone", "tokens", "version"):
        assert f"  {name} " in out


@pytest.mark.parametrize("arguments", [["produce", "t", "-m", "x"], ["read", "t"]])
def test_pulsar_client_asks_the_broker_of_client_conf(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(ClientRun, "run", lambda session, job: asked.append(session.settings["brokerServiceUrl"]))
    monkeypatch.setenv("PULSAR_CLIENT_CONF", str(tmp_path / "my.conf"))
    (tmp_path / "my.conf").write_text("brokerServiceUrl=pulsar://b:1\nauthPlugin=\nauthParams=\n")
    with pytest.raises(SystemExit, match="0"):
        client(tmp_path, arguments)
    assert asked == ["pulsar://b:1"]


@pytest.mark.parametrize("run", [admin, client])
def test_a_client_conf_that_is_not_there_is_named(
    run: Callable[[Path, list[str]], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PULSAR_CLIENT_CONF", "")  # so that monkeypatch removes the variable that the command sets
    monkeypatch.delenv("PULSAR_CLIENT_CONF")
    with pytest.raises(SystemExit):
        run(tmp_path, ["tenants", "list"] if run is admin else ["read", "t"])
    assert capfd.readouterr().err.startswith(f"pulsarium: --config: {tmp_path}/conf/client.conf: No such file")


def test_pulsar_admin_asks_the_broker_of_client_conf(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The error names port 1, where no program listens."""
    monkeypatch.delenv("PULSAR_ADMIN_URL", raising=False)
    monkeypatch.setenv("PULSAR_CLIENT_CONF", str(tmp_path / "my.conf"))
    (tmp_path / "my.conf").write_text("webServiceUrl=http://127.0.0.1:1/\n")
    with pytest.raises(SystemExit, match="1"):
        admin(tmp_path, ["tenants", "list"])
    assert "127.0.0.1:1" in capfd.readouterr().err
