"""The outcome of a message that was sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import anyio
import anyio.lowlevel

from pulsarium.client.errors import PulsarError
from pulsarium.client.message_id import MessageId

Outcome: TypeAlias = Callable[[MessageId | None, PulsarError | None], None]
"""Called with the id of a published message, or with the error that prevented it."""


class Receipt:
    """The receipt of one message that is being sent."""

    __slots__ = ("_error", "_event", "_message_id", "_outcomes")

    def __init__(self) -> None:
        self._message_id: MessageId | None = None
        self._error: PulsarError | None = None
        self._event: anyio.Event | None = None  # made when a task waits
        self._outcomes: tuple[Outcome, ...] = ()

    def is_done(self) -> bool:
        """Return whether the message is published or has failed."""
        return self._message_id is not None or self._error is not None

    async def wait(self) -> MessageId:
        """Wait until the message is published, and return its id. Any number of tasks may wait, at any time.

        The id of a message that the broker dropped as a duplicate is (-1, -1), because the broker does not know its
        position. The id of a chunked message is that of its last chunk, and its `first_chunk` that of the first.

        Raises:
            PulsarError: The message was not published, or the client cannot know.
        """
        if self.is_done():
            await anyio.lowlevel.checkpoint()
        while not self.is_done():
            if self._event is None:
                self._event = anyio.Event()
            await self._event.wait()
        return self.result()

    def result(self) -> MessageId:
        """Return the id or raise the error, as `wait`, when `is_done` returns True."""
        if self._error is not None:
            raise self._error
        assert self._message_id is not None
        return self._message_id

    def then(self, outcome: Outcome) -> None:
        """Call `outcome` when the outcome is known, before tasks that wait are woken."""
        self._outcomes += (outcome,)

    def _settle(self, message_id: MessageId) -> None:
        """Set the id of the published message."""
        self._message_id = message_id
        self._wake()

    def _fail(self, error: PulsarError) -> None:
        """Fail the receipt: the message was not stored, or the client cannot know."""
        self._error = error
        self._wake()

    def _wake(self) -> None:
        for outcome in self._outcomes:
            outcome(self._message_id, self._error)
        if self._event is not None:
            self._event.set()
