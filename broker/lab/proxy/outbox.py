"""Bytes on their way to one side of a proxied connection."""

from __future__ import annotations

from contextlib import suppress

import trio

ENOUGH = 1 << 20  # bytes that may wait for a slow side before the other side is read no more


class Outbox:
    """Write bytes in order. A side that is gone takes none, and says nothing: its own reader notes the end."""

    def __init__(self, sink: trio.abc.Stream, nursery: trio.Nursery) -> None:
        self.waiting = 0
        """Bytes that are not written yet."""
        self._sink = sink
        self._nursery = nursery
        self._parts: list[bytes] = []
        self._writing = False
        self._gone = False
        self._moved = trio.Event()

    def put(self, data: bytes) -> None:
        """Write bytes soon. Call this outside of the reader's turn."""
        if data and not self._gone:
            self._add(data)
            if not self._writing:
                self._writing = True
                self._nursery.start_soon(self._write)

    async def send(self, data: bytes) -> None:
        """Write bytes now, behind those that wait. Return when there is room for more."""
        if data and not self._gone:
            self._add(data)
            if not self._writing:
                self._writing = True
                await self._write()
        await self.at_most(ENOUGH)

    async def at_most(self, most: int) -> None:
        """Wait until no more than so many bytes wait."""
        while self.waiting > most:
            self._moved = trio.Event()
            await self._moved.wait()

    async def end(self) -> None:
        """Tell the other side that nothing more comes."""
        await self.at_most(0)
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            if isinstance(self._sink, trio.abc.HalfCloseableStream):
                await self._sink.send_eof()
            else:
                await self._sink.aclose()  # TLS has no half-closed connections

    def _add(self, data: bytes) -> None:
        self._parts.append(data)
        self.waiting += len(data)

    async def _write(self) -> None:
        try:
            while self._parts:
                data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
                self._parts.clear()
                await self._sink.send_all(data)
                self.waiting -= len(data)
                self._moved.set()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._gone = True
            self._parts.clear()
            self.waiting = 0
        finally:
            self._writing = False
            self._moved.set()
