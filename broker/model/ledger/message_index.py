"""Which entry has a message index (PIP-415), by the index that the broker wrote in front of each entry."""

from __future__ import annotations

from pulsarium.broker.model.ledger.interceptors import index_of
from pulsarium.broker.model.ledger.position import EARLIEST, Position
from pulsarium.broker.model.ledger.search import Reading, Visible, newest_matching
from pulsarium.broker.model.ledger.sequence import LedgerSequence
from pulsarium.proto.entry import messages_in, parse_metadata
from pulsarium.proto.errors import EntryError


class NoIndexError(Exception):
    """The first entry has no index: it was written before there were interceptors."""


def find_index(ledger: LedgerSequence, index: int, *, as_released: bool = False) -> Reading[Position | None]:
    """The entry that has this index; EARLIEST when it was deleted, None when there is none yet, or nothing left.

    Of a batch the broker keeps the last index only. A marker's index is that of the next message. `as_released`: as
    4.2.4 does, a marker answers for itself (X-31), and what the first batch has below its last index counts as deleted.
    """
    entries = Visible(ledger.ledgers.values())
    if not entries:
        return None
    first: bytes = yield entries[0]
    last_of_first = index_of(first)
    if last_of_first is None:
        raise NoIndexError
    messages = 1 if as_released else max(messages_in(first) or 1, 1)
    if index <= last_of_first - messages:
        return EARLIEST

    def comes_before(entry: bytes) -> bool:
        found = index_of(entry)
        return found is not None and found < index

    number = 1 + (yield from newest_matching(entries, comes_before))
    while number < len(entries):
        position = entries[number]
        if as_released:
            return position
        entry: bytes = yield position
        if index_of(entry) is None:  # written while there were none
            return None
        if not is_marker(entry):
            return position
        number += 1
    return None


def is_marker(entry: bytes) -> bool:
    """Whether the broker wrote an entry for itself."""
    try:
        return parse_metadata(entry).HasField("marker_type")
    except EntryError:
        return False
