"""A broker with TLS, authentication and authorization, and calls of its clients."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pulsar
import pytest

from tests.broker.auth.secured import BASIC, PASSWORDS, TLS, TOKEN, Authority, Files, base64_of, bearer, token

from .broker_process import BrokerProcess

SECRET_OF_TEST = b"the secret of one broker, of thirty-two bytes at least"


OTHER = b"another key that is long enough for it"


REFRESH_SECONDS = 10
"""Seconds that a client has for its new token, and that pass before it is asked for. A token that ends on the way to
the broker is good nevertheless.
"""


OPERATION_SECONDS = 30


NO_HEADERS: Mapping[str, str] = {}


HUSHED = pulsar.FileLogger(pulsar.LoggerLevel.Error, "/dev/null")


class Secured(NamedTuple):
    """A broker, its URLs with TLS and without, and the authority that its clients trust."""

    process: BrokerProcess
    authority: Authority
    service_url: str
    admin_url: str

    @property
    def plain_url(self) -> str:
        return self.process.address.service_url

    @contextmanager
    def client(self, authentication: Any = None, *, url: str = "", **others: Any) -> Iterator[pulsar.Client]:
        options = {
            "tls_trust_certs_file_path": str(self.authority.path),
            "tls_validate_hostname": True,
            "operation_timeout_seconds": OPERATION_SECONDS,
            "logger": HUSHED,
            **others,
        }
        client = pulsar.Client(url or self.service_url, authentication, **options)
        try:
            yield client
        finally:
            client.close()

    def rest(
        self,
        method: str,
        path: str,
        value: Any = None,
        files: Files | None = None,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> int:
        """Send a request over HTTPS, and return the status of the answer."""
        context = ssl.create_default_context(cafile=str(self.authority.path))
        if files is not None:
            context.load_cert_chain(files.certificate, files.key)
        given = {"Content-Type": "application/json", **headers}
        data = None if value is None else json.dumps(value).encode()
        request = urllib.request.Request(self.admin_url + path, data, given, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30, context=context) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    authority = Authority(folder)
    server = authority.sign("server")
    (folder / "htpasswd").write_text(PASSWORDS.replace("user:", "eater:"))
    (folder / "secret.key").write_bytes(SECRET_OF_TEST)
    conf = folder / "broker.conf"
    conf.write_text(
        f"""\
authenticationEnabled=true
authorizationEnabled=true
authenticationProviders={TOKEN},{BASIC},{TLS}
tokenSecretKey=file://{folder}/secret.key
basicAuthConf=file://{folder}/htpasswd
superUserRoles=admin
tokenAllowedClockSkewSeconds=60
authenticationRefreshCheckSeconds={REFRESH_SECONDS}
tlsTrustCertsFilePath={authority.path}
"""
    )
    options = ["--config", str(conf), "--tls-port", "0", "--https-port", "0", "--log-level", "debug"]
    process = BrokerProcess(folder, [*options, "--tls-cert", str(server.certificate), "--tls-key", str(server.key)])
    ready = json.loads((folder / "ready.json").read_text())
    urls = [ready[name].replace("127.0.0.1", "localhost") for name in ("service_url_tls", "admin_url_tls")]
    found = Secured(process, authority, *urls)
    for role, actions in (("maker", ["produce"]), ("eater", ["consume"])):
        path = f"/admin/v2/namespaces/public/default/permissions/{role}"
        assert found.rest("POST", path, actions, headers=capital(bearer("admin", key=SECRET_OF_TEST))) == 204
    yield found
    log = process.tail(limit=1 << 30)
    assert process.stop() == 0
    secrets = [base64_of(SECRET_OF_TEST), SECRET_OF_TEST.decode(), "123456", token("maker", key=SECRET_OF_TEST)]
    assert [secret for secret in secrets if secret in log] == []


def capital(headers: dict[str, str]) -> dict[str, str]:
    return {name.capitalize(): value for name, value in headers.items()}


def topic() -> str:
    return f"persistent://public/default/secured-{uuid.uuid4().hex[:8]}"


def by_tokens(folder: Path, *settings: str) -> list[str]:
    """Return options of a broker without TLS that checks tokens and permissions, with `admin` as its superuser."""
    (conf := folder / "tokens.conf").write_text(
        "\n".join(
            (
                "authenticationEnabled=true",
                "authorizationEnabled=true",
                f"authenticationProviders={TOKEN}",
                f"tokenSecretKey={base64_of(SECRET_OF_TEST)}",
                "superUserRoles=admin",
                *settings,
            )
        )
    )
    return ["--config", str(conf)]
