"""What messages without a receipt may take."""

from __future__ import annotations

import anyio

from pulsarium.client.errors import MemoryBufferIsFull, ProducerQueueIsFull
from pulsarium.client.memory import MemoryLimit


class Room:
    """Places for the messages to one topic or partition, and bytes of the client's memory for their contents.

    A message has both from before it is numbered until its receipt.
    """

    def __init__(self, topic: str, places: int, memory: MemoryLimit) -> None:
        self.topic = topic
        self._most = places
        self._places = anyio.Semaphore(places, fast_acquire=True)
        self._memory = memory
        self.messages: int = 0
        """Messages that have their place."""
        self.bytes: int = 0
        """Bytes of these."""

    def acquire_nowait(self, size: int) -> None:
        """A place, and so many bytes; ProducerQueueIsFull or MemoryBufferIsFull."""
        try:
            self._places.acquire_nowait()
        except anyio.WouldBlock:
            raise ProducerQueueIsFull(f"{self.topic}: {self._most} messages pending") from None
        if not self._memory.acquire_nowait(size):
            self._places.release()
            raise MemoryBufferIsFull(f"{self.topic}: {self._memory.limit} bytes of messages pending")
        self.messages += 1
        self.bytes += size

    async def acquire(self, size: int) -> None:
        """The same, as soon as there is room. Cancelled, nothing is taken."""
        await self._places.acquire()
        try:
            await self._memory.acquire(size)
        except BaseException:
            self._places.release()
            raise
        self.messages += 1
        self.bytes += size

    def release(self, messages: int, size: int) -> None:
        """So many messages, of so many bytes together, are published or have failed."""
        self.messages -= messages
        self.bytes -= size
        for _ in range(messages):
            self._places.release()
        self._memory.release(size)
