"""The official Python client and a broker with TLS: tokens, passwords, certificates and permissions."""

from __future__ import annotations

import base64
import http.client
import socket
import ssl
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pulsar
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pulsarium.proto.framing import FrameDecoder, frame
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.auth.secured import Authority, bearer, token
from tests.broker.web.admin.random_requests import PREPARED, Bad, bad_requests, is_meant
from tests.foreign.secured import OTHER, SECRET_OF_TEST, Secured, capital, secured, topic

from .broker_process import is_pulsarium
from .deadline import eventually

__all__ = ["secured"]  # the fixture

pytestmark = pytest.mark.skipif(
    not is_pulsarium(), reason="keys, certificates and the example are made for a broker of ours"
)


def by_token(role: str, **claims: Any) -> pulsar.AuthenticationToken:
    return pulsar.AuthenticationToken(token(role, **{"key": SECRET_OF_TEST, **claims}))


@pytest.mark.req("B-44", "B-46")
def test_a_role_with_grants_over_tls(secured: Secured) -> None:
    name = topic()
    with secured.client(by_token("maker")) as maker, secured.client(by_token("eater")) as eater:
        consumer = eater.subscribe(name, "s")
        producer = maker.create_producer(name)
        for number in range(100):
            producer.send_async(b"%d" % number, None)
        producer.flush()
        assert [consumer.receive(30_000).data() for _ in range(100)] == [b"%d" % number for number in range(100)]


def test_large_messages_over_tls(secured: Secured) -> None:
    name = topic()
    with secured.client(by_token("admin")) as client:
        consumer = client.subscribe(name, "s")
        producer = client.create_producer(name)
        payloads = [bytes([number]) * 4_000_000 for number in range(5)]
        for payload in payloads:
            producer.send(payload)
        assert [consumer.receive(30_000).data() for _ in payloads] == payloads


@pytest.mark.req("B-45", "B-46")
def test_a_client_logs_in_with_a_password(secured: Secured) -> None:
    name = topic()
    with secured.client(pulsar.AuthenticationBasic("admin", "123456")) as client:
        client.create_producer(name).send(b"x")


@pytest.mark.req("B-45", "B-46")
def test_a_client_logs_in_with_a_certificate(secured: Secured) -> None:
    files = secured.authority.sign("maker")
    authentication = pulsar.AuthenticationTLS(str(files.certificate), str(files.key))
    name = topic()
    with secured.client(authentication) as client:
        client.create_producer(name).send(b"x")
        with pytest.raises(pulsar.AuthorizationError):
            client.subscribe(name, "s")


def test_the_official_client_may_send_a_token_in_the_clear(secured: Secured) -> None:
    with secured.client(by_token("maker"), url=secured.plain_url) as client:
        client.create_producer(topic()).send(b"x")


def stranger(secured: Secured) -> Any:
    folder = secured.authority.path.parent / "stranger"
    folder.mkdir(exist_ok=True)
    files = Authority(folder, "stranger").sign("admin")
    return pulsar.AuthenticationTLS(str(files.certificate), str(files.key))


