"""Carry the bytes of one direction of a connection through its toxics, which may change at any time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final, NamedTuple

import trio

from pulsarium.broker.lab.toxiproxy.toxics import NONE, Effect, Toxic

READ: Final = 32 << 10  # bytes that are read at once
LATE: Final = 4 << 20  # bytes that wait in front of a toxic that delays each of them


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


class Stage:
    """The place of one toxic on one direction of a connection."""

    def __init__(self, toxic: Toxic, source: Queue, sink: Queue, reset: Callable[[], None]) -> None:
        self.name = toxic.name
        self.held = memoryview(b"")
        """Bytes that came and were not passed on yet."""
        self.arrived = 0.0
        self.passed = 0
        """The number of bytes that the stage has passed on."""
        self.reset = reset
        self.source = source
        self.sink = sink
        self._removed = False
        self._closing = False
        self._scope = trio.CancelScope()
        self._apply(toxic.drawn())

    def _apply(self, effect: Effect) -> None:
        self._effect = effect
        self.source.most = LATE if effect.buffers else READ
        self._scope.cancel()

    def change(self, toxic: Toxic) -> None:
        """Apply the new attributes of the toxic from now on."""
        self._apply(toxic.drawn())

    def remove(self) -> None:
        """Let all data pass from now on. Some toxics close the connection instead."""
        self._removed = True
        self._closing = self._effect.closes
        self._apply(NONE)

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

    async def run(self) -> bool:
        """Pass bytes on until their end. Return False when the toxic is removed and the stage is empty."""
        while not self._closing:
            with trio.CancelScope() as self._scope:
                await self._effect.pipe(self)
            if not self._scope.cancelled_caught:
                break
            await self.give()
            while self._removed and not self._closing and not self.source.unused:
                self._closing = not await self.take()
                await self.give()
            if self._removed and not self._closing:
                return False
        self.sink.end()
        return True


class Link:
    """A direction of a connection: a reader, a stage for each toxic, and a writer."""

    def __init__(self, toxics: Iterable[Toxic], reset: Callable[[], None]) -> None:
        self._reset = reset
        self._nursery: trio.Nursery | None = None
        self._entry = self._exit = Queue()  # of the reader, and of the writer
        self._stages: list[Stage] = []
        for toxic in toxics:
            self.add(toxic)

    def add(self, toxic: Toxic) -> None:
        """Add a toxic behind the others."""
        source = Queue()
        self._lead(len(self._stages), source)
        stage = Stage(toxic, source, self._exit, self._reset)
        self._stages.append(stage)
        if self._nursery is not None:
            self._nursery.start_soon(self._run, stage)

    def change(self, toxic: Toxic) -> None:
        """Apply new attributes to the toxic of this name."""
        for stage in self._stages:
            if stage.name == toxic.name:
                stage.change(toxic)

    def remove(self, name: str) -> None:
        """Remove the toxic of this name. The bytes that it holds go on at once."""
        for stage in self._stages:
            if stage.name == name:
                stage.name = ""
                stage.remove()

    def _lead(self, index: int, queue: Queue) -> None:
        """Lead the bytes in front of the stage of this index to a queue."""
        if index:
            self._stages[index - 1].sink = queue
        else:
            self._entry = queue

    async def carry(self, source: trio.abc.ReceiveStream, sink: trio.abc.SendStream) -> None:
        """Carry bytes until their end, and close `sink`."""
        async with trio.open_nursery() as self._nursery:
            self._nursery.start_soon(self._read, source)
            for stage in self._stages:
                self._nursery.start_soon(self._run, stage)
            await self._write(sink)
            self._nursery.cancel_scope.cancel()
            self._nursery = None

    async def _run(self, stage: Stage) -> None:
        if not await stage.run():
            self._lead(self._stages.index(stage), stage.sink)
            self._stages.remove(stage)

    async def _read(self, source: trio.abc.ReceiveStream) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while data := await source.receive_some(READ):
                await self._entry.put(memoryview(bytes(data)))
        self._entry.end()

    async def _write(self, sink: trio.abc.SendStream) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while chunk := await self._exit.get():
                await sink.send_all(chunk.data)
        await trio.aclose_forcefully(sink)
