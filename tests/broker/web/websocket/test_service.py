"""Upgrades to WebSockets, their authorization, and the status of a refusal."""

from __future__ import annotations

import base64

import pytest

from pulsarium.broker.config import Config
from tests.broker.auth.secured import BASIC, PASSWORDS, TOKEN, base64_of, by_token, token
from tests.broker.web.http.served import answer
from tests.broker.web.websocket.talk import CONSUMER, PRODUCER, READER, message, websockets


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:3000"])
async def test_a_page_of_another_site_gets_no_websocket(origin: str) -> None:
    async with websockets() as client:
        refused = await client.talk(PRODUCER, Origin=origin)
        assert refused.status == 403


async def test_a_page_of_an_allowed_site_gets_a_websocket() -> None:
    async with websockets(Config(httpAllowedHosts=frozenset({"localhost:3000"}))) as client:
        assert (await client.talk(PRODUCER, Origin="http://localhost:3000")).status == 101


async def test_a_page_of_the_broker_itself_gets_a_websocket() -> None:
    async with websockets() as client:
        assert (await client.talk(PRODUCER, host="localhost:80", Origin="http://localhost")).status == 101


async def test_a_host_that_is_not_the_brokers_is_refused() -> None:
    async with websockets() as client:
        assert (await client.talk(PRODUCER, host="evil.example")).status == 403


async def test_a_plain_request_gets_405() -> None:
    async with websockets() as client, await client.http.connect() as stream:
        head, _ = await answer(stream, f"GET /ws/{PRODUCER} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert head.startswith(b"HTTP/1.1 405 ")


async def test_an_upgrade_without_a_key_gets_400() -> None:
    async with websockets() as client, await client.http.connect() as stream:
        lines = "Host: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\r\n"
        head, _ = await answer(stream, f"GET /ws/{PRODUCER} HTTP/1.1\r\n{lines}".encode())
        assert head.startswith(b"HTTP/1.1 400 ")


async def test_an_upgrade_with_a_body_gets_400() -> None:
    async with websockets() as client, await client.http.connect() as stream:
        lines = "Host: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nContent-Length: 5\r\n\r\nhello"
        head, _ = await answer(stream, f"GET /ws/{PRODUCER} HTTP/1.1\r\n{lines}".encode())
        assert head.startswith(b"HTTP/1.1 400 ")


# credentials


@pytest.mark.parametrize("path", [PRODUCER, CONSUMER, READER])
async def test_a_client_without_a_token_is_refused(path: str) -> None:
    async with websockets(by_token()) as client:
        refused = await client.talk(path)
        assert (refused.status, b"Failed to authenticate" in refused.refusal) == (401, True)


async def test_a_token_may_stand_in_the_header_or_in_the_query() -> None:
    async with websockets(by_token()) as client:
        proof = token("admin")
        assert (await client.talk(PRODUCER, Authorization=f"Bearer {proof}")).status == 101
        for query in (f"token={proof}", f"token=Bearer%20{proof}"):
            consumer = await client.talk(CONSUMER, f"{query}&subscriptionType=Shared")
            assert consumer.status == 101


async def test_a_password_proves_a_role() -> None:
    users = f"data:;base64,{base64_of(PASSWORDS.encode())}"
    config = by_token(authenticationProviders=(BASIC, TOKEN), basicAuthConf=users)
    async with websockets(config) as client:
        name = base64.b64encode(b"admin:123456").decode()
        producer = await client.talk(PRODUCER, Authorization=f"Basic {name}")
        assert (await producer.ask(message("x")))["result"] == "ok"


async def test_a_role_without_permission_is_refused() -> None:
    async with websockets(by_token()) as client:
        for path in (PRODUCER, CONSUMER, READER):
            refused = await client.talk(path, Authorization=f"Bearer {token('somebody')}")
            assert (refused.status, b"Not authorized" in refused.refusal) == (403, True)
        assert (await client.talk(PRODUCER, Authorization=f"Bearer {token('admin')}")).status == 101
