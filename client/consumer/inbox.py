"""The received messages of a consumer, from the queues of all its topics, one by one or in batches (PIP-51)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import anyio

from pulsarium.client.checkpoints import checkpoint
from pulsarium.client.consumer.policies import ConsumerBatchReceivePolicy
from pulsarium.client.consumer.receiver import Onlooker, Receiver
from pulsarium.client.errors import PulsarError, copy_of
from pulsarium.client.message import Message
from pulsarium.client.schema.versions import Versions


class Inbox:
    """Take messages from the receivers of a consumer in turn."""

    def __init__(
        self, *, forgiving: bool = False, versions: Versions | None = None, onlooker: Onlooker | None = None
    ) -> None:
        """Make an inbox. With `forgiving`, the failure of one receiver does not fail the others.

        `versions` finds the schemas with which messages were written, for a schema that needs them.
        """
        self.onlooker: Onlooker = onlooker or Onlooker()
        self._versions = versions
        self._forgiving = forgiving
        self._receivers: dict[Receiver, None] = {}
        self._ready: dict[Receiver, None] = {}  # the next receiver is first; its queue may be empty
        self._arrival: anyio.Event | None = None
        self._error: PulsarError | None = None

    def add(self, receiver: Receiver) -> None:
        """Add a receiver."""
        self._receivers[receiver] = None
        self.wake(receiver)

    def remove(self, receiver: Receiver) -> None:
        """Remove a receiver and its messages."""
        self._receivers.pop(receiver, None)
        self._ready.pop(receiver, None)

    def wake(self, receiver: Receiver) -> None:
        """Wake calls that wait, because the receiver has a message, reached the end of its topic, or failed."""
        if receiver in self._receivers:
            self._ready[receiver] = None
        self._wake()

    def fail(self, error: PulsarError) -> None:
        """Raise the error in all calls that wait, or come later."""
        self._error = error
        self._wake()

    def _wake(self) -> None:
        if self._arrival is not None:
            self._arrival.set()
            self._arrival = None

    def __bool__(self) -> bool:
        """Return whether a message can be taken at once."""
        return self._first() is not None and (self._versions is None or self._unknown() is None)

    def _first(self) -> Receiver | None:
        """Return the receiver whose turn is next, or None."""
        while self._ready:
            first = next(iter(self._ready))
            if first:
                return first
            del self._ready[first]
        return None

    def _unknown(self) -> Message[Any] | None:
        """Return the next message if the schema with which it was written has to be fetched."""
        first = self._first()
        head = None if first is None else first.head
        if self._versions is None or not isinstance(head, Message) or self._versions.knows(head):
            return None
        return head

    def __len__(self) -> int:
        """Return the number of messages."""
        return sum(map(len, self._receivers))

    def size(self) -> int:
        """Return the size of all messages, in bytes."""
        return sum(receiver.size() for receiver in self._receivers)

    @property
    def is_full(self) -> bool:
        """Return whether the queue of any receiver is full."""
        return any(receiver.is_full for receiver in self._receivers)

    @property
    def head(self) -> Message[Any] | Exception | None:
        """Return the message or error that `take` returns or raises next, or None."""
        first = self._first()
        return None if first is None else first.head

    async def another(self) -> None:
        """Wait for one more message, and use all room of the queues. Raise as `filled` does."""
        self._check()
        for receiver in self._receivers:
            receiver.offer_room()
        await self._change()

    async def arrival(self) -> None:
        """Wait as `filled` does. Each call is a checkpoint."""
        await checkpoint()
        await self.filled()

    async def filled(self, *, until_end: bool = False) -> bool:
        """Wait for a message, and return True. With `until_end`, return False at the end of all topics.

        Raise the error of a receiver that failed. A call that finds a message is no checkpoint.
        """
        while not self:
            if self._versions is not None and self._error is None and (unknown := self._unknown()) is not None:
                await self._versions.find(unknown)  # if this is canceled, the message is still in its queue
                continue
            self._check()
            if until_end and self._receivers and all(receiver.end_of_topic for receiver in self._receivers):
                return False
            await self._change()
        return True

    def _check(self) -> None:
        if self._error is not None:
            raise copy_of(self._error)
        for receiver in self._receivers:
            if receiver.error is not None and not self._forgiving:
                raise copy_of(receiver.error)

    async def _change(self) -> None:
        if self._arrival is None:
            self._arrival = anyio.Event()
        await self._arrival.wait()

    def take(self) -> Message[Any]:
        """Return the next message, after `arrival`, or raise the error in its place."""
        receiver = next(iter(self._ready))
        if len(self._ready) > 1:  # the next receiver has its turn
            del self._ready[receiver]
            self._ready[receiver] = None
        message = receiver.take()
        if self._versions is not None:
            self._versions.tell(message)
        return message


async def batch_receive(
    inbox: Inbox, policy: ConsumerBatchReceivePolicy, take: Callable[[], Message[Any]]
) -> list[Message[Any]]:
    """Return messages up to the limits of the policy. At its timeout, return the messages that have arrived.

    `take` returns the next message of the inbox. It raises an error only for the first one. Messages are taken only
    after the wait, so that a canceled call loses none.
    """
    with anyio.move_on_after(policy.timeout if policy.timeout > 0 else None):
        while not _is_enough(inbox, policy):
            await inbox.another()
    if len(inbox):
        await inbox.filled()  # the schema of the first message may have to be fetched
    taken: list[Message[Any]] = []
    size = 0
    most, most_bytes = _limit(policy.max_num_message), _limit(policy.max_num_bytes)
    while len(taken) < most and inbox:
        following = inbox.head
        size += len(following.data()) if isinstance(following, Message) else 0
        if taken and (size > most_bytes or not isinstance(following, Message)):
            break
        taken.append(take())
    return taken


def _is_enough(inbox: Inbox, policy: ConsumerBatchReceivePolicy) -> bool:
    if inbox.is_full or len(inbox) >= _limit(policy.max_num_message):
        return True
    return policy.max_num_bytes > 0 and inbox.size() >= policy.max_num_bytes


def _limit(number: int) -> float:
    return number if number > 0 else math.inf