WRONG: dict[str, dict[str, Any]] = {
    "nothing": {},
    "another key": {"auth_method_name": "token", "auth_data": token("admin", key=OTHER).encode()},
    "expired": {"auth_method_name": "token", "auth_data": token("admin", key=SECRET_OF_TEST, exp=1000).encode()},
    "junk": {"auth_method_name": "token", "auth_data": b"junk"},
    "password": {"auth_method_name": "basic", "auth_data": b"admin:wrong"},
    "user": {"auth_method_name": "basic", "auth_data": b"nobody:123456"},
    "no certificate": {"auth_method_name": "tls"},
    "another method": {"auth_method_name": "athenz", "auth_data": b"x"},
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_credentials_are_refused_by_their_code(case: str, secured: Secured) -> None:
    context = ssl.create_default_context(cafile=str(secured.authority.path))
    port = urlsplit(secured.service_url).port
    with (
        socket.create_connection(("localhost", port), timeout=30) as raw,
        context.wrap_socket(raw, server_hostname="localhost") as connection,
    ):
        connect = pb.CommandConnect(client_version="test", protocol_version=21, **WRONG[case])
        connection.sendall(frame(pb.BaseCommand(type=pb.BaseCommand.CONNECT, connect=connect).SerializeToString()))
        data = b""
        while more := connection.recv(4096):
            data += more
    ((head, _),) = FrameDecoder().feed(data)
    error = pb.BaseCommand.FromString(head).error
    assert (error.error, error.message) == (pb.AuthenticationError, "Failed to authenticate")


def test_the_client_gives_up_with_wrong_credentials(secured: Secured) -> None:
    """The client tries again until its timeout, also with a real broker, and its error does not give the reason."""
    wrong = secured.client(by_token("admin", key=OTHER), operation_timeout_seconds=1)
    with wrong as client, pytest.raises(pulsar.PulsarException):
        client.create_producer(topic())


def test_the_official_client_with_a_certificate_that_nobody_trusts_is_refused(secured: Secured) -> None:
    with (
        secured.client(stranger(secured), operation_timeout_seconds=2) as client,
        pytest.raises(pulsar.PulsarException),
    ):
        client.create_producer(topic())


def test_a_broker_that_the_client_does_not_trust(secured: Secured, tmp_path: Path) -> None:
    other = Authority(tmp_path)
    trusting: dict[str, Any] = {"tls_trust_certs_file_path": str(other.path), "operation_timeout_seconds": 2}
    with secured.client(by_token("admin"), **trusting) as client, pytest.raises(pulsar.PulsarException):
        client.create_producer(topic())


@pytest.mark.parametrize("role", ["maker", "eater", "nobody"])
def test_an_operation_without_a_grant_is_refused(role: str, secured: Secured) -> None:
    name = topic()
    with secured.client(by_token("admin")) as admin:
        admin.create_producer(name)
        with secured.client(by_token(role)) as client:
            if role != "maker":
                with pytest.raises(pulsar.AuthorizationError):
                    client.create_producer(name)
            if role != "eater":
                with pytest.raises(pulsar.AuthorizationError):
                    client.subscribe(name, "s")


def test_a_token_that_expires_is_renewed_in_mid_session(secured: Secured) -> None:
    given: list[float] = []

    def supply() -> str:
        given.append(time.time())
        return token("maker", key=SECRET_OF_TEST, exp=int(time.time()) + 1)

    with secured.client(pulsar.AuthenticationToken(supply)) as client:
        producer = client.create_producer(topic())
        start = secured.process.log.stat().st_size
        asked = len(given)

        def log() -> str:
            return secured.process.tail(start, limit=1 << 30)

        def renewed() -> bool:
            producer.send(b"x")
            return "credentials renewed" in log()

        eventually(renewed, what="a new token", seconds=60)
        assert len(given) > asked
        assert "connection closed" not in log()


def test_rest_over_https(secured: Secured) -> None:
    def status(**headers: str) -> int:
        return secured.rest("GET", "/admin/v2/tenants", headers=headers)

    assert status(**capital(bearer("admin", key=SECRET_OF_TEST))) == 200
    assert status(Authorization=f"Basic {base64.b64encode(b'admin:123456').decode()}") == 200
    assert secured.rest("GET", "/admin/v2/tenants", files=secured.authority.sign("admin")) == 200
    assert status(**capital(bearer("maker", key=SECRET_OF_TEST))) == 401
    assert status(**capital(bearer("admin", key=OTHER))) == 401
    assert status() == 401


def test_lookup_over_https(secured: Secured) -> None:
    with secured.client(by_token("maker"), url=secured.admin_url) as client:
        client.create_producer(topic()).send(b"x")


SHUTDOWN = "/admin/v2/brokers/shutdown"  # this route would stop the broker


class Knocking:
    """An HTTPS client with one connection and one request at a time. After an error, it connects again."""

    def __init__(self, secured: Secured) -> None:
        self._secured = secured
        self._context = ssl.create_default_context(cafile=str(secured.authority.path))
        self._connection: http.client.HTTPSConnection | None = None

    def ask(self, request: Bad) -> tuple[int, bytes]:
        """Send a request, and return status and body. Return status 0 when an invalid request costs the connection."""
        if self._connection is None:
            port = urlsplit(self._secured.admin_url).port
            self._connection = http.client.HTTPSConnection("localhost", port, timeout=90, context=self._context)
        try:
            self._connection.request(request.method, request.url, request.body, dict(request.headers))
            with self._connection.getresponse() as answer:
                return answer.status, answer.read()
        except (http.client.HTTPException, ConnectionError):
            self.close()
            return 0, b""

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def survives(secured: Secured, count: int) -> None:
    """Send random requests, and check that the official client still works."""
    faults: list[str] = []
    admin = token("admin", key=SECRET_OF_TEST)

    def signed(headers: Mapping[str, str]) -> dict[str, str]:
        """Replace a token of the tests without ports by one of the same role that this broker accepts."""
        found = dict(headers)
        for role in ("admin", "tadmin", "user", "nobody"):
            if found.get("authorization") == f"Bearer {token(role)}":
                found["authorization"] = f"Bearer {token(role, key=SECRET_OF_TEST)}"
        return found

    @settings(max_examples=count // 50, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    @given(st.lists(bad_requests(), min_size=50, max_size=50))
    def some(requests: list[Bad]) -> None:
        for method, path, value in PREPARED:
            secured.rest(method, path, value, headers={"Authorization": f"Bearer {admin}"})
        for request in requests:
            if request.route != SHUTDOWN:
                status, body = knocking.ask(replace(request, headers=signed(request.headers)))
                if not is_meant(request, status, body):
                    faults.append(f"{status} {body[:200]!r} to {request} of {request.route}")

    with closing(Knocking(secured)) as knocking:
        some()
    assert faults == []
    test_a_role_with_grants_over_tls(secured)


def test_the_secured_broker_survives_random_requests(secured: Secured) -> None:
    survives(secured, 200)


@pytest.mark.heavy
@pytest.mark.timeout(1200)
def test_the_secured_broker_survives_ten_thousand_random_requests(secured: Secured) -> None:
    survives(secured, 10_000)
