"""Credentials of the client: which it sends, when, and to which brokers it never sends them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import pytest
from trio.testing import MockClock

from pulsarium.client import Authentication, AuthenticationBasic, AuthenticationTLS, AuthenticationToken, errors
from pulsarium.client.opening import open_client
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.both import on_both
from tests.client.peer import Peer, Peers, Type

SECRET = "s3cret"


async def later() -> str:
    await anyio.lowlevel.checkpoint()
    return SECRET


@pytest.mark.parametrize(
    ("authentication", "method", "data"),
    [
        (AuthenticationToken(SECRET), "token", b"s3cret"),
        (AuthenticationToken(lambda: SECRET), "token", b"s3cret"),
        (AuthenticationToken(later), "token", b"s3cret"),
        (AuthenticationBasic("u", SECRET), "basic", b"u:s3cret"),
        (AuthenticationBasic("u", "p:q", method="other"), "other", b"u:p:q"),
        (AuthenticationTLS("c.pem", "k.pem"), "tls", b""),
    ],
    ids=["static", "called", "awaited", "basic", "basic by another name", "tls"],
)
def test_each_kind_of_credentials_shows_its_method_and_data(
    authentication: Authentication, method: str, data: bytes
) -> None:
    async def test() -> None:
        assert (authentication.auth_method_name, await authentication.auth_data()) == (method, data)

    anyio.run(test)
    assert SECRET not in repr(authentication)
    assert SECRET not in str(authentication)


@pytest.mark.parametrize("make", [lambda: AuthenticationToken(""), lambda: AuthenticationBasic("a:b", "c")])
def test_credentials_that_make_no_sense_are_refused(make: Callable[[], Authentication]) -> None:
    with pytest.raises(errors.InvalidConfiguration):
        make()


class Tokens:
    """A supplier that gives another token each time, and raises `failure` when a test sets one."""

    def __init__(self) -> None:
        self.given = 0
        self.failure: Exception | None = None

    def __call__(self) -> str:
        if self.failure is not None:
            raise self.failure
        self.given += 1
        return f"{SECRET}-{self.given}"


@asynccontextmanager
async def asking(authentication: Authentication | None) -> AsyncIterator[tuple[Peer, list[BaseException | int]]]:
    """Yield the broker's side of a client that counts partitions, and the outcome of that request."""
    peers = Peers(authentication=authentication)
    outcome: list[BaseException | int] = []
    async with anyio.create_task_group() as tasks, open_client("pulsar://a", peers.settings) as client:

        async def ask() -> None:
            try:
                outcome.append(await client._core.brokers.partitions("t"))
            except errors.PulsarError as error:
                outcome.append(error)

        tasks.start_soon(ask)
        peer = await peers.next()
        yield peer, outcome
        while not outcome:
            await anyio.lowlevel.checkpoint()
    await peer.close()
    peers.close()


async def challenge(peer: Peer) -> pb.CommandAuthResponse:
    await peer.say(Type.AUTH_CHALLENGE, challenge={"auth_method_name": "token", "auth_data": b"PulsarAuthRefresh"})
    response: pb.CommandAuthResponse = await peer.expect(Type.AUTH_RESPONSE)
    return response


async def connected(peer: Peer) -> None:
    await peer.say(Type.CONNECTED, server_version="test", protocol_version=22)


@on_both
async def test_each_challenge_gets_a_new_token() -> None:
    """The broker challenges the client in the handshake, and again when the token expires while a request is open."""
    async with asking(AuthenticationToken(Tokens())) as (peer, outcome):
        connect = await peer.expect(Type.CONNECT)
        assert (connect.auth_method_name, connect.auth_data) == ("token", b"s3cret-1")
        assert (await challenge(peer)).response.auth_data == b"s3cret-2"
        await connected(peer)
        asked = await peer.expect(Type.PARTITIONED_METADATA)
        assert (await challenge(peer)).response.auth_data == b"s3cret-3"
        assert (await challenge(peer)).response.auth_data == b"s3cret-4"
        await peer.say(Type.PARTITIONED_METADATA_RESPONSE, request_id=asked.request_id, partitions=3)
    assert outcome == [3]


@on_both
async def test_a_client_without_credentials_says_so() -> None:
    async with asking(None) as (peer, outcome):
        await peer.expect(Type.CONNECT)
        await peer.say(Type.AUTH_CHALLENGE)
    (error,) = outcome
    assert isinstance(error, errors.AuthenticationError)
    assert "a:6650: the broker requires authentication" in str(error)


@on_both
async def test_a_token_that_cannot_be_had() -> None:
    """The client loses the connection. The supplier's error text may hold secrets, so the client does not repeat it."""
    tokens = Tokens()
    async with asking(AuthenticationToken(tokens)) as (peer, outcome):
        await peer.expect(Type.CONNECT)
        await connected(peer)
        await peer.expect(Type.PARTITIONED_METADATA)
        tokens.failure = OSError(f"cannot read {SECRET}")
        await peer.say(Type.AUTH_CHALLENGE)
        with pytest.raises(anyio.EndOfStream):
            await peer.next()
    (error,) = outcome
    assert isinstance(error, errors.ConnectError)
    assert str(error) == "a:6650: the authentication failed to give credentials (OSError)"


async def test_a_token_that_takes_too_long_is_not_told_as_a_silent_broker(autojump_clock: MockClock) -> None:
    async def slow() -> str:
        await anyio.sleep_forever()
        raise AssertionError

    peers = Peers(authentication=AuthenticationToken(slow), connection_timeout=2)
    async with open_client("pulsar://a", peers.settings) as client:
        with pytest.raises(errors.ConnectError) as failed:
            await client._core.brokers.partitions("t")
    await (await peers.next()).close()
    peers.close()
    assert str(failed.value) == "a:6650: the authentication gave no credentials within 2 s (connection_timeout)"


@on_both
async def test_a_refusal_names_no_secret() -> None:
    async with asking(AuthenticationToken(SECRET)) as (peer, outcome):
        await peer.expect(Type.CONNECT)
        await peer.say(Type.ERROR, request_id=2**64 - 1, error=pb.AuthenticationError, message="Failed to authenticate")
    (error,) = outcome
    assert isinstance(error, errors.AuthenticationError)
    assert str(error) == "Failed to authenticate"
