"""Carry the frames of one WebSocket over a stream: a bounded queue out, one turn for each read, and its timeouts."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from time import perf_counter
from typing import Any, Final, Protocol

import trio
from wsproto import WSConnection
from wsproto.connection import ConnectionState
from wsproto.events import BytesMessage, CloseConnection, Event, Ping, TextMessage
from wsproto.utilities import ProtocolError

from pulsarium.broker.clock import Timer
from pulsarium.broker.cluster import Broker
from pulsarium.broker.logs import PartLog
from pulsarium.broker.net.slices import Use, work_for_a_slice
from pulsarium.broker.session.outgoing import HIGH_WATER, MOST_WAITING
from pulsarium.broker.web.websocket.topic_producer import Opened

log = PartLog("websocket")

PIECE: Final = 64 << 10  # bytes that are read or written at once
GOODBYE_SECONDS: Final = 1.0  # for the client's own end of the connection
LONGEST_REASON: Final = 123  # bytes of a reason in a close frame (RFC 6455, 5.5)
GOING_AWAY, TOO_LARGE, INTERNAL_ERROR = 1001, 1009, 1011
PING: Final = b"PING"
ENCODER: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


class Output(Protocol):
    """The way to the client."""

    @property
    def is_open(self) -> bool:
        """Return whether the client takes frames."""
        ...

    @property
    def room(self) -> bool:
        """Return whether more messages may wait for the client."""
        ...

    def send(self, frame: dict[str, Any]) -> None: ...

    def close(self, code: int, reason: str) -> None: ...


class Handler(ABC):
    """The meaning of a WebSocket's frames."""

    @property
    @abstractmethod
    def may_read(self) -> bool:
        """Return whether the broker takes more frames now."""

    @abstractmethod
    def open(self, opened: Opened) -> None:
        """Open what the client asks for. `opened` hears of success or of the error."""

    def opened(self) -> None:
        """Begin, because the upgrade is answered."""
        return

    @abstractmethod
    def resume(self) -> None:
        """Take more from the broker, because there is room again."""

    @abstractmethod
    def receive(self, text: str) -> None:
        """Handle a text frame."""

    @abstractmethod
    def close(self) -> None:
        """End all that the client opened."""


