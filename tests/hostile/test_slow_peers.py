"""Peers that send or read very slowly, or never finish. They cost only the bytes sent, and no other client waits."""

from __future__ import annotations

from contextlib import suppress

import pytest
import trio
from trio.testing import MockClock, lockstep_stream_pair

from pulsarium.broker.session.session import sessions_of
from pulsarium.broker.web.http import connection
from pulsarium.broker.web.http.request import HttpClient
from pulsarium.broker.web.routes import site_of
from tests.broker.web.http.served import GET, TENANTS, answer, served
from tests.broker.wire import Bed, Type, Wire, frame_of, plain

MB = 1 << 20
ANNOUNCED = (5 * MB).to_bytes(4, "big") + (100).to_bytes(4, "big")
CONNECT = frame_of(Type.CONNECT, client_version="slow" * 20, protocol_version=21)


@pytest.mark.req("W-12", "W-06")
@pytest.mark.parametrize("frame", [CONNECT, ANNOUNCED + bytes(200)], ids=["CONNECT", "5 MB announced"])
async def test_a_connect_that_comes_byte_by_byte(frame: bytes, bed: Bed, caplog: pytest.LogCaptureFixture) -> None:
    """The broker closes a connection without a whole CONNECT after one interval, even if bytes keep coming."""
    slow, other = bed.dial(), await bed.connect()
    started = bed.broker.clock.monotonic()
    with suppress(trio.BrokenResourceError):
        for byte in frame:
            await slow.write(bytes([byte]))
            await trio.sleep(1)
    assert await slow.closed() == []
    assert "no CONNECT" in caplog.text
    assert bed.broker.clock.monotonic() - started < 30 + len(frame)
    await other.expect(Type.PING)
    await other.alive()
    assert len(sessions_of(bed.broker)) == 1


@pytest.mark.req("W-12", "W-01")
async def test_a_frame_that_never_ends(bed: Bed, wire: Wire) -> None:
    """The bytes keep the connection alive. The broker buffers only the bytes that came, not the announced size."""
    slow = await bed.connect()
    (session,) = (each for each in sessions_of(bed.broker) if each.address.endswith(":2"))
    await slow.write(ANNOUNCED)
    for _ in range(50):
        await slow.write(bytes(10))
        await trio.sleep(20)
        await wire.send(Type.PONG)
    assert session._decoder.pending == len(ANNOUNCED) + 500
    assert not slow.ended
    await wire.rest()
    await wire.producer()
    await wire.publish(plain(b"others go on"))


@pytest.mark.req("W-12")
async def test_a_frame_that_stops_in_the_middle(bed: Bed) -> None:
    slow = await bed.connect()
    await slow.write(ANNOUNCED + bytes(1000))
    assert [each.command.type for each in await slow.closed(61)] == [Type.PING]
    assert not sessions_of(bed.broker)


async def test_a_head_of_http_that_never_ends(mock_clock: MockClock) -> None:
    """Bytes that keep coming do not extend the time limit of the head, and other clients are served meanwhile."""
    async with served() as http, await http.connect() as slow:
        await slow.send_all(b"GET /admin/v2/tenants HTTP/1.1\r\n")
        for _ in range(4):
            await slow.send_all(b"X-A: b\r\n")
            async with await http.connect() as good:
                assert (await answer(good, GET))[1] == TENANTS
            mock_clock.jump(connection.FIRST_SECONDS / 4)
        with suppress(trio.BrokenResourceError):
            assert not await slow.receive_some(1)


async def test_an_http_client_that_takes_no_answer(
    mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Another client takes its answers, of which none takes long, however long the machine stops."""
    monkeypatch.setattr(connection, "SEND_SECONDS", 1.0)
    async with served() as http:
        for index in range(300):
            http.broker.metadata.put_tenant(f"{'tenant' * 20}{index}", {})
        stuck = await http.connect(receive_buffer=4096)
        await stuck.send_all(GET * 100)
        await trio.lowlevel.wait_readable(stuck.socket)
        async with await http.connect() as good:
            while "does not read its answer" not in caplog.text:
                assert len((await answer(good))[1]) > 30_000
                mock_clock.jump(connection.SEND_SECONDS)
        with suppress(trio.BrokenResourceError):
            while await stuck.receive_some(MB):
                pass
        await stuck.aclose()


async def test_an_http_client_that_takes_its_answer_slowly(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The time limit begins again with each piece of the answer."""
    monkeypatch.setattr(connection, "PIECE", 1000)
    for index in range(100):
        bed.broker.metadata.put_tenant(f"{'tenant' * 20}{index}", {})
    slow, far = lockstep_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.HttpConnection(site_of(bed.broker), far, HttpClient("slow", 1)).serve)  # type: ignore[arg-type]
        await slow.send_all(GET)
        data = b""
        while not data.endswith(b"]"):
            await trio.sleep(0.9 * connection.SEND_SECONDS)
            data += bytes(await slow.receive_some(1000))
        assert len(data) > 10_000
        assert "does not read its answer" not in caplog.text
        nursery.cancel_scope.cancel()
