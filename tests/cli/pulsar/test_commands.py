"""`bin/pulsar-admin` and `bin/pulsar-client`: what conf/client.conf means to them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pulsarium.cli.client.session import Session
from pulsarium.cli.pulsar.commands import admin, client


@pytest.mark.parametrize("arguments", [["produce", "t", "-m", "x"], ["read", "t"]])
def test_pulsar_client_asks_the_broker_of_client_conf(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(Session, "run", lambda session, job: asked.append(session.settings["brokerServiceUrl"]))
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
