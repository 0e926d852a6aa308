"""Keys of negatively acknowledged messages, whose later messages go back to the broker (PIP-493)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import anyio

from pulsarium.client.consumer.delayed import Entry
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId

FEATURE = "supports_key_ordered_negative_ack"
SLACK = 60.0  # seconds after the redelivery delay, within which the message should have arrived again


class _Retry:
    """A key, from its first negative acknowledgement until all its negatively acknowledged entries are acknowledged."""

    __slots__ = ("refused", "returned", "until")

    def __init__(self) -> None:
        self.refused: set[Entry] = set()
        self.returned: set[Entry] = set()
        self.until = 0.0


class RetryingKeys:
    """Decide which messages the application must not receive yet: those later than a refused message of their key.

    The broker withholds later messages as well. So a message that comes back after it was returned shows that the
    broker does not withhold the key any more, and its retry is over. Entries count by their first message.
    """

    def __init__(self) -> None:
        self._retries: dict[bytes, _Retry] = {}
        self._key_of: dict[Entry, bytes] = {}  # of refused entries
        self._left: dict[Entry, set[int]] = {}  # unacknowledged indexes of refused batches

    def __bool__(self) -> bool:
        return bool(self._retries)

    def refuse(self, key: bytes, message_id: MessageId, left: Collection[int], delay: float) -> None:
        """Note a negative acknowledgement. `left` has the unacknowledged indexes of the message's batch, if it has one.

        `delay` is the time in seconds after which the broker redelivers the message.
        """
        entry = message_id.entry
        retry = self._retries.setdefault(key, _Retry())
        retry.refused.add(entry)
        retry.until = max(retry.until, anyio.current_time() + delay + SLACK)
        self._key_of[entry] = key
        if left:
            self._left[entry] = set(left)

    def returns(self, message: Message[Any]) -> bool:
        """Return whether a message is too early, and must go back to the broker."""
        key = order_key(message)
        retry = None if key is None else self._retries.get(key)
        if key is None or retry is None:
            return False
        entry = message.message_id().entry
        if entry in retry.returned or anyio.current_time() > retry.until:
            self._end(key)
            return False
        if entry <= min(retry.refused):
            return False
        retry.returned.add(entry)
        return True

    def left_of(self, entry: Entry) -> Collection[int] | None:
        """Return the unacknowledged indexes of a refused batch that arrives again, or None for other entries."""
        return self._left.get(entry)

    def acknowledged(self, message_id: MessageId) -> None:
        """Note an acknowledgement that the broker gets, of a message or of its whole entry."""
        left = self._left.get(message_id.entry)
        if left is not None and message_id.batch_index >= 0:
            left.discard(message_id.batch_index)
        if not left or message_id.batch_index < 0:
            self.done(message_id.entry)

    def done(self, entry: Entry) -> None:
        """Forget an entry that is acknowledged completely. The last one ends the retry of its key."""
        key = self._key_of.pop(entry, None)
        self._left.pop(entry, None)
        if key is not None:
            retry = self._retries[key]
            retry.refused.discard(entry)
            if not retry.refused:
                del self._retries[key]

    def _end(self, key: bytes) -> None:
        for entry in tuple(self._retries[key].refused):
            self.done(entry)

    def clear(self) -> None:
        """Forget everything, because the broker redelivers all messages in order."""
        self._retries.clear()
        self._key_of.clear()
        self._left.clear()


def order_key(message: Message[Any]) -> bytes | None:
    """Return the key whose order Key_Shared keeps: the ordering key, or else the partition key. None without any."""
    own = message._own
    return own.ordering_key if own.HasField("ordering_key") else message.key_bytes()
