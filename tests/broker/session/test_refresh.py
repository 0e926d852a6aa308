"""Tokens that expire while a client is connected (transcript 150). The clock jumps over the minutes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.auth.secured import BASIC, PASSWORDS, TOKEN, base64_of, by_token, token
from tests.broker.wall import Wall
from tests.broker.wire import Bed, Type, Wire, serving

CHECK = 60  # authenticationRefreshCheckSeconds
CAN_REFRESH = ("supports_auth_refresh",)
USERS = f"data:;base64,{base64_of(PASSWORDS.encode())}"

pytestmark = pytest.mark.req("B-44")


@pytest.fixture
async def bed() -> AsyncIterator[Bed]:
    async with serving(
        by_token(
            authenticationProviders=(BASIC, TOKEN),
            basicAuthConf=USERS,
            authenticationRefreshCheckSeconds=CHECK,
            keepAliveIntervalSeconds=0,
            anonymousUserRole="anonymous",
        )
    ) as bed:
        yield bed


def lasting(bed: Bed, seconds: float, role: str = "me") -> bytes:
    return token(role, exp=bed.broker.clock.now_ms() / 1000 + seconds).encode()


async def connected(bed: Bed, seconds: float = 90, flags: tuple[str, ...] = CAN_REFRESH, **fields: Any) -> Wire:
    return await bed.connect(flags=flags, auth_method_name="token", auth_data=lasting(bed, seconds), **fields)


async def challenged(wire: Wire, within: float) -> pb.CommandAuthChallenge:
    challenge: pb.CommandAuthChallenge = await wire.expect(Type.AUTH_CHALLENGE, within=within)
    return challenge


async def respond(wire: Wire, data: bytes) -> None:
    await wire.send(Type.AUTH_RESPONSE, response={"auth_method_name": "token", "auth_data": data})


async def test_the_first_look_after_expiry_challenges_and_a_new_token_is_taken_in_silence(bed: Bed) -> None:
    wire = await connected(bed)
    await wire.quiet(2 * CHECK - 1)
    challenge = await challenged(wire, within=2)
    assert challenge.challenge.auth_method_name == "token"
    assert challenge.challenge.auth_data == b"PulsarAuthRefresh"
    assert challenge.protocol_version == 21
    assert not challenge.HasField("server_version")
    await respond(wire, lasting(bed, 90))
    await wire.quiet(2 * CHECK - 1)
    await challenged(wire, within=2)
    await respond(wire, token("me").encode())  # this token does not expire
    await wire.quiet(100 * CHECK)
    await wire.alive()


async def test_a_machine_that_slept_takes_no_token_that_expired_meanwhile(wall: Wall, bed: Bed) -> None:
    wire = await connected(bed, seconds=600)
    data = lasting(bed, 600)
    wall.ahead += 3600
    await challenged(wire, within=CHECK + 1)
    other = bed.dial()
    await other.send(Type.CONNECT, client_version="c", auth_method_name="token", auth_data=data)
    assert (await other.expect(Type.ERROR)).error == pb.AuthenticationError


async def test_no_answer_by_the_next_look_closes(bed: Bed) -> None:
    wire = await connected(bed)
    await challenged(wire, within=2 * CHECK + 1)
    await wire.quiet(CHECK - 2)
    assert await wire.closed() == []


async def test_another_role_closes_without_a_word(bed: Bed) -> None:
    wire = await connected(bed)
    await challenged(wire, within=2 * CHECK + 1)
    await respond(wire, lasting(bed, 90, "admin"))
    assert await wire.closed() == []


@pytest.mark.parametrize("data", [b"junk", b""])
async def test_a_bad_token_is_an_error_and_closes(bed: Bed, data: bytes) -> None:
    wire = await connected(bed)
    await challenged(wire, within=2 * CHECK + 1)
    await respond(wire, data)
    (received,) = await wire.closed()
    error = received.command.error
    assert (error.error, error.message) == (pb.AuthenticationError, "Failed to authenticate")


async def test_a_client_that_cannot_refresh_is_closed_at_the_look(bed: Bed) -> None:
    wire = await connected(bed, flags=())
    await wire.quiet(2 * CHECK - 1)
    assert await wire.closed() == []


async def test_nobody_can_refresh_what_a_proxy_does_not_pass_on(bed: Bed) -> None:
    fields: dict[str, Any] = {
        "auth_method_name": "token",
        "auth_data": lasting(bed, 90, "proxy"),
        "original_principal": "me",
    }
    wire = await bed.connect(flags=CAN_REFRESH, **fields)
    await wire.quiet(2 * CHECK - 1)
    assert await wire.closed() == []


async def test_an_answer_that_nobody_asked_for(bed: Bed) -> None:
    wire = await connected(bed)
    await respond(wire, lasting(bed, 500))
    await wire.quiet(400)
    await wire.alive()
    anonymous = await bed.connect(flags=CAN_REFRESH)
    await respond(anonymous, lasting(bed, 500))
    (received,) = await anonymous.closed()
    assert received.command.error.error == pb.AuthenticationError


async def test_passwords_do_not_expire(bed: Bed) -> None:
    wire = await bed.connect(auth_method_name="basic", auth_data=b"admin:123456")
    await wire.quiet(100 * CHECK)
    await wire.alive()


async def test_a_connection_that_ends_is_looked_at_no_more(bed: Bed, caplog: pytest.LogCaptureFixture) -> None:
    wire = await connected(bed)
    other = await bed.connect()
    await wire.aclose()
    await other.quiet(5 * CHECK)
    assert "expired" not in caplog.text