class Socket(Output):
    """The state of one WebSocket, and its tasks. It is a connection of the broker's turns."""

    def __init__(self, broker: Broker, protocol: WSConnection, address: str) -> None:
        self._broker = broker
        self._protocol = protocol
        self.address = address
        self.handler: Handler | None = None
        self._stream: trio.abc.Stream | None = None
        self._waiting: deque[bytes] = deque()
        self._size = 0  # bytes that wait, with those that are being written
        self._text: list[str] = []
        self._text_size = 0
        self._closed = False  # no more frames go out
        self._writer_wakes = trio.Event()
        self._reader_wakes = trio.Event()
        self._scope = trio.CancelScope()
        self._use = Use()
        self._frames: Iterator[None] | None = None  # frames that wait for the connection's next slice
        self._heard = 0.0  # time of the last byte in either direction
        self._timers: list[Timer] = []

    @property
    def is_open(self) -> bool:
        return self._stream is not None and not self._closed

    @property
    def room(self) -> bool:
        return not self._closed and self._size < HIGH_WATER

    def send(self, frame: dict[str, Any]) -> None:
        if self.is_open:
            self._write(TextMessage(data=ENCODER.encode(frame).encode(errors="replace").decode()))

    def close(self, code: int, reason: str) -> None:
        """Send a close frame. The connection ends when the client answers, or a second later."""
        if not self.is_open:
            return
        log.warning("closing a WebSocket", peer=self.address, code=code, reason=reason)
        cut = reason.encode(errors="replace")[:LONGEST_REASON].decode(errors="ignore")
        self._write(CloseConnection(code=code, reason=cut))
        self._close()

    def _close(self) -> None:
        if not self._closed:
            self._closed = True
            if self.handler is not None:
                self.handler.close()
            self._scope.deadline = min(self._scope.deadline, trio.current_time() + GOODBYE_SECONDS)
        self.woken()

    def _write(self, event: Event) -> None:
        data = self._protocol.send(event)
        self._waiting.append(data)
        self._size += len(data)
        self._writer_wakes.set()

    def woken(self) -> None:
        self._writer_wakes.set()
        if self._closed or self._may_read():
            self._reader_wakes.set()

    def _may_read(self) -> bool:
        if self._frames is not None or self.handler is None:
            return False
        return self._size < MOST_WAITING and self.handler.may_read

    # tasks

    async def serve(self, stream: trio.abc.Stream, accepted: bytes, first: bytes) -> None:
        """Carry frames until either side ends the connection.

        `accepted` is the answer to the upgrade. `first` are bytes that came behind the request.
        """
        assert self.handler is not None
        self._stream, turn = stream, self._broker.turn
        self._heard = self._broker.clock.keep_alive.monotonic()
        self._start_timers()
        try:
            await stream.send_all(accepted)
            turn.begin()
            try:
                self.handler.opened()
                if first:
                    self._received(first)
            finally:
                turn.finish()
            with self._scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._read_all)
                    nursery.start_soon(self._write_all)
        finally:
            for timer in self._timers:
                timer.cancel()
            self._closed = True
            self._frames = None
            self.handler.close()
            turn.finish()

    def _start_timers(self) -> None:
        config, clock = self._broker.config, self._broker.clock.keep_alive
        idle = config.webSocketSessionIdleTimeoutMillis / 1000
        if idle > 0:
            self._timers.append(clock.every(max(idle / 4, 0.05), self._check_idle))
        if config.webSocketPingDurationSeconds > 0:
            self._timers.append(clock.every(config.webSocketPingDurationSeconds, self._ping))

    def _check_idle(self) -> None:
        idle = self._broker.config.webSocketSessionIdleTimeoutMillis / 1000
        if self._broker.clock.keep_alive.monotonic() - self._heard >= idle:
            self.close(GOING_AWAY, "Connection Idle Timeout")

    def _ping(self) -> None:
        if self.is_open and self.room:
            self._write(Ping(payload=PING))

    async def _read_all(self) -> None:
        stream, turn = self._stream, self._broker.turn
        assert stream is not None
        try:
            while self._protocol.state is not ConnectionState.CLOSED:
                data = bytes(await stream.receive_some(PIECE))
                if not data:
                    break
                turn.begin()
                try:
                    self._received(data)
                finally:
                    turn.finish()
                while not (self._closed or self._may_read()):
                    self._reader_wakes = trio.Event()
                    await self._reader_wakes.wait()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        self._close()
        if self._protocol.state is not ConnectionState.CLOSED:
            self._scope.cancel()

    async def _write_all(self) -> None:
        stream = self._stream
        assert stream is not None
        try:
            while True:
                if self._waiting:
                    data = b"".join(self._waiting)
                    self._waiting.clear()
                    for start in range(0, len(data), PIECE):
                        await stream.send_all(data[start : start + PIECE])
                        self._heard = self._broker.clock.keep_alive.monotonic()
                    self._size -= len(data)
                    self._continue()
                    await trio.lowlevel.checkpoint()  # others get a turn, though the socket takes everything at once
                elif self._protocol.state is ConnectionState.CLOSED:
                    break
                else:
                    self._writer_wakes = trio.Event()
                    await self._writer_wakes.wait()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        self._scope.cancel()

    def _continue(self) -> None:
        """Deliver more in a turn of its own, because the client has read."""
        if self._closed or self.handler is None:
            return
        turn = self._broker.turn
        turn.begin()
        try:
            self.handler.resume()
        finally:
            turn.finish()
        self.woken()

    def _received(self, data: bytes) -> None:
        """Handle the frames in `data` for one slice. The others wait for the connection's next one."""
        self._heard = self._broker.clock.keep_alive.monotonic()
        frames = self._handle_frames(data)
        if self._broker.turn.fair.is_crowded:
            self._wait_for_slice(frames)
        else:
            self._handle_for_a_slice(frames)

    def _wait_for_slice(self, frames: Iterator[None]) -> None:
        self._frames = frames
        self._broker.turn.next_slice(self._use, self._has_slice)

    def _has_slice(self) -> None:
        frames, self._frames = self._frames, None
        assert frames is not None
        try:
            self._handle_for_a_slice(frames)
        except Exception:
            self._scope.cancel()  # later frames would be misread
            raise
        self.woken()

    def _handle_for_a_slice(self, frames: Iterator[None]) -> None:
        began = perf_counter()
        if work_for_a_slice(frames):
            self._wait_for_slice(frames)
        self._use.seconds += perf_counter() - began

    def _handle_frames(self, data: bytes) -> Iterator[None]:
        try:
            self._protocol.receive_data(data)
            for event in self._protocol.events():
                self._handle(event)
                yield
        except ProtocolError as error:  # bytes behind the client's close frame
            log.warning("closing a WebSocket", peer=self.address, reason=error)
            self._close()

    def _handle(self, event: Event) -> None:
        if isinstance(event, CloseConnection):
            if self._protocol.state is ConnectionState.OPEN:  # the client's bytes are no frame
                self.close(event.code, event.reason or "")
            elif self._protocol.state is ConnectionState.REMOTE_CLOSING:
                self._write(event.response())
            self._close()
        elif isinstance(event, Ping):
            if not self._closed:
                self._write(event.response())
        elif isinstance(event, (TextMessage, BytesMessage)) and not self._closed:
            self._take(event)

    def _take(self, event: TextMessage | BytesMessage) -> None:
        """Collect a message from its frames. As in Pulsar, binary messages are ignored."""
        most = self._broker.config.webSocketMaxTextFrameSize
        self._text_size += len(event.data)
        if self._text_size > most:
            self.close(TOO_LARGE, f"Text message too large: {self._text_size:,} > {most:,}")
            return
        if isinstance(event, TextMessage):
            self._text.append(event.data)
        if event.message_finished:
            text, texts = "".join(self._text), bool(self._text) or isinstance(event, TextMessage)
            self._text.clear()
            self._text_size = 0
            if texts and self.handler is not None:
                self.handler.receive(text)


class OpenSockets(set[Socket]):
    """The WebSockets of a broker that are open."""


def open_sockets(broker: Broker) -> OpenSockets:
    """Return the WebSockets of a broker that are open."""
    try:
        return broker.attached(OpenSockets)
    except LookupError:
        return broker.attach(OpenSockets())
