"""A proxy between a client and its broker, which applies a fault program to their frames."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
from anyio.abc import ByteStream, TaskGroup

from pulsarium.client.connection.service_url import BrokerAddress
from pulsarium.client.connection.settings import Dial
from pulsarium.proto.framing import FrameDecoder, frame
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.hostile.faults import Action, Fault, changed
from tests.client.peer import Pipe, pipes

MOST_FRAMES = 20_000  # of one program; a client that sends more spins
_MOST = 64 * 1024 * 1024

_LOST = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError)


class _Cut(Exception):
    """A fault that ends the connection now."""


class Proxy:
    """A proxy. `dial` is for the client's settings, and faults happen until `heal`."""

    def __init__(self, dial: Dial, faults: Sequence[Fault], tasks: TaskGroup) -> None:
        self.streams: list[Pipe] = []
        """The client's ends of the connections."""
        self.frames = 0
        self._dial = dial
        self._tasks = tasks
        self._faults = faults
        self._seen = [0] * len(faults)
        self._healed = anyio.Event()

    async def dial(self, address: BrokerAddress) -> ByteStream:
        broker = await self._dial(address)
        client, near = pipes()
        self.streams.append(client)
        self._tasks.start_soon(self._carry, near, broker)
        return client

    def heal(self) -> None:
        """Forward everything from now on, and first the frames that were held back."""
        self._healed.set()

    async def _carry(self, near: ByteStream, broker: ByteStream) -> None:
        try:
            async with anyio.create_task_group() as tasks:
                for to_client, source, sink in ((False, near, broker), (True, broker, near)):
                    tasks.start_soon(self._pump, to_client, source, sink, tasks)
        finally:
            with anyio.CancelScope(shield=True):
                await near.aclose()
                await broker.aclose()

    async def _pump(self, to_client: bool, source: ByteStream, sink: ByteStream, tasks: TaskGroup) -> None:
        decoder = FrameDecoder(_MOST)
        held: list[bytes] = []  # reordered frames, which are sent after the next frame
        try:
            while True:
                with anyio.move_on_after(0.5 if held else None) as waiting:
                    data = await source.receive()
                if waiting.cancelled_caught:
                    await sink.send(held.pop())
                    continue
                for encoded, trailing in decoder.feed(data):
                    await self._pass(to_client, encoded, trailing, sink, held)
        except (_Cut, *_LOST):
            tasks.cancel_scope.cancel()

    def _fault(self, to_client: bool, encoded: bytes) -> Fault | None:
        """Return the first fault that hits this frame."""
        self.frames += 1
        assert self.frames < MOST_FRAMES, "the client spins"
        found = None
        kind = pb.BaseCommand.FromString(encoded).type
        for index, fault in enumerate(self._faults):
            if fault.to_client is to_client and fault.type in (None, kind):
                count = self._seen[index]
                self._seen[index] += 1
                if found is None and fault.occurrence <= count < fault.occurrence + fault.times:
                    found = fault
        return None if self._healed.is_set() else found

    async def _pass(
        self, to_client: bool, encoded: bytes, trailing: bytes, sink: ByteStream, held: list[bytes]
    ) -> None:
        fault = self._fault(to_client, encoded)
        whole = frame(encoded, trailing)
        before = held.pop() if held else None
        if fault is None:
            await sink.send(whole)
        elif fault.action is Action.REORDER:
            held.append(whole)
        elif fault.action is Action.CUT:
            raise _Cut
        elif fault.action is Action.CLOSE_AFTER:
            await sink.send(whole)
            raise _Cut
        elif fault.action is Action.TRUNCATE:
            await sink.send(whole[: fault.amount % len(whole)] or whole[:1])
            raise _Cut
        elif fault.action in (Action.DELAY, Action.STALL):
            with anyio.move_on_after(fault.amount / 100 if fault.action is Action.DELAY else None):
                await self._healed.wait()
            await sink.send(whole)
        else:
            for piece in changed(fault, encoded, trailing):
                await sink.send(piece)
        if before is not None:
            await sink.send(before)
