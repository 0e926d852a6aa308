"""What waits for an application in the queues of its consumer, one for each topic and partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel

from pulsarium.client.errors import PulsarError, copy_of
from pulsarium.client.message import Message

if TYPE_CHECKING:
    from pulsarium.client.consumer.receiver import Receiver


class Inbox:
    """Receivers that have something take turns."""

    def __init__(self, *, forgiving: bool = False) -> None:
        """`forgiving`: a receiver that failed for good only ends itself."""
        self._forgiving = forgiving
        self._receivers: dict[Receiver, None] = {}
        self._ready: dict[Receiver, None] = {}  # the next one first; it may have been emptied since
        self._arrival: anyio.Event | None = None
        self._error: PulsarError | None = None

    def add(self, receiver: Receiver) -> None:
        """From now on, what it has is received."""
        self._receivers[receiver] = None
        self.wake(receiver)

    def remove(self, receiver: Receiver) -> None:
        """What it has is not received any more."""
        self._receivers.pop(receiver, None)
        self._ready.pop(receiver, None)

    def wake(self, receiver: Receiver) -> None:
        """It has something, or its end was reached, or it failed."""
        if receiver and receiver in self._receivers:
            self._ready[receiver] = None
        self._wake()

    def fail(self, error: PulsarError) -> None:
        """Nothing comes any more: whoever waits, or asks later, gets the error."""
        self._error = error
        self._wake()

    def _wake(self) -> None:
        if self._arrival is not None:
            self._arrival.set()
            self._arrival = None

    def __bool__(self) -> bool:
        """Whether something can be received at once."""
        while self._ready:
            first = next(iter(self._ready))
            if first:
                return True
            del self._ready[first]
        return False

    async def arrival(self, *, until_end: bool = False) -> bool:
        """Wait until there is something: True; `until_end`, False when all topics are terminated and read.

        Raises what ended one of the receivers for good.
        """
        await anyio.lowlevel.checkpoint()
        while not self:
            if self._error is not None:
                raise copy_of(self._error)
            for receiver in self._receivers:
                if receiver.error is not None and not self._forgiving:
                    raise copy_of(receiver.error)
            if until_end and self._receivers and all(receiver.end_of_topic for receiver in self._receivers):
                return False
            if self._arrival is None:
                self._arrival = anyio.Event()
            await self._arrival.wait()
        return True

    def take(self) -> Message[Any]:
        """The next message, which must be there (`arrival`); raises what is there instead."""
        receiver = next(iter(self._ready))
        if len(self._ready) > 1:  # then it is another's turn
            del self._ready[receiver]
            self._ready[receiver] = None
        return receiver.take()
