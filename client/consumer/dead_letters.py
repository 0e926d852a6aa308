"""Messages that are delivered too often go to another topic (PIP-22)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio
from anyio.abc import TaskGroup

from pulsarium.client.connection.backoff import Backoff
from pulsarium.client.consumer.delayed import Entry
from pulsarium.client.consumer.letters import Letters
from pulsarium.client.consumer.policies import ConsumerDeadLetterPolicy
from pulsarium.client.errors import PulsarError
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.client.together import together

logger: logging.Logger = logging.getLogger(__name__)


class DeadLetters:
    """Those of one topic: what was delivered for the last time, until it is acknowledged, or moved."""

    def __init__(
        self,
        tasks: TaskGroup,
        topic: str,
        policy: ConsumerDeadLetterPolicy,
        letters: Letters,
        acknowledge: Callable[[MessageId], Awaitable[None]],
        again: Callable[[Entry, float], None],
    ) -> None:
        """`topic`, in full, is where they come from. `again` is told of an entry that could not be moved, and after how
        many seconds to come back with it to `move`; it must not wait."""
        assert policy.dead_letter_topic is not None
        self._tasks = tasks
        self._origin = topic
        self._topic = policy.dead_letter_topic
        self._policy = policy
        self._letters = letters
        self._acknowledge = acknowledge
        self._again = again
        self._backoff = Backoff()
        self._last: dict[Entry, list[Message[Any]]] = {}
        self._moving: dict[Entry, list[Message[Any]]] = {}
        self._scope: anyio.CancelScope | None = None

    def __len__(self) -> int:
        """Entries that were delivered for the last time."""
        return len(self._last)

    def arrived(self, entry: Entry, messages: list[Message[Any]], redelivery_count: int) -> bool:
        """An entry came: whether that was once too often, so that it is moved, and nobody shall receive it."""
        if redelivery_count < self._policy.max_redeliver_count:
            return False
        self._last[entry] = messages
        if redelivery_count > self._policy.max_redeliver_count:
            self.move({entry})
            return True
        return False

    def move(self, entries: set[Entry]) -> set[Entry]:
        """These would be delivered again. Moves those that must not be, and returns the others."""
        rest = set(entries)
        for entry in self._last.keys() & entries:
            self._moving[entry] = self._last.pop(entry)
            rest.difference_update(self._moving[entry][0].message_id().entries)
        if self._moving and self._scope is None:
            self._scope = anyio.CancelScope()
            self._tasks.start_soon(self._run, self._scope)
        return rest

    def forget(self, entry: Entry) -> None:
        """It was acknowledged."""
        self._last.pop(entry, None)

    def clear(self) -> None:
        """Everything comes again."""
        self._last.clear()

    def close(self) -> None:
        """Move nothing more."""
        self._last.clear()
        self._moving.clear()
        if self._scope is not None:
            self._scope.cancel()

    async def _run(self, scope: anyio.CancelScope) -> None:
        try:
            with scope:
                while self._moving:
                    moving, self._moving = self._moving, {}
                    await together([partial(self._move, *one) for one in moving.items()])
        finally:
            self._scope = None

    async def _move(self, entry: Entry, messages: list[Message[Any]]) -> None:
        try:
            for message in messages:
                properties = self._letters.properties_of(message, self._origin)
                name = self._policy.initial_subscription_name
                await self._letters.send(self._topic, message, properties, initial_subscription_name=name)
            for message in messages:
                await self._acknowledge(message.message_id())
        except PulsarError as error:
            logger.warning("%s: %s is no dead letter yet: %s", self._topic, messages[0].message_id(), error)
            self._last[entry] = messages
            self._again(entry, self._backoff.next())
        else:
            self._backoff = Backoff()
