"""TCP streams that write at once what the kernel accepts, without a turn of the event loop."""

from __future__ import annotations

import os
import socket
from typing import TypeAlias

import anyio
import anyio.lowlevel
from anyio.abc import ByteStream

UnknownHost: TypeAlias = socket.gaierror

SMALL_READ = 32 * 1024  # bytes: larger reads map and unmap memory each time, which pays for bulk data only
NEXT_ADDRESS = 0.25  # seconds without an answer after which the host's next address is tried, too (RFC 8305)


class TcpStream(ByteStream):
    """A connected socket as a stream of anyio, with `send_nowait` in addition."""

    def __init__(self, connected: socket.socket) -> None:
        """Take over a non-blocking socket."""
        self._socket = connected
        self._drained = True  # the last read emptied the socket

    async def receive(self, max_bytes: int = 65536) -> bytes:
        if self._drained:
            size = min(max_bytes, SMALL_READ)
            await self._readable()
        else:
            size = max_bytes
            await anyio.lowlevel.checkpoint()
        while (data := self._receive_nowait(size)) is None:
            await self._readable()
        self._drained = len(data) < size
        if not data:
            raise anyio.EndOfStream
        return data

    def _receive_nowait(self, max_bytes: int) -> bytes | None:
        try:
            return self._socket.recv(max_bytes)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError as error:
            raise self._broken() from error

    async def send(self, item: bytes) -> None:
        await anyio.lowlevel.checkpoint()
        rest = memoryview(item)
        while rest := rest[self.send_nowait(rest) :]:
            await anyio.wait_writable(self._socket)

    def send_nowait(self, item: bytes | memoryview) -> int:
        """Send the bytes that the kernel accepts now, and return their number.

        Raise `BrokenResourceError` if the other side has closed the connection.
        """
        try:
            return self._socket.send(item)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            raise self._broken() from error

    async def send_eof(self) -> None:
        self._socket.shutdown(socket.SHUT_WR)
        await anyio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        if self._socket.fileno() >= 0:
            anyio.notify_closing(self._socket)
            self._socket.close()
        await anyio.lowlevel.checkpoint()

    async def _readable(self) -> None:
        await anyio.wait_readable(self._socket)

    def _broken(self) -> Exception:
        return anyio.ClosedResourceError() if self._socket.fileno() < 0 else anyio.BrokenResourceError()


async def connect_tcp(host: str, port: int) -> TcpStream:
    """Connect to the first address of the host that answers. Raise `OSError` if none does."""
    connected: list[socket.socket] = []
    failures: list[OSError] = []
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)

    async def attempt(family: int, address: tuple[str, int], settled: anyio.Event) -> None:
        try:
            one = await _connect(family, address)
        except OSError as error:
            failures.append(error)
        else:
            if connected:
                one.close()
            else:
                connected.append(one)
                tasks.cancel_scope.cancel()
        settled.set()

    try:
        async with anyio.create_task_group() as tasks:
            for family, _, _, _, address in found:
                settled = anyio.Event()
                tasks.start_soon(attempt, family, address, settled)
                with anyio.move_on_after(NEXT_ADDRESS):
                    await settled.wait()
    except BaseException:
        for one in connected:
            one.close()
        raise
    if not connected:
        raise (
            failures[0] if len(failures) == 1 else OSError("; ".join(dict.fromkeys(map(str, failures))) or "no address")
        )
    return TcpStream(connected[0])


async def _connect(family: int, address: tuple[str, int]) -> socket.socket:
    one = socket.socket(family, socket.SOCK_STREAM)
    try:
        one.setblocking(False)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
        try:
            one.connect(address)
        except (BlockingIOError, InterruptedError):
            await anyio.wait_writable(one)
        if error := one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(error, f"{address[0]}:{address[1]}: {os.strerror(error)}")
    except BaseException:
        one.close()
        raise
    return one
