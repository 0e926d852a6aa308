"""Accept connections to a listening socket, for both protocols, and do TLS handshakes."""

from __future__ import annotations

import errno
import math
import socket
import ssl
import struct
import sys
from contextlib import suppress

import trio

from pulsarium.broker.logs import PartLog
from pulsarium.broker.net.slices import Admission
from pulsarium.broker.net.wrong_port import in_handshake

tls_log = PartLog("tls")

HANDSHAKE_SECONDS = 10.0  # Netty's own limit
READ = 64 << 10  # bytes of a read without a limit
PAUSE = 0.1  # seconds before accepting again, when the process has no file descriptor left
NO_LINGER = struct.pack("ii", 1, 0)  # SO_LINGER: a close resets the connection
QUIET = 10.0  # seconds without a shortage of file descriptors, after which the next one is told again


class PortInUse(Exception):
    """Another process listens on the port. `option` is the command-line option for another port."""

    def __init__(self, port: int, option: str) -> None:
        super().__init__(f"port {port} is in use; choose another with {option} N, or {option} 0 for a free one")
        self.port = port
        self.option = option


def bind(host: str, port: int, option: str) -> socket.socket:
    """Return a listening socket. Raise `PortInUse`, which names `option`, when the port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        if sys.platform == "win32":  # there SO_REUSEADDR lets several processes have one port
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(1024)
    except OSError as error:
        sock.close()
        if error.errno == errno.EADDRINUSE:
            raise PortInUse(port, option) from None
        raise
    sock.setblocking(False)
    return sock


class Shortage:
    """Tell that no file descriptor is left. Say it once, not for each connection, until it has not been so for long."""

    def __init__(self, log: PartLog) -> None:
        self._log = log
        self._until = -math.inf

    def tell(self, error: Exception) -> None:
        """Note that a connection had no file descriptor."""
        now = trio.current_time()
        if now >= self._until:
            self._log.warning(
                "cannot accept connections: raise the limit of open files, or close connections", reason=error
            )
        self._until = now + QUIET


async def accept_one(listener: socket.socket, shortage: Shortage) -> tuple[socket.socket, str, int]:
    """Return the next connection as a non-blocking socket, with the client's host and port."""
    while True:
        await trio.lowlevel.wait_readable(listener)
        try:
            sock, (host, port, *_) = listener.accept()
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except (BlockingIOError, InterruptedError, ConnectionError):
            continue
        except OSError as error:  # out of file descriptors: wait until some are closed
            shortage.tell(error)
            await trio.sleep(PAUSE)
            continue
        return sock, host, port


class PlainStream(trio.abc.HalfCloseableStream):
    """A connected, non-blocking socket. In contrast to trio's own stream, a write without a wait takes no turn."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        while True:
            if self._sock.fileno() < 0:
                raise trio.ClosedResourceError
            await trio.lowlevel.wait_readable(self._sock)
            try:
                return self._sock.recv(max_bytes or READ)
            except (BlockingIOError, InterruptedError):
                continue
            except OSError as error:
                raise trio.BrokenResourceError from error

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        rest = memoryview(data)
        while rest := rest[self._send(rest) :]:
            await trio.lowlevel.wait_writable(self._sock)

    def _send(self, data: memoryview) -> int:
        try:
            return self._sock.send(data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            raise trio.BrokenResourceError from error

    @property
    def is_idle(self) -> bool:
        """Return whether the other side has neither sent something nor ended the connection."""
        try:
            self._sock.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return True
        except OSError:
            return False
        return False

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.wait_writable(self._sock)

    async def send_eof(self) -> None:
        try:
            self._sock.shutdown(socket.SHUT_WR)
        except OSError as error:
            raise trio.BrokenResourceError from error

    async def aclose(self) -> None:
        self.close()

    def reset_when_closed(self) -> None:
        """Let the other side see a reset in place of an end."""
        with suppress(OSError):  # the connection may be gone
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)

    def close(self) -> None:
        """Close the socket at once."""
        if self._sock.fileno() >= 0:
            trio.lowlevel.notify_closing(self._sock)
            self._sock.close()


class HandshakeStream(trio.abc.HalfCloseableStream):
    """A stream that waits for admission with each received piece until its connection is `open`.

    A handshake takes much CPU, and thousands of clients may be ready for its next step at the same time.
    """

    def __init__(self, raw: trio.abc.HalfCloseableStream, admission: Admission) -> None:
        self.open = False
        self.heard = False  # anything
        self._raw = raw
        self._admission = admission

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        data = await self._raw.receive_some(max_bytes)
        self.heard |= bool(data)
        if not self.open:
            await self._admission.enter()
        return data

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._raw.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._raw.wait_send_all_might_not_block()

    async def send_eof(self) -> None:
        await self._raw.send_eof()

    async def aclose(self) -> None:
        await self._raw.aclose()


async def shake_hands(
    raw: trio.abc.HalfCloseableStream, context: ssl.SSLContext, peer: str, admission: Admission
) -> trio.SSLStream[HandshakeStream] | None:
    """Return the stream over TLS, or None when the handshake fails or takes too long. Log the reason."""
    handshake = HandshakeStream(raw, admission)
    stream = trio.SSLStream(handshake, context, server_side=True, https_compatible=True)
    reason: object = f"no handshake within {HANDSHAKE_SECONDS:g} seconds"
    with trio.move_on_after(HANDSHAKE_SECONDS):
        try:
            await stream.do_handshake()
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            if not handshake.heard:
                return None  # it only asked whether the port is open
            wrong_port = in_handshake(error.__cause__ or error)
            reason = wrong_port.reason
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                await raw.send_all(wrong_port.answer)
        else:
            handshake.open = True
            return stream
    tls_log.warning("a TLS handshake failed", peer=peer, reason=reason)
    return None
