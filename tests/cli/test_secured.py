"""Commands that talk to a broker, against the secured broker of examples/secure."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner, Result

from pulsarium.capture.file import CaptureReader
from pulsarium.cli.main import cli
from tests.docs.blocks import ROOT, TESTED, blocks
from yardsticks.servers import ending

EXAMPLE = ROOT / "examples" / "secure"
FREE = ("--port", "0", "--http-port", "0", "--tls-port", "0", "--https-port", "0", "--ready-file", "ready.json")


class Secured(NamedTuple):
    folder: Path
    service_url: str
    admin_url: str

    def run(self, *line: str) -> Result:
        """Run a command in the folder of the keys. No environment variable proves a role."""
        nobody = {"PULSARIUM_TOKEN": None, "PULSAR_CLIENT_CONF": None}
        return CliRunner().invoke(cli, line, prog_name="pulsarium", env=nobody, catch_exceptions=False)

    def said(self, *line: str) -> str:
        result = self.run(*line)
        assert (result.exit_code, result.stderr) == (0, ""), line
        return result.stdout

    @property
    def proof(self) -> tuple[str, ...]:
        """Return the options with the token of the admin and the certificate to trust."""
        token, trusted = self.folder / "admin.token", self.folder / "server.pem"
        return (
            "--token",
            f"file://{token}",
            "--tls-trust-cert-path",
            str(trusted),
            "--tls-enable-hostname-verification",
        )


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("example") / "secure")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(["bash", "keys.sh"], cwd=folder, check=True, capture_output=True, env={**os.environ, "PATH": path})
    command = [sys.executable, "-P", "-m", "pulsarium", "serve", "--config", "secure.conf", "--with-parent", *FREE]
    broker = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    with ending(broker) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("pulsarium ready")
        ready = json.loads((folder / "ready.json").read_text())
        urls = [ready[name].replace("127.0.0.1", "localhost") for name in ("service_url_tls", "admin_url_tls")]
        yield Secured(folder, *urls)
        process.terminate()
        assert process.wait(30) == 0


def lines(folder: Path) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Return command lines of each command that needs a broker."""
    return {
        "why": (("why", "orders", "billing"),),
        "fault": (("fault", "add", "FLOW", "observe"), ("fault", "list"), ("fault", "remove", "--all")),
        "capture": (
            ("capture", "start"),
            ("capture", "list"),
            ("capture", "stop", "--out", str(folder / "run.pulscap")),
        ),
        "clock": (("clock", "show"), ("clock", "freeze"), ("clock", "reset")),
        "mask": (("mask", "add", "--max-protocol-version", "17"), ("mask", "list"), ("mask", "remove", "--all")),
        "lint": (("lint", "--live", "--start"), ("lint", "--live"), ("lint", "--live", "--stop")),
        "state": (
            ("state", "snapshot", str(folder / "all.snapshot")),
            ("state", "restore", str(folder / "all.snapshot")),
        ),
    }


COMMANDS = tuple(lines(Path()))


@pytest.fixture
def topic(secured: Secured) -> None:
    whole = "persistent://public/default/orders"
    admin = ("admin", "--admin-url", secured.admin_url, *secured.proof, "topics")
    if whole not in secured.said(*admin, "list", "public/default"):
        secured.said(*admin, "create", whole)
        secured.said(*admin, "create-subscription", whole, "-s", "billing")


