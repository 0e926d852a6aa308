"""A place between messages: where reading goes on."""

from __future__ import annotations

from typing import NamedTuple

from pulsarium.client import MessageId
from pulsarium.proto.message_id import MessageId as WireMessageId

_WHOLE = -1


class Position(NamedTuple):
    """The next message to read. So a range [a, b) ends before b, and b need not be there (yet, or any more)."""

    ledger: int
    entry: int
    batch_index: int = 0

    @staticmethod
    def parse(text: str) -> Position:
        """What `str` gave: an id as Pulsar writes it. InvalidMessageId (a ValueError) for anything else."""
        return Position.of(MessageId.from_wire(WireMessageId.parse(text)))

    @staticmethod
    def of(message_id: MessageId) -> Position:
        """Of this message; of a chunked one, of its last chunk, with which it comes."""
        return Position(message_id.ledger_id, message_id.entry_id, max(message_id.batch_index, 0))

    @staticmethod
    def behind(message_id: MessageId) -> Position:
        """What follows the message, or the entry if the id has no batch index."""
        at = Position.of(message_id)
        if message_id.batch_index > _WHOLE and message_id.batch_index + 1 != message_id.batch_size:
            return at._replace(batch_index=at.batch_index + 1)
        return at.next_entry

    @property
    def next_entry(self) -> Position:
        return Position(self.ledger, self.entry + 1)

    def message_id(self) -> MessageId:
        """To begin at, inclusively; of a whole entry without batch index."""
        return MessageId(self.ledger, self.entry, batch_index=self.batch_index or _WHOLE)

    def __str__(self) -> str:
        """`ledger:entry`, or `ledger:entry:-1:batch index`."""
        return f"{self.ledger}:{self.entry}" + (f":-1:{self.batch_index}" if self.batch_index else "")


FIRST = Position(-1, -1)
"""Before whatever there is."""
