"""Carry the bytes of a session over sockets and streams."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Awaitable, Callable

import trio

from pulsarium.broker.auth.identity import Certificate
from pulsarium.broker.auth.tls import certificate_of
from pulsarium.broker.cluster import Broker
from pulsarium.broker.logs import PartLog
from pulsarium.broker.model.rate.publish_buffer import LARGEST_READ
from pulsarium.broker.net.accepting import Shortage, accept_one, shake_hands
from pulsarium.broker.session.session import open_session

log = PartLog("session")

SMALLEST_READ = 16 << 10
LAST_WORDS_SECONDS = 1.0
GOODBYE_SECONDS = 0.2


class SocketTransport:
    """A non-blocking socket: one read a wake-up, one write a turn, and a second task that waits for room."""

    def __init__(self, broker: Broker, sock: socket.socket, address: str) -> None:
        self._broker = broker
        self._sock = sock
        self._blocked = False  # the socket is full; the writer waits for room
        self._writer_wakes = trio.Event()  # the socket is full
        self._reader_wakes: trio.Event | None = None  # more may be read; None while nothing pauses the reader
        self._scope = trio.CancelScope()
        self._session = open_session(broker, address, self)

    def wake(self) -> None:
        try:
            self._wake()
        except Exception as error:  # bytes may be lost, so later frames would be misread
            log.error("a connection could not be written to", exception=error, peer=self._session.address)
            self._scope.cancel()

    def _wake(self) -> None:
        session = self._session
        if session.outgoing.size and not self._blocked:
            self._write()
            if not self._blocked:
                session.drained()
        if session.closed:
            self._scope.cancel()  # a dead client would keep both tasks waiting
        if self._blocked:
            self._writer_wakes.set()
        if self._reader_wakes is not None and session.may_read:
            self._reader_wakes.set()

    def _write(self) -> None:
        data = self._session.outgoing.take()
        try:
            sent = self._sock.send(data)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            self._session.ended()
            self._session.close()
            return
        if sent < len(data):
            self._session.outgoing.put_back(data[sent:])
            self._blocked = True

    async def serve(self) -> None:
        """Carry bytes until either side closes."""
        try:
            with self._scope:
                self.wake()  # the session may be refused already
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._read_all)
                    nursery.start_soon(self._write_when_possible)
        finally:
            trio.lowlevel.notify_closing(self._sock)
            self._sock.close()
            self._session.broker.close_session(self._session)

    async def _read_all(self) -> None:
        session, sock, turn, cluster = self._session, self._sock, self._broker.turn, self._broker.cluster
        size = SMALLEST_READ
        while not session.closed:
            await trio.lowlevel.wait_readable(sock)
            try:
                data = sock.recv(min(size, cluster.publish_buffer.largest_read))
            except (BlockingIOError, InterruptedError):
                continue
            except OSError:  # a client that leaves unread bytes resets the connection
                data = b""
            if not (data and session.connected):  # thousands of clients may come or leave at the same moment
                await cluster.admission.enter()
            if not data:
                session.ended()
                break
            if len(data) == size:
                size = min(size * 2, LARGEST_READ)
            turn.begin()
            try:
                session.receive(data)
            finally:
                turn.finish()
            while not (session.may_read or session.closed):
                self._reader_wakes = trio.Event()
                await self._reader_wakes.wait()
            self._reader_wakes = None
        self._scope.cancel()

    async def _write_when_possible(self) -> None:
        while not self._session.closed:
            if not self._blocked:
                self._writer_wakes = trio.Event()
                await self._writer_wakes.wait()
                continue
            await trio.lowlevel.wait_writable(self._sock)
            self._blocked = False
            self.wake()
            self._broker.turn.finish()


class StreamTransport:
    """Any trio stream: TLS, or memory in tests. `certificate` is the client's certificate."""

    def __init__(
        self,
        broker: Broker,
        stream: trio.abc.Stream,
        address: str,
        certificate: Certificate | None = None,
        read_size: int = LARGEST_READ,
    ) -> None:
        self._turn = broker.turn
        self._admission = broker.cluster.admission
        self._stream = stream
        self._read_size = read_size
        self._writer_wakes = trio.Event()
        self._reader_wakes = trio.Event()  # more may be read
        self._scope = trio.CancelScope()
        self._session = open_session(broker, address, self, certificate, secure=isinstance(stream, trio.SSLStream))

    def wake(self) -> None:
        self._writer_wakes.set()
        if self._session.closed:  # waiting bytes are still written, if the client reads them
            self._scope.deadline = min(self._scope.deadline, trio.current_time() + LAST_WORDS_SECONDS)
        if self._session.closed or self._session.may_read:
            self._reader_wakes.set()

    async def serve(self) -> None:
        """Carry bytes until either side closes."""
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._read_all)
                    nursery.start_soon(self._write_all)
        finally:
            self._session.broker.close_session(self._session)
            # TLS ends with an alert, which a dead client may never read
            with trio.CancelScope(shield=True, deadline=trio.current_time() + GOODBYE_SECONDS):
                await self._stream.aclose()

    async def _read_all(self) -> None:
        session = self._session
        try:
            while not session.closed:
                data = await self._stream.receive_some(self._read_size)
                if not (data and session.connected):
                    await self._admission.enter()
                if not data:
                    session.ended()
                    break
                self._turn.begin()
                try:
                    session.receive(bytes(data))
                finally:
                    self._turn.finish()
                while not (session.may_read or session.closed):
                    self._reader_wakes = trio.Event()
                    await self._reader_wakes.wait()
        except (trio.BrokenResourceError, trio.ClosedResourceError):  # a reset
            session.ended()
        session.broker.close_session(session)

    async def _write_all(self) -> None:
        session = self._session
        try:
            while True:
                if session.outgoing.size:
                    await self._stream.send_all(session.outgoing.take())
                    session.drained()
                    self._turn.finish()
                    self.wake()
                elif session.closed:
                    break
                else:
                    self._writer_wakes = trio.Event()
                    await self._writer_wakes.wait()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            session.ended()
        self._scope.cancel()


