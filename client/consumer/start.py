"""The exact start of a reader or seek, inside an entry. The broker sends the whole entry."""

from __future__ import annotations

from typing import NamedTuple

from pulsarium.client.message_id import MessageId


class Start(NamedTuple):
    """A start at a message, or after it. An id without batch index means the whole entry."""

    message_id: MessageId
    inclusive: bool = False
    needed_from: MessageId | None = None
    """The first entry with chunks of later messages, if this is before the message."""
    rollback_duration: int = 0
    """Seconds. If greater than 0, the start is the first message that is not older, in place of `message_id`."""

    @classmethod
    def needing(cls, chunks: list[MessageId], message_id: MessageId, *, inclusive: bool = False) -> Start:
        """Return a start that includes those of these chunks that are before the message."""
        return cls(message_id, inclusive, min((one for one in chunks if one.entry < message_id.entry), default=None))

    @property
    def first_entry(self) -> MessageId:
        """Return the first entry that the broker must send."""
        return self.needed_from or self.message_id.first_chunk or self.message_id

    def is_behind(self, entry: tuple[int, int]) -> bool:
        """Return whether the broker sends this entry only for its chunks."""
        return self.first_entry is not self.message_id and entry < self.message_id.entry

    def skips(self, entry: tuple[int, int], batch_index: int) -> bool:
        """Return whether a message that the broker sends is before the start."""
        if entry == self.message_id.entry:
            return not self._allows(batch_index)
        return self.is_behind(entry)

    def is_before(self, last: MessageId) -> bool:
        """Return whether a message can be read if `last` is the topic's last message."""
        if last.entry_id < 0:  # the topic is empty
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
