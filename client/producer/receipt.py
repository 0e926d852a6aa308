"""What becomes of a message that was sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import anyio
import anyio.lowlevel

from pulsarium.client.errors import PulsarError
from pulsarium.client.message_id import MessageId

Outcome: TypeAlias = Callable[[MessageId | None, PulsarError | None], None]
"""Told where a message stands, or why it was not published."""


class Receipt:
    """Of one message that is being sent."""

    __slots__ = ("_error", "_event", "_message_id", "_outcomes")

    def __init__(self) -> None:
        self._message_id: MessageId | None = None
        self._error: PulsarError | None = None
        self._event: anyio.Event | None = None  # made for those who wait
        self._outcomes: tuple[Outcome, ...] = ()

    def is_done(self) -> bool:
        """Tell whether `result` says what became of it."""
        return self._message_id is not None or self._error is not None

    async def wait(self) -> MessageId:
        """Where the message stands; raises why it was not published. Any number of tasks may wait, any time.

        Of what the broker had stored before, going by its sequence id, the id is (-1, -1): nobody remembers where. Of a
        message in chunks it is that of the last chunk, and `first_chunk` that of the first.
        """
        if self.is_done():
            await anyio.lowlevel.checkpoint()
        while not self.is_done():
            if self._event is None:
                self._event = anyio.Event()
            await self._event.wait()
        return self.result()

    def result(self) -> MessageId:
        """Return or raise what `wait` does, of a message that `is_done`."""
        if self._error is not None:
            raise self._error
        assert self._message_id is not None
        return self._message_id

    def then(self, outcome: Outcome) -> None:
        """Call this when it is known, before anybody who waits."""
        self._outcomes += (outcome,)

    def _settle(self, message_id: MessageId) -> None:
        """It was published."""
        self._message_id = message_id
        self._wake()

    def _fail(self, error: PulsarError) -> None:
        """It was not, or nobody knows."""
        self._error = error
        self._wake()

    def _wake(self) -> None:
        for outcome in self._outcomes:
            outcome(self._message_id, self._error)
        if self._event is not None:
            self._event.set()