Serve = Callable[[Broker, socket.socket, str], Awaitable[None]]  # serves one connection and owns its socket


async def serve_plain(broker: Broker, sock: socket.socket, address: str) -> None:
    """Serve a connection without TLS."""
    await SocketTransport(broker, sock, address).serve()


async def accept(broker: Broker, listener: socket.socket, serve: Serve = serve_plain) -> None:
    """Serve every connection to a listening socket, until cancelled."""
    shortage = Shortage(log)
    async with trio.open_nursery() as nursery:
        while True:
            sock, host, port = await accept_one(listener, shortage)
            nursery.start_soon(_alone, serve, broker, sock, f"/{host}:{port}")


async def _alone(serve: Serve, broker: Broker, sock: socket.socket, address: str) -> None:
    """Serve one connection, and keep its errors from the others."""
    try:
        await serve(broker, sock, address)
    except Exception as error:
        log.error("a connection failed", exception=error, peer=address)
    finally:
        sock.close()


RECORD = 16 << 10  # bytes of the largest TLS record, the most that is read at once


def over_tls(context: Callable[[], ssl.SSLContext]) -> Serve:
    """Return a function that serves connections over TLS. `context` is called for each connection."""

    async def serve(broker: Broker, sock: socket.socket, address: str) -> None:
        raw = trio.SocketStream(trio.socket.from_stdlib_socket(sock))
        try:
            stream = await shake_hands(raw, context(), address, broker.cluster.admission)
            if stream is not None:
                await StreamTransport(broker, stream, address, certificate_of(stream), RECORD).serve()
        finally:
            await trio.aclose_forcefully(raw)

    return serve