def test_the_commands_of_the_docs_run(secured: Secured) -> None:
    page = "".join(each.text for each in blocks(ROOT / "docs" / "secure.md") if each.marker == TESTED)
    script = re.sub(r"^(pip install|./keys.sh|pulsarium serve) .*\n", "", page, flags=re.M)  # the fixture has done so
    assert page.count("\n") - script.count("\n") == 3
    here = {"pulsar+ssl://localhost:6651": secured.service_url, "https://localhost:8443": secured.admin_url}
    program = (EXAMPLE / "hello.py").read_text()
    for shown, url in here.items():
        script, program = script.replace(shown, url), program.replace(shown, url)
    (secured.folder / "hello.py").write_text(program)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    run = subprocess.run(
        ["bash", "-ec", script],
        cwd=secured.folder,
        env={**os.environ, "PATH": path},
        check=False,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "Hello over TLS" in run.stdout
    grants = secured.said(
        "admin", "--admin-url", secured.admin_url, *secured.proof, "namespaces", "permissions", "public/default"
    )
    assert grants == "app    [produce]\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_options_prove_a_role_and_trust_the_certificate(command: str, secured: Secured, topic: None) -> None:
    for line in lines(secured.folder)[command]:
        assert secured.run(*line, "--admin-url", secured.admin_url, *secured.proof).exit_code == 0, line
    if command == "capture":
        assert list(CaptureReader().feed((secured.folder / "run.pulscap").read_bytes())) == []


@pytest.mark.parametrize("command", COMMANDS)
def test_a_client_conf_says_the_same(command: str, secured: Secured, topic: None) -> None:
    conf = secured.folder / "client.conf"
    conf.write_text(
        f"webServiceUrl={secured.admin_url}\nbrokerServiceUrl={secured.service_url}\nauthPlugin=token\n"
        f"authParams=file://{secured.folder}/admin.token\ntlsTrustCertsFilePath={secured.folder}/server.pem\n"
        "tlsEnableHostnameVerification=true\n"
    )
    for line in lines(secured.folder)[command]:
        assert secured.run(*line, "--config", str(conf)).exit_code == 0, line
    assert "public/default" in secured.said("admin", "--config", str(conf), "namespaces", "list", "public")
    assert secured.run("client", "--config", str(conf), "produce", "orders", "-m", "a").exit_code == 0


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "is not trusted: self-signed certificate; trust its authority with --tls-trust-cert-path, or pass"),
        (
            ("--tls-allow-insecure",),
            "(authenticate with --token, or --auth-plugin and --auth-params, as a role",
        ),
    ],
)
def test_a_caller_who_lacks_something_is_told_the_option(
    command: str, options: tuple[str, ...], said: str, secured: Secured
) -> None:
    refused = secured.run(*lines(secured.folder)[command][0], "--admin-url", secured.admin_url, *options)
    assert refused.exit_code != 0
    assert refused.stderr.startswith("pulsarium: ")
    assert said in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_a_port_without_tls_is_told_from_one_with(secured: Secured) -> None:
    ready = json.loads((secured.folder / "ready.json").read_text())
    plain = urlsplit(ready["admin_url"])
    refused = secured.run("why", "a", "b", "--admin-url", f"https://{plain.netloc}", "--tls-allow-insecure")
    assert "does not speak TLS; use http://" in refused.stderr
    refused = secured.run("why", "a", "b", "--admin-url", secured.admin_url.replace("https", "http"))
    assert "This port speaks TLS; the URL begins with https://" in refused.stderr


def shaken(url: str, trusted: Path, name: str) -> None:
    """Connect to the port of a URL by TLS, and check that the certificate is that of a name."""
    at = urlsplit(url)
    assert at.port is not None
    context = ssl.create_default_context(cafile=trusted)
    assert context.check_hostname
    with (
        socket.create_connection(("localhost", at.port), 30) as plain,
        context.wrap_socket(plain, server_hostname=name),
    ):
        pass


@pytest.mark.parametrize("port", ["service_url", "admin_url"])
def test_clients_that_verify_hostnames_find_localhost_in_the_certificate(secured: Secured, port: str) -> None:
    """Clients of Pulsar 5.0 do so by default, and look at subject alternative names only (PIP-478)."""
    url, trusted = getattr(secured, port), secured.folder / "server.pem"
    shaken(url, trusted, "localhost")
    with pytest.raises(ssl.SSLCertVerificationError, match="IP address mismatch"):
        shaken(url, trusted, "127.0.0.1")


def test_a_lookup_leads_to_the_name_in_the_certificate(secured: Secured, topic: None) -> None:
    asked = urllib.request.Request(f"{secured.admin_url}/lookup/v2/topic/persistent/public/default/orders")
    asked.add_header("Authorization", f"Bearer {(secured.folder / 'admin.token').read_text()}")
    context = ssl.create_default_context(cafile=secured.folder / "server.pem")
    with urllib.request.urlopen(asked, timeout=30, context=context) as answer:
        assert json.load(answer)["brokerUrlTls"] == secured.service_url
