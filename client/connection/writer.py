"""What waits to be written on a connection, and the writing of it."""

from __future__ import annotations

from collections.abc import Callable

import anyio
from anyio.abc import ByteStream

from pulsarium.client.connection.protocol import ClientProtocol
from pulsarium.client.connection.tcp import TcpStream


class Writer:
    """One task writes (`run`), and whoever waits for an answer writes at once, where the stream can do that."""

    def __init__(self, stream: ByteStream, protocol: ClientProtocol) -> None:
        """`protocol` holds what waits."""
        self.provoked: int = 0
        """Commands that answer what came in, since something was written."""
        self._stream = stream
        self._protocol = protocol
        self._write: Callable[[bytes], int] | None = stream.send_nowait if isinstance(stream, TcpStream) else None
        self._is_writing = False
        self._is_over = False
        self._something_to_write = anyio.Event()
        self._flushed = anyio.Event()  # everything that waited is written, for `flush`

    async def run(self) -> None:
        """Whatever was queued since the last write goes out with one, until `end`; raises what the stream does."""
        while not self._is_over:
            await self._something_to_write.wait()
            self._something_to_write = anyio.Event()
            self._is_writing = True
            try:
                if self._protocol.has_output:
                    await self._stream.send(self._protocol.take())
            finally:
                self._is_writing = False
            self.provoked = 0
            if not self._protocol.has_output:
                self._flushed.set()

    def write_soon(self) -> None:
        """Something was queued: it goes out when the event loop comes round, with what other tasks have."""
        self._something_to_write.set()

    def write_nowait(self) -> None:
        """Write what is queued, as far as the socket takes it now; the rest is for the task that writes."""
        if self._write is not None and not self._is_writing:
            data = self._protocol.take()
            try:
                written = self._write(data)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return  # whoever reads finds out why
            if written == len(data):
                return
            self._protocol.put_back(data[written:])
        self._something_to_write.set()

    async def flush(self) -> None:
        """Return when everything that is queued was written, or nothing is any more."""
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
