"""Where reading begins, exactly: the broker begins with the whole entry."""

from __future__ import annotations

from typing import NamedTuple

from pulsarium.client.message_id import MessageId


class Start(NamedTuple):
    """Begin at a message, or behind it. Without a batch index the id stands for its whole entry."""

    message_id: MessageId
    inclusive: bool = False
    needed_from: MessageId | None = None
    """Chunks of later messages begin here already."""
    rollback_duration: int = 0
    """Seconds: begin with what is not older, in place of the message."""

    @classmethod
    def needing(cls, chunks: list[MessageId], message_id: MessageId, *, inclusive: bool = False) -> Start:
        """With what began before the message and did not end."""
        return cls(message_id, inclusive, min((one for one in chunks if one.entry < message_id.entry), default=None))

    @property
    def first_entry(self) -> MessageId:
        """With which the broker shall begin."""
        return self.needed_from or self.message_id.first_chunk or self.message_id

    def is_behind(self, entry: tuple[int, int]) -> bool:
        """Whether the broker sends this entry only for the chunks that are needed."""
        return self.first_entry is not self.message_id and entry < self.message_id.entry

    def skips(self, entry: tuple[int, int], batch_index: int) -> bool:
        """Whether a message that the broker sent is before the start."""
        if entry == self.message_id.entry:
            return not self._allows(batch_index)
        return self.is_behind(entry)

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
