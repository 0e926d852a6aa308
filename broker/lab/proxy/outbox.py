"""Bytes on their way to one side of a proxied connection."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import suppress

import trio

from pulsarium.broker.net.dialling import is_reset

ENOUGH = 1 << 20  # bytes that may wait for a slow side before the other side is read no more
AT_ONCE = 1 << 18  # bytes that are joined for one write; a longer part is a write of its own


class Outbox:
    """Write bytes in order. A side that is gone takes none, and says nothing: its own reader notes the end."""

    def __init__(self, sink: trio.abc.Stream, nursery: trio.Nursery) -> None:
        self.waiting = 0
        """Bytes that are not written yet."""
        self.was_reset = False
        """Whether the side that takes them has reset the connection."""
        self._sink = sink
        self._nursery = nursery
        self._parts: deque[bytes] = deque()  # copies of a long frame are one object, so they are not joined
        self._writing = False
        self._gone = False
        self._waiters = trio.lowlevel.ParkingLot()  # for room: both directions, and the end of the connection

    def put(self, parts: Sequence[bytes]) -> None:
        """Write bytes soon. Call this outside of the reader's turn."""
        if parts and not self._gone:
            self._add(parts)
            if not self._writing:
                self._writing = True
                self._nursery.start_soon(self._write)

    async def send(self, parts: Sequence[bytes]) -> None:
        """Write bytes now, behind those that wait. Return when there is room for more."""
        if parts and not self._gone:
            self._add(parts)
            if not self._writing:
                self._writing = True
                await self._write()
        await self.at_most(ENOUGH)

    async def at_most(self, most: int) -> None:
        """Wait until no more than so many bytes wait."""
        while self.waiting > most:
            await self._waiters.park()

    async def end(self) -> None:
        """Tell the other side that nothing more comes."""
        await self.at_most(0)
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            if isinstance(self._sink, trio.abc.HalfCloseableStream):
                await self._sink.send_eof()
            else:
                await self._sink.aclose()  # TLS has no half-closed connections

    def _add(self, parts: Sequence[bytes]) -> None:
        self._parts.extend(parts)
        self.waiting += sum(map(len, parts))

    def _next(self) -> bytes:
        """Take the bytes for one write."""
        first = self._parts.popleft()
        if not self._parts or len(first) >= AT_ONCE:
            return first
        joined, size = [first], len(first)
        while self._parts and size < AT_ONCE:
            joined.append(self._parts.popleft())
            size += len(joined[-1])
        return b"".join(joined)

    async def _write(self) -> None:
        try:
            while self._parts:
                data = self._next()
                await self._sink.send_all(data)
                self.waiting -= len(data)
                self._waiters.unpark_all()
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            self._gone = True
            self.was_reset = is_reset(error)
            self._parts.clear()
            self.waiting = 0
        finally:
            self._writing = False
            self._waiters.unpark_all()
