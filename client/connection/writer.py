"""Write the queued commands of a connection."""

from __future__ import annotations

from collections.abc import Callable

import anyio
from anyio.abc import ByteStream

from pulsarium.client.checkpoints import checkpoint
from pulsarium.client.connection.protocol import ClientProtocol
from pulsarium.client.connection.tcp import TcpStream

ENOUGH = 64  # commands in one write
QUIET_TURNS = 2  # turns of the event loop without a new command, before a write


class CommandWriter:
    """A writer of queued commands.

    One task writes (`run`), and a task that waits for a reply writes at once on TCP streams.
    """

    def __init__(self, stream: ByteStream, protocol: ClientProtocol) -> None:
        """Write the output of `protocol` to the stream."""
        self.provoked: int = 0
        """Answers to the broker's commands since the last write."""
        self._stream = stream
        self._protocol = protocol
        self._write: Callable[[bytes], int] | None = stream.send_nowait if isinstance(stream, TcpStream) else None
        self._is_writing = False
        self._is_over = False
        self._something_to_write = anyio.Event()
        self._flushed = anyio.Event()  # everything queued is written, for `flush`

    async def run(self) -> None:
        """Write all queued commands together, again and again until `end`. Raise the errors of the stream."""
        while not self._is_over:
            await self._something_to_write.wait()
            self._something_to_write = anyio.Event()
            await self._gather()
            self._is_writing = True
            try:
                if self._protocol.has_output:
                    await self._stream.send(self._protocol.take())
            finally:
                self._is_writing = False
            self.provoked = 0
            if not self._protocol.has_output:
                self._flushed.set()

    async def _gather(self) -> None:
        """Wait while tasks add commands, because a write costs as much as several turns of the event loop.

        A turn of trio runs tasks in a random order, so one turn without a new command may be chance.
        """
        before = quiet_turns = 0
        while before < ENOUGH and quiet_turns < QUIET_TURNS:
            await checkpoint()
            waiting = self._protocol.waiting
            quiet_turns = 0 if waiting > before else quiet_turns + 1
            before = waiting

    def write_soon(self) -> None:
        """Write the queued commands soon, together with those that tasks add in the next turns of the event loop."""
        self._something_to_write.set()

    def write_nowait(self) -> None:
        """Write as many queued bytes as the socket accepts now. The task of `run` writes the rest."""
        if self._write is not None and not self._is_writing:
            data = self._protocol.take()
            try:
                written = self._write(data)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return  # the reading task reports the error
            if written == len(data):
                return
            self._protocol.put_back(data[written:])
        self._something_to_write.set()

    async def flush(self) -> None:
        """Wait until everything queued is written, or the writer has ended."""
        if not self._is_over:
            if self._flushed.is_set():
                self._flushed = anyio.Event()
            self._something_to_write.set()
            await self._flushed.wait()

    def end(self) -> None:
        """Write nothing more."""
        self._is_over = True
        self._something_to_write.set()
        self._flushed.set()
