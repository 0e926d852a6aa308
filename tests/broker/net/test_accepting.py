"""Thousands of clients that connect or leave at once: between two of them, connected clients have a turn."""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence
from typing import Any

import pytest
import trio
import trio.testing

from pulsarium.broker.logs import PartLog
from pulsarium.broker.net import slices
from pulsarium.broker.net.accepting import HandshakeStream, PlainStream, Shortage, accept_one
from pulsarium.broker.net.slices import Admission
from pulsarium.broker.session.session import Session
from pulsarium.broker.web.http.connection import HttpConnection
from pulsarium.broker.web.http.reply import HttpReply
from pulsarium.broker.web.http.site import Site
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.loopback import listening, until
from tests.broker.passes import passes_of_the_loop
from tests.broker.web.http.served import GET, answer, served
from tests.broker.wire import Type, Wire, frame_of, serving

MANY = 20


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make slices so short that each step takes a whole one."""
    monkeypatch.setattr(slices, "SLICE", 0)


async def test_without_a_file_descriptor_left_it_asks_ten_times_a_second_and_says_so_once(
    autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    class Full(socket.socket):
        refusals = 50

        def accept(self) -> tuple[socket.socket, Any]:
            if self.refusals:
                self.refusals -= 1
                raise OSError(errno.EMFILE, "Too many open files")
            return super().accept()

    with Full() as listener:
        listener.setblocking(False)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with socket.create_connection(listener.getsockname()) as client:
            start = trio.current_time()
            sock, *peer = await accept_one(listener, Shortage(PartLog("full")))
            sock.close()
            assert trio.current_time() - start == pytest.approx(5)
            assert tuple(peer) == client.getsockname()
    assert caplog.text.count("cannot accept connections") == 1


async def test_they_go_through_a_door_one_after_the_other() -> None:
    admission, seen = Admission(), list[int]()

    async def enter() -> None:
        await admission.enter()
        seen.append(passes.number)

    with passes_of_the_loop() as passes:
        async with trio.open_nursery() as nursery:
            for _ in range(MANY):
                nursery.start_soon(enter)
    assert len(set(seen)) == MANY


async def test_a_single_connection_enters_without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE", 60)
    admission = Admission()
    with passes_of_the_loop() as passes:
        for _ in range(MANY):
            await admission.enter()
    assert passes.number == 0


async def test_others_have_their_turn_between_two_connects(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, connect = list[int](), Session.connect

    def noting(session: Session, command: pb.CommandConnect) -> None:
        seen.append(passes.number)
        connect(session, command)

    monkeypatch.setattr(Session, "connect", noting)
    async with serving() as bed:
        wires = [bed.dial() for _ in range(MANY)]
        await trio.testing.wait_all_tasks_blocked()
        with passes_of_the_loop() as passes:
            async with trio.open_nursery() as nursery:
                for wire in wires:
                    nursery.start_soon(wire.write, frame_of(Type.CONNECT, client_version="wire", protocol_version=21))
            for wire in wires:
                await wire.expect(Type.CONNECTED)
    assert len(set(seen)) == MANY


async def ends_of(wires: Sequence[Wire], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Close all connections in one pass of the loop. Return the passes in which the broker noted the ends."""
    seen, ended = list[int](), Session.ended

    def noting(session: Session) -> None:
        seen.append(passes.number)
        ended(session)

    monkeypatch.setattr(Session, "ended", noting)
    with passes_of_the_loop() as passes:
        async with trio.open_nursery() as nursery:
            for wire in wires:
                nursery.start_soon(wire.aclose)
        await until(lambda: len(seen) == len(wires))
    return seen


async def test_others_have_their_turn_between_two_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as bed:
        wires = [await bed.connect() for _ in range(MANY)]
        assert len(set(await ends_of(wires, monkeypatch))) == MANY


async def test_others_have_their_turn_between_two_ends_of_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    async with listening() as loopback:
        wires = [await loopback.connect() for _ in range(MANY)]
        loopback.wires.clear()
        assert len(set(await ends_of(wires, monkeypatch))) == MANY


async def test_others_have_their_turn_between_two_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, call = list[int](), Site.answer

    async def noting(site: Site, *given: Any) -> HttpReply:
        seen.append(passes.number)
        return await call(site, *given)

    monkeypatch.setattr(Site, "answer", noting)
    async with served() as http:
        streams = [await http.connect() for _ in range(MANY)]
        await trio.testing.wait_all_tasks_blocked()
        with passes_of_the_loop() as passes:
            async with trio.open_nursery() as nursery:
                for stream in streams:
                    nursery.start_soon(answer, stream, GET)
        for stream in streams:
            await stream.aclose()
    assert len(set(seen)) == MANY


async def test_others_have_their_turn_between_two_ends_of_http(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, serve = list[int](), HttpConnection.serve

    async def noting(connection: HttpConnection) -> None:
        await serve(connection)
        seen.append(passes.number)

    monkeypatch.setattr(HttpConnection, "serve", noting)
    async with served() as http:
        streams = [await http.connect() for _ in range(MANY)]
        await trio.testing.wait_all_tasks_blocked()
        with passes_of_the_loop() as passes:
            async with trio.open_nursery() as nursery:
                for stream in streams:
                    nursery.start_soon(stream.aclose)
            await until(lambda: len(seen) == MANY)
    assert len(set(seen)) == MANY


async def test_others_have_their_turn_between_two_steps_of_handshakes() -> None:
    admission, seen = Admission(), list[int]()
    pairs = [trio.testing.memory_stream_pair() for _ in range(MANY)]

    async def step(stream: trio.abc.Stream) -> None:
        assert await stream.receive_some() == b"hello"
        seen.append(passes.number)

    for near, _ in pairs:
        await near.send_all(b"hello")
    with passes_of_the_loop() as passes:
        async with trio.open_nursery() as nursery:
            for _, far in pairs:
                nursery.start_soon(step, HandshakeStream(far, admission))
    assert len(set(seen)) == MANY


async def test_a_connection_that_is_open_waits_at_no_door() -> None:
    near, far = trio.testing.memory_stream_pair()
    handshake = HandshakeStream(far, Admission())
    handshake.open = True
    await near.send_all(b"hello")
    with passes_of_the_loop() as passes:
        await handshake.receive_some()
        direct = passes.number
        await near.send_all(b"hello")
        before = passes.number
        await far.receive_some()
    assert direct == passes.number - before


async def test_a_stream_that_is_closed_is_read_no_more() -> None:
    near, far = socket.socketpair()
    with near, far:
        stream = PlainStream(near)
        stream.close()
        with pytest.raises(trio.ClosedResourceError):
            await stream.receive_some()
