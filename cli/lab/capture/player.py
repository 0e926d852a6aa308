"""Play the client's side of a capture to a broker, and record the conversation."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import trio

from pulsarium.broker.lab.proxy.upstream import Upstream
from pulsarium.capture.file import CaptureRecord, CaptureWriter, EventKind
from pulsarium.capture.lint.frames import Conversation
from pulsarium.capture.replay import PONG, Await, CloseStep, Key, Open, Replay, Send
from pulsarium.cli.lab.capture.file import records_of
from pulsarium.proto.commands import Direction
from pulsarium.proto.framing import FrameDecoder
from pulsarium.proto.framing import frame as framed

_READ = 1 << 16
_MOST_FRAME = 256 << 20


class _Connection:
    """A connection to the other broker."""

    def __init__(self, number: int, stream: trio.SocketStream) -> None:
        self.number = number
        self.stream = stream
        self.ended = trio.Event()


class Player:
    """Player of one replay."""

    def __init__(self, writer: CaptureWriter, target: Upstream, wait: float) -> None:
        self._writer = writer
        self._target = target
        self._wait = wait
        self._replay = Replay()
        self._connections: dict[int, _Connection] = {}
        self._given_up: set[Key] = set()
        self._changed = trio.Event()

    async def play(self, file: Path) -> None:
        """Take all steps."""
        records = (record for _, record in records_of(file))
        async with trio.open_nursery() as nursery:
            for step in self._replay.steps(records):
                match step:
                    case Open(number):
                        stream = await trio.open_tcp_stream(self._target.host, self._target.port)
                        connection = self._connections[number] = _Connection(number, stream)
                        self._note(self._writer.opened, number)
                        nursery.start_soon(self._receive, connection)
                    case Send(number, frame):
                        await self._send(self._connections[number], self._replay.rewritten(frame))
                    case Await(key, count):
                        await self._await(key, count)
                    case CloseStep(number, sender):
                        await self._close(self._connections[number], by_client=sender.value == "client")
            for connection in self._connections.values():
                await connection.stream.aclose()

    def _note(self, write: Callable[..., None], *arguments: object, **more: object) -> None:
        write(*arguments, time.monotonic_ns(), time.time_ns(), **more)

    async def _send(self, connection: _Connection, data: bytes) -> None:
        self._writer.frame(connection.number, Direction.CLIENT, time.monotonic_ns(), time.time_ns(), data)
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):  # the broker has closed the connection
            await connection.stream.send_all(data)

    async def _await(self, key: Key, count: int) -> None:
        """Wait for a frame, but for the frames of one name only once in vain."""
        if key in self._given_up:
            return
        with trio.move_on_after(self._wait) as scope:
            while self._replay.arrivals[key] < count and not self._connections[key[0]].ended.is_set():
                await self._changed.wait()
        if scope.cancelled_caught:
            self._given_up.add(key)

    async def _close(self, connection: _Connection, *, by_client: bool) -> None:
        if by_client:
            self._note(self._writer.closed, connection.number, Direction.CLIENT)
            await connection.stream.aclose()
            return
        with trio.move_on_after(self._wait):
            await connection.ended.wait()

    async def _receive(self, connection: _Connection) -> None:
        talk, decoder = Conversation(), FrameDecoder(_MOST_FRAME)
        async with connection.stream as stream:
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                while decoder.error is None and (piece := await stream.receive_some(_READ)):
                    for parts in decoder.feed(piece):
                        await self._received(connection, talk, framed(*parts))
                self._note(self._writer.closed, connection.number, Direction.BROKER)
        connection.ended.set()
        self._wake()

    async def _received(self, connection: _Connection, talk: Conversation, data: bytes) -> None:
        times = time.monotonic_ns(), time.time_ns()
        self._writer.frame(connection.number, Direction.BROKER, *times, data)
        frame = talk.feed(CaptureRecord(EventKind.FRAME, connection.number, Direction.BROKER, *times, data, len(data)))
        if frame.name == "PING":
            await self._send(connection, PONG)
        else:
            self._replay.arrived(connection.number, frame)
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()
