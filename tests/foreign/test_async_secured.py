"""Our client and a broker with TLS: tokens, passwords and certificates, right and wrong ones."""

from __future__ import annotations

import time
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import pytest

from pulsarium.client import (
    Authentication,
    AuthenticationBasic,
    AuthenticationTLS,
    AuthenticationToken,
    Client,
    InitialPosition,
    connect,
    errors,
)
from tests.broker.auth.secured import Authority, token
from tests.client.both import FIRST_FAILURE, on_both
from tests.foreign.async_secured import by_token
from tests.foreign.secured import OTHER, SECRET_OF_TEST, Secured, secured, topic

from .broker_process import is_pulsarium

__all__ = ["secured"]  # the fixture

pytestmark = pytest.mark.skipif(not is_pulsarium(), reason="keys and certificates are made for a broker of ours")


def connected(
    secured: Secured, authentication: Authentication | None, **others: Any
) -> AbstractAsyncContextManager[Client]:
    options = {"tls_trust_certs_file_path": str(secured.authority.path), **others}
    return connect(others.pop("url", secured.service_url), authentication=authentication, **options)


def ways(secured: Secured) -> dict[str, Authentication]:
    """Return each kind of authentication of a superuser."""
    files = secured.authority.sign("admin")

    async def supply() -> str:
        await anyio.lowlevel.checkpoint()
        return token("admin", key=SECRET_OF_TEST)

    return {
        "token": by_token("admin"),
        "supplied token": AuthenticationToken(supply),
        "password": AuthenticationBasic("admin", "123456"),
        "certificate": AuthenticationTLS(str(files.certificate), str(files.key)),
    }


@pytest.mark.parametrize("way", ["token", "supplied token", "password", "certificate"])
@on_both
async def test_our_client_is_let_in_each_way(secured: Secured, way: str) -> None:
    name = topic()
    contents = [bytes([number]) * 2_000_000 for number in range(5)]
    async with (
        connected(secured, ways(secured)[way]) as client,
        client.subscribe(name, "s", initial_position=InitialPosition.Earliest) as consumer,
        client.create_producer(name) as producer,
    ):
        for content in contents:
            producer.send_nowait(content)
        assert [(await consumer.receive()).data() for _ in contents] == contents


WRONG: dict[str, Authentication | None] = {
    "nothing": None,
    "another key": by_token("admin", key=OTHER),
    "expired": by_token("admin", exp=1000),
    "junk": AuthenticationToken("junk"),
    "password": AuthenticationBasic("admin", "wrong"),
    "user": AuthenticationBasic("nobody", "123456"),
    "method": AuthenticationBasic("admin", "123456", method="athenz"),
}


@pytest.mark.parametrize("way", WRONG)
@on_both
async def test_wrong_credentials_are_refused_at_once(secured: Secured, way: str) -> None:
    """The broker refuses at once, and the error contains nothing of the credentials."""
    with anyio.fail_after(30), pytest.raises(errors.AuthenticationError) as caught:
        async with connected(secured, WRONG[way]) as client, client.create_producer(topic()):
            pass
    assert str(caught.value) == "Failed to authenticate"


@on_both
async def test_our_client_with_a_certificate_that_nobody_trusts_is_refused(secured: Secured, tmp_path: Path) -> None:
    """The broker may close the connection without an error."""
    strange = AuthenticationTLS(*map(str, Authority(tmp_path, "stranger").sign("admin")))
    with pytest.raises((errors.AuthenticationError, errors.ConnectError)):
        async with connected(secured, strange, **FIRST_FAILURE) as client, client.create_producer(topic()):
            pass


@on_both
async def test_a_role_without_a_grant_is_refused(secured: Secured) -> None:
    name = topic()
    async with connected(secured, by_token("maker")) as client:
        async with client.create_producer(name) as producer:
            await producer.send(b"x")
        with pytest.raises(errors.AuthorizationError):
            async with client.subscribe(name, "s"):
                pass


@on_both
async def test_a_broker_that_is_not_trusted(secured: Secured, tmp_path: Path) -> None:
    other = Authority(tmp_path)
    for options in ({}, {"tls_trust_certs_file_path": str(other.path)}):
        with anyio.fail_after(30), pytest.raises(errors.AuthenticationError, match="the certificate is not trusted"):
            async with connect(secured.service_url, authentication=by_token("maker"), **options) as client:  # type: ignore[arg-type]
                await client._core.brokers.partitions(topic())


@on_both
async def test_an_insecure_connection_accepts_any_certificate(secured: Secured) -> None:
    options = {"tls_trust_certs_file_path": None, "tls_allow_insecure_connection": True}
    async with connected(secured, by_token("maker"), **options) as client, client.create_producer(topic()) as producer:
        await producer.send(b"x")


@on_both
async def test_our_client_may_send_a_token_in_the_clear(secured: Secured) -> None:
    async with (
        connect(secured.plain_url, authentication=by_token("maker")) as client,
        client.create_producer(topic()) as producer,
    ):
        await producer.send(b"x")


@on_both
async def test_a_token_that_ends_is_renewed_in_mid_session(secured: Secured) -> None:
    given: list[float] = []

    def supply() -> str:
        given.append(time.time())
        return token("maker", key=SECRET_OF_TEST, exp=int(time.time()) + 1)

    async with connected(secured, AuthenticationToken(supply)) as client, client.create_producer(topic()) as producer:
        start = secured.process.log.stat().st_size
        asked = len(given)

        def log() -> str:
            return secured.process.tail(start, limit=1 << 30)

        with anyio.fail_after(60):
            while "credentials renewed" not in log():
                await producer.send(b"x")
                await anyio.sleep(0.05)
        await producer.send(b"x")
        assert len(given) > asked
        assert "connection closed" not in log()
