"""What waits for an application in the queues of its consumer, and several messages of it at once (PIP-51)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel

from pulsarium.client.consumer.policies import ConsumerBatchReceivePolicy
from pulsarium.client.errors import PulsarError, copy_of
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId

if TYPE_CHECKING:
    from pulsarium.client.consumer.receiver import Receiver
    from pulsarium.client.schema.versions import Versions


class Onlooker:
    """Hears of entries of which nothing is received: override what is of interest. None of these may wait."""

    def nothing(self, entry: tuple[int, int] | None) -> None:
        """An entry came without a message to deliver."""

    def unreadable(self, message_id: MessageId, error: PulsarError) -> None:
        """A damaged entry came, which nobody gets."""


class Inbox:
    """Receivers that have something take turns."""

    def __init__(
        self, *, forgiving: bool = False, versions: Versions | None = None, onlooker: Onlooker | None = None
    ) -> None:
        """`forgiving`: a receiver that failed for good only ends itself. `versions`: of schemas that read by them."""
        self.onlooker: Onlooker = onlooker or Onlooker()
        self._versions = versions
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
        return self._first() is not None and (self._versions is None or self._unknown() is None)

    def _first(self) -> Receiver | None:
        """Whose turn it is."""
        while self._ready:
            first = next(iter(self._ready))
            if first:
                return first
            del self._ready[first]
        return None

    def _unknown(self) -> Message[Any] | None:
        """The next message, if the schema that it was written with has to be asked for."""
        first = self._first()
        head = None if first is None else first.head
        if self._versions is None or not isinstance(head, Message) or self._versions.knows(head):
            return None
        return head

    def __len__(self) -> int:
        """How many can be received."""
        return sum(map(len, self._receivers))

    def size(self) -> int:
        """Their bytes."""
        return sum(receiver.size() for receiver in self._receivers)

    @property
    def is_full(self) -> bool:
        """Whether no more come from one of the topics before something is taken."""
        return any(receiver.is_full for receiver in self._receivers)

    @property
    def head(self) -> Message[Any] | Exception | None:
        """What `take` returns or raises."""
        first = self._first()
        return None if first is None else first.head

    async def another(self) -> None:
        """Wait until there is more than now, for which all the room is used. Raises as `arrival`."""
        self._check()
        for receiver in self._receivers:
            receiver.offer_room()
        await self._change()

    async def arrival(self, *, until_end: bool = False) -> bool:
        """Wait until there is something: True; `until_end`, False when all topics are terminated and read.

        Raise what ended one of the receivers for good. It is always a checkpoint.
        """
        await anyio.lowlevel.checkpoint()
        return bool(self) or await self.filled(until_end=until_end)

    async def filled(self, *, until_end: bool = False) -> bool:
        """Do what `arrival` does, but no checkpoint where something is there."""
        while not self:
            if self._versions is not None and self._error is None and (unknown := self._unknown()) is not None:
                await self._versions.find(unknown)  # it is still in its queue, should this be cancelled
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
        """The next message, which must be there (`arrival`); raises what is there instead."""
        receiver = next(iter(self._ready))
        if len(self._ready) > 1:  # then it is another's turn
            del self._ready[receiver]
            self._ready[receiver] = None
        message = receiver.take()
        if self._versions is not None:
            self._versions.tell(message)
        return message


async def batch_receive(
    inbox: Inbox, policy: ConsumerBatchReceivePolicy, take: Callable[[], Message[Any]]
) -> list[Message[Any]]:
    """What the policy has enough of; after its timeout what there is, perhaps nothing. `take` gives the next message
    of the inbox; what it raises comes alone.

    Nothing is taken before the end, so that nothing is lost by cancelling it.
    """
    with anyio.move_on_after(policy.timeout if policy.timeout > 0 else None):
        while not _is_enough(inbox, policy):
            await inbox.another()
    if len(inbox):
        await inbox.filled()  # the first one's schema may have to be asked for
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
