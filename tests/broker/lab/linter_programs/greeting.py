"""Programs that break rules about frames and about CONNECT."""

from __future__ import annotations

from typing import Any

import trio

from pulsarium.broker.config import Config
from pulsarium.proto.framing import frame
from tests.broker.auth.secured import by_token, token
from tests.broker.wire import TOPIC, KeyShared, Type, command, frame_of

from .program import Client, breaks, given

LOOKUP: dict[str, Any] = {"topic": TOPIC, "request_id": 1}


@breaks("broken-frame")
async def _(client: Client, mended: bool) -> None:
    wire = await client.connected()
    await wire.write(frame_of(Type.PING) if mended else b"\x00\x00\x00\x05\x00\x00\x00\x09\x08")


@breaks("frame-too-big")
async def _(client: Client, mended: bool) -> None:
    wire = await client.connected()
    await wire.write(frame_of(Type.PING) if mended else (6_000_000).to_bytes(4, "big"))


@breaks("wrong-direction")
async def _(client: Client, mended: bool) -> None:
    wire = await client.connected()
    if mended:
        await wire.send(Type.PING)
    else:
        await wire.send(Type.REACHED_END_OF_TOPIC, consumer_id=1)


@breaks("command-before-connect")
async def _(client: Client, mended: bool) -> None:
    wire = client.bed.dial()
    if mended:
        await wire.connect()
    await wire.send(Type.LOOKUP, **LOOKUP)


@breaks("command-not-awaited")
async def _(client: Client, mended: bool) -> None:
    wire = client.bed.dial()
    connect = frame_of(Type.CONNECT, client_version="wire", protocol_version=21)
    if mended:
        await wire.write(connect)
        await wire.expect(Type.CONNECTED)
        await wire.send(Type.LOOKUP, **LOOKUP)
    else:
        await wire.write(connect + frame_of(Type.LOOKUP, **LOOKUP))


@breaks("second-connect")
async def _(client: Client, mended: bool) -> None:
    wire = await client.connected()
    if not mended:
        await wire.send(Type.CONNECT, client_version="wire", protocol_version=21)


@breaks("client-version-missing")
async def _(client: Client, mended: bool) -> None:
    await client.connected(client_version="My-Client-v1.0" if mended else "My Client 1.0")


@breaks("protocol-version-missing")
async def _(client: Client, mended: bool) -> None:
    wire = client.bed.dial()
    await wire.send(Type.CONNECT, client_version="wire", **given(mended, protocol_version=0))


@breaks("newer-than-version")
async def _(client: Client, mended: bool) -> None:
    wire = await client.connected(version=7 if mended else 6)
    await wire.send(Type.LOOKUP, **LOOKUP)


@breaks("feature-not-offered", lambda: Config(transactionCoordinatorScalableTopicsEnabled=False))
async def _(client: Client, mended: bool) -> None:
    wire = await client.connected()
    if not mended:
        await wire.send(Type.WATCH_TC_ASSIGNMENTS, watch_id=1)


@breaks("newer-field")
async def _(client: Client, mended: bool) -> None:
    wire = await client.connected(version=14 if mended else 13)
    await wire.subscribe(type=KeyShared, consumer_name="c")


@breaks("unknown-field")
async def _(client: Client, mended: bool) -> None:
    wire = await client.connected()
    lookup = command(Type.LOOKUP, **LOOKUP)
    if not mended:
        lookup.lookupTopic.MergeFromString(b"\xa0\x06\x01")  # field 100
    await wire.write(frame(lookup.SerializeToString()))


@breaks("pong-unasked")
async def _(client: Client, mended: bool) -> None:
    wire = await client.connected()
    await wire.send(Type.PING if mended else Type.PONG)


@breaks("no-pong")
async def _(client: Client, mended: bool) -> None:
    wire = await client.connected()
    await wire.expect(Type.PING, within=40)
    if mended:
        await wire.send(Type.PONG)
    await trio.sleep(29)
    if not mended:
        await wire.closed()


def _expiring() -> Config:
    return by_token(authenticationRefreshCheckSeconds=60, keepAliveIntervalSeconds=0)


@breaks("challenge-unanswered", _expiring)
async def _(client: Client, mended: bool) -> None:
    expires = client.bed.broker.clock.now_ms() / 1000 + 90
    credentials = {"auth_method_name": "token", "auth_data": token("me", exp=expires).encode()}
    wire = await client.connected(flags=["supports_auth_refresh"], **credentials)
    await wire.expect(Type.AUTH_CHALLENGE, within=130)
    if mended:
        await wire.send(Type.AUTH_RESPONSE, response={**credentials, "auth_data": token("me").encode()})
    else:
        await wire.closed(within=70)


@breaks("auth-response-unasked")
async def _(client: Client, mended: bool) -> None:
    wire = await client.connected()
    if not mended:
        await wire.send(Type.AUTH_RESPONSE, response={"auth_method_name": "token", "auth_data": b"me"})
