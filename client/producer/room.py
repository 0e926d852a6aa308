"""The limits of messages that have no receipt yet: their number, and their bytes."""

from __future__ import annotations

from collections import deque

import anyio

from pulsarium.client.errors import MemoryBufferIsFull, ProducerQueueIsFull


class Limit:
    """A limit of a sum, such as the bytes of all messages of a client. Tasks wait in the order of their calls.

    As in other Pulsar clients, one message may exceed the limit: a free rest of any size is enough.
    """

    def __init__(self, limit: int = 0) -> None:
        """Set the limit. 0 is no limit."""
        self.limit = limit
        self.used: int = 0
        self._waiting: deque[tuple[int, anyio.Event]] = deque()

    def acquire_nowait(self, size: int) -> bool:
        """Take `size` and return True, or return False when the limit is reached."""
        if self.limit and size and (self._waiting or self.used >= self.limit):
            return False
        self.used += size
        return True

    async def acquire(self, size: int) -> None:
        """Take `size` as soon as the limit allows. A canceled call takes nothing."""
        if self.acquire_nowait(size):
            return
        turn = size, anyio.Event()
        self._waiting.append(turn)
        try:
            await turn[1].wait()
        except BaseException:
            if turn[1].is_set():
                self.release(size)
            else:
                self._waiting.remove(turn)
                self._admit()
            raise

    def release(self, size: int) -> None:
        """Return `size`."""
        self.used -= size
        self._admit()

    def _admit(self) -> None:
        while self._waiting and self.used < self.limit:
            size, turn = self._waiting.popleft()
            self.used += size
            turn.set()


class Room:
    """The limits of pending messages of one topic or partition: their number, and the client's memory.

    A message occupies both from before it is numbered until its receipt.
    """

    def __init__(self, topic: str, places: int, memory: Limit) -> None:
        self.topic = topic
        self._places = Limit(places)
        self._memory = memory
        self.bytes: int = 0
        """Bytes of the pending messages."""

    @property
    def messages(self) -> int:
        """Return the number of pending messages."""
        return self._places.used

    @property
    def places(self) -> int:
        """Return the limit of pending messages."""
        return self._places.limit

    def acquire_nowait(self, size: int, messages: int = 1) -> None:
        """Reserve room for messages of `size` bytes together.

        Raise `ProducerQueueIsFull` at the limit `max_pending_messages`, and `MemoryBufferIsFull` at `memory_limit`.
        """
        if not self._places.acquire_nowait(messages):
            raise ProducerQueueIsFull(
                f"{self.topic}: {self.places} messages have no receipt: await receipts, or raise max_pending_messages"
            )
        if not self._memory.acquire_nowait(size):
            self._places.release(messages)
            raise MemoryBufferIsFull(
                f"{self.topic}: {self._memory.limit} bytes have no receipt: await receipts, or raise memory_limit"
            )
        self.bytes += size

    async def acquire(self, size: int, messages: int = 1) -> None:
        """Reserve room for messages of `size` bytes together as soon as the limits allow.

        A canceled call reserves nothing.
        """
        await self._places.acquire(messages)
        try:
            await self._memory.acquire(size)
        except BaseException:
            self._places.release(messages)
            raise
        self.bytes += size

    def release(self, messages: int, size: int) -> None:
        """Release the room of `messages` messages of `size` bytes together."""
        self.bytes -= size
        self._places.release(messages)
        self._memory.release(size)
