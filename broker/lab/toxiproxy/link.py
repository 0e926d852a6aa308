"""Carry the bytes of one direction of a connection through its toxics, which may change at any time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

import trio

from pulsarium.broker.lab.toxiproxy.passage import READ, Passage, Queue
from pulsarium.broker.lab.toxiproxy.toxics import NONE, Toxic, ToxicEffect

LATE: Final = 4 << 20  # bytes that wait in front of a toxic that delays each of them


class ToxicStage(Passage):
    """The place of one toxic on one direction of a connection."""

    def __init__(self, toxic: Toxic, source: Queue, sink: Queue, reset: Callable[[], None]) -> None:
        super().__init__(source, sink, reset)
        self.name = toxic.name
        self._removed = False
        self._closing = False
        self._scope = trio.CancelScope()
        self._apply(toxic.drawn())

    def _apply(self, effect: ToxicEffect) -> None:
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


class ToxicLink:
    """A direction of a connection: a reader, a stage for each toxic, and a writer."""

    def __init__(self, toxics: Iterable[Toxic], reset: Callable[[], None]) -> None:
        self._reset = reset
        self._nursery: trio.Nursery | None = None
        self._entry = self._exit = Queue()  # of the reader, and of the writer
        self._stages: list[ToxicStage] = []
        for toxic in toxics:
            self.add(toxic)

    def add(self, toxic: Toxic) -> None:
        """Add a toxic behind the others."""
        source = Queue()
        self._lead(len(self._stages), source)
        stage = ToxicStage(toxic, source, self._exit, self._reset)
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

    async def _run(self, stage: ToxicStage) -> None:
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
