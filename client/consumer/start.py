"""Where reading begins, exactly: the broker begins with the whole entry."""

from __future__ import annotations

from typing import NamedTuple

from pulsarium.client.message_id import MessageId


class Start(NamedTuple):
    """Begin at a message, or behind it. Without a batch index the id stands for its whole entry."""

    message_id: MessageId
    inclusive: bool = False

    def skips(self, entry: tuple[int, int], batch_index: int) -> bool:
        """Whether a message that the broker sent is before the start."""
        return entry == self.message_id.entry and not self._allows(batch_index)

    def is_before(self, last: MessageId) -> bool:
        """Whether there is something to read if `last` is the topic's last message."""
        if last.entry_id < 0:  # nothing in the topic
            return False
        if last.entry != self.message_id.entry:
            return last.entry > self.message_id.entry
        return self._allows(last.batch_index)

    def _allows(self, batch_index: int) -> bool:
        first = self.message_id.batch_index
        if first < 0:
            return self.inclusive
        index = max(batch_index, 0)
        return index >= first if self.inclusive else index > first
