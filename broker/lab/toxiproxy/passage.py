"""The passage of bytes from one queue to the next, which a toxic may slow down, cut or end."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

import trio

READ: Final = 32 << 10  # bytes that are read at once


class Chunk(NamedTuple):
    """Bytes, and the time when they came."""

    data: memoryview
    arrived: float


class Queue:
    """Chunks between two stages. The stage in front waits while `most` bytes are in the queue."""

    def __init__(self) -> None:
        self.most = READ
        self.filling = 0
        """The number of tasks inside `put`."""
        self._chunks: deque[Chunk] = deque()
        self._size = 0
        self._ended = False
        self._changed = trio.lowlevel.ParkingLot()

    @property
    def unused(self) -> bool:
        """Return whether no chunk is in the queue, and none is on its way into the queue."""
        return not self._chunks and not self.filling and not self._ended

    async def put(self, data: memoryview) -> None:
        """Add bytes. When canceled, add none."""
        self.filling += 1
        try:
            await trio.lowlevel.checkpoint()
            while self._size >= self.most and not self._ended:
                await self._changed.park()
            if data and not self._ended:
                self._chunks.append(Chunk(data, trio.current_time()))
                self._size += len(data)
                self._changed.unpark_all()
        finally:
            self.filling -= 1

    async def get(self) -> Chunk | None:
        """Return the next chunk, or None at the end. When canceled, take none."""
        await trio.lowlevel.checkpoint()
        while not self._chunks and not self._ended:
            await self._changed.park()
        if not self._chunks:
            return None
        chunk = self._chunks.popleft()
        self._size -= len(chunk.data)
        self._changed.unpark_all()
        return chunk

    def end(self) -> None:
        """End the queue behind its chunks."""
        self._ended = True
        self._changed.unpark_all()


class Passage:
    """The way of one direction's bytes past a toxic."""

    def __init__(self, source: Queue, sink: Queue, reset: Callable[[], None]) -> None:
        self.held = memoryview(b"")
        """Bytes that came and were not passed on yet."""
        self.arrived = 0.0
        self.passed = 0
        """The number of bytes that were passed on."""
        self.reset = reset
        self.source = source
        self.sink = sink

    async def take(self) -> bool:
        """Take the next bytes. Return False at their end."""
        chunk = await self.source.get()
        if chunk is not None:
            self.held, self.arrived = chunk
        return chunk is not None

    async def give(self, most: int | None = None) -> None:
        """Pass on the bytes that the stage holds, or the first `most` of them."""
        part = self.held[:most]
        await self.sink.put(part)
        self.held = self.held[len(part) :]
        self.passed += len(part)

    def drop(self) -> None:
        """Drop the bytes that the stage holds."""
        self.held = memoryview(b"")
