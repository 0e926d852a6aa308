"""Sockets on loopback, under both loops."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager

import anyio
import pytest

from pulsarium.client.connection.tcp import TcpStream, connect_tcp
from tests.client.both import on_both
from tests.client.refusing import refusing_port

MORE = 32 * 1024 * 1024  # bytes, more than the buffers of a socket hold


@contextmanager
def listening() -> Iterator[tuple[socket.socket, int]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server, server.getsockname()[1]


async def pair(server: socket.socket, port: int) -> tuple[TcpStream, socket.socket]:
    stream = await connect_tcp("127.0.0.1", port)
    return stream, server.accept()[0]


@on_both
async def test_bytes_go_both_ways() -> None:
    with listening() as (server, port):
        stream, peer = await pair(server, port)
        with closing(peer):
            async with stream:
                await stream.send(b"there")
                assert peer.recv(100) == b"there"
                peer.sendall(b"and back")
                assert await stream.receive(3) == b"and"
                assert await stream.receive() == b" back"
                peer.shutdown(socket.SHUT_WR)
                with pytest.raises(anyio.EndOfStream):
                    await stream.receive()
                await stream.send_eof()
                assert peer.recv(100) == b""


@on_both
async def test_bytes_that_the_kernel_does_not_take_are_sent_later() -> None:
    with listening() as (server, port):
        stream, peer = await pair(server, port)
        with closing(peer):
            async with stream:
                sent = stream.send_nowait(bytes(MORE))
                while more := stream.send_nowait(b"x"):  # the kernel may have made room meanwhile
                    sent += more
                assert 0 < sent < MORE
                got = 0

                async def drain() -> None:
                    nonlocal got
                    while got < MORE:
                        await anyio.wait_readable(peer)
                        got += len(peer.recv(1 << 20))

                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(drain)
                    await stream.send(bytes(MORE - sent))
                assert got == MORE


@on_both
async def test_a_peer_that_is_gone() -> None:
    with listening() as (server, port):
        stream, peer = await pair(server, port)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a reset
        peer.close()
        async with stream:
            with pytest.raises(anyio.BrokenResourceError):
                await stream.receive()
            with pytest.raises(anyio.BrokenResourceError):
                stream.send_nowait(b"x")


@on_both
async def test_closing_wakes_who_reads() -> None:
    with listening() as (server, port):
        stream, peer = await pair(server, port)
        with closing(peer):

            async def read() -> None:
                with pytest.raises(anyio.ClosedResourceError):
                    await stream.receive()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read)
                await anyio.wait_all_tasks_blocked()
                await stream.aclose()
            with pytest.raises(anyio.ClosedResourceError):
                stream.send_nowait(b"x")
            await stream.aclose()


@on_both
async def test_the_next_address_of_a_host_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    with listening() as (server, port), refusing_port() as refused:

        async def found(host: str, asked: int, **options: object) -> list[object]:
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", one)) for one in (refused, asked)]

        monkeypatch.setattr(anyio, "getaddrinfo", found)
        async with await connect_tcp("host", port) as stream:
            with closing(server.accept()[0]) as peer:
                peer.sendall(b"x")
                assert await stream.receive() == b"x"


@on_both
async def test_a_port_where_nobody_listens_is_refused() -> None:
    with refusing_port() as port, pytest.raises(OSError, match="refused"):
        await connect_tcp("127.0.0.1", port)
