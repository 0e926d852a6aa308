"""`pulsarium proxy`: its options, and the process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from pulsarium.capture.file import CaptureReader
from pulsarium.cli import run
from pulsarium.cli.main import cli
from yardsticks.servers import ending


def test_the_proxy_runs_until_a_signal(tmp_path: Path) -> None:
    ready, capture = tmp_path / "ready.json", tmp_path / "run.pulscap"
    command = [sys.executable, "-P", "-m", "pulsarium", "proxy", "pulsar://localhost:1", "--ready-file", str(ready)]
    command += ["--capture", str(capture)]
    with ending(subprocess.Popen(command, stdout=subprocess.PIPE, text=True)) as process:
        assert process.stdout is not None
        words = process.stdout.readline().split()
        told = json.loads(ready.read_text())
        assert words == ["pulsarium", "ready", told["service_url"], told["admin_url"]]
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert not ready.exists()
    assert list(CaptureReader().feed(capture.read_bytes())) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["http://h:1"], "pulsar://HOST:PORT or pulsar+ssl://HOST:PORT is wanted"),
        (["pulsar://h:1", "--admin-url", "h:8080"], "http://HOST:PORT or https://HOST:PORT is wanted"),
        (["pulsar://h:1", "--tls-key", "{here}"], "--tls-key: name the certificate, too"),
        (["pulsar://h:1", "--https-port", "0"], "--https-port: name the certificate, too"),
        (["pulsar://h:1", "--tls-port", "0"], "--tls-port: name the certificate, too"),
        (["pulsar://h:1", "--tls-cert", "{here}"], "no effect without --tls-port N or --https-port N"),
        (["pulsar://h:1", "--tls-port", "0", "--tls-cert", "{here}"], "--tls-cert: tlsCertificateFilePath: "),
        (["pulsar+ssl://h:1", "--client-key", "{here}"], "--client-key: name the certificate, too"),
        (["pulsar+ssl://h:1", "--tls-trust-cert-path", "{here}"], "a certificate or a key cannot be used"),
        (
            ["pulsar://h:1", "--admin-url", "https://h:1", "--tls-trust-cert-path", "{here}"],
            "a certificate or a key cannot be used",
        ),
        (["pulsar://h:1", "--set", "authenticationEnabled"], "--set: 'authenticationEnabled' is not key=value"),
        (["pulsar://h:1", "--set", "authorizationEnabled=true"], "needs authenticationEnabled=true"),
        (["pulsar://h:1", "--set", "bindAddress=0.0.0.0"], "--set bindAddress has no effect on a proxy: pass --host"),
        (
            ["pulsar://h:1", "--set", "maxMessageSize=9"],
            "--set maxMessageSize has no effect on a proxy: set it on its brokers",
        ),
        (["pulsar://h:1", "--set", "webServicePortTls=1"], "has no effect on a proxy: pass --https-port"),
        (
            ["pulsar://h:1", "--host", "0.0.0.0", "--toxiproxy-port", "0", "--set", "authenticationEnabled=true"],
            "Toxiproxy's API has no authentication, and 0.0.0.0 is open to other machines",
        ),
        (["pulsar://8.8.8.8", "--toxiproxy-port", "0"], "--toxiproxy-port: pulsar://8.8.8.8:6650 may be production"),
    ],
)
def test_the_proxy_refuses_what_cannot_be(arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(cli, ["proxy", *[each.format(here=__file__) for each in arguments]])
    assert result.exit_code == 2
    assert words in result.stderr


@pytest.mark.parametrize("secured", [False, True])
def test_a_proxy_that_other_machines_may_reach_warns_without_authentication(
    secured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "in_a_container", lambda: False)
    monkeypatch.setattr(run, "run_job", lambda *_: None)
    options = ["--set", "authenticationEnabled=true"] if secured else []
    result = CliRunner().invoke(cli, ["proxy", "pulsar://h:1", "--host", "0.0.0.0", *options])
    assert result.exit_code == 0
    assert ("everybody who reaches this proxy may use its lab" in result.stderr) is not secured
