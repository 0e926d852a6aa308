"""Which entry has a message index (PIP-415), by the index that the broker wrote in front of each entry."""

from __future__ import annotations

from pulsarium.broker.model.ledger.interceptors import index_of
from pulsarium.broker.model.ledger.position import EARLIEST, Position
from pulsarium.broker.model.ledger.search import Reading, Visible, newest_matching
from pulsarium.broker.model.ledger.sequence import LedgerSequence
from pulsarium.proto.entry import messages_in, parse_metadata
from pulsarium.proto.errors import EntryError


class NoIndexError(Exception):
    """No entry has an index: all were written before there were interceptors."""


def find_index(ledger: LedgerSequence, index: int, *, as_released: bool = False) -> Reading[Position | None]:
    """The entry that has this index; EARLIEST when it was deleted, None when there is none yet, or nothing left.

    Of a batch the broker keeps the last index only. A marker's index is that of the next message. Entries from before
    there were interceptors have none, and are passed over. `as_released`: as 4.2.4 does, a marker answers for itself
    (X-31), what the first batch has below its last index counts as deleted, and nothing is found where the first entry
    has no index.
    """
    entries = Visible(ledger.ledgers.values())
    if not entries:
        return None
    start = 0
    first: bytes = yield entries[0]
    if index_of(first) is None and not as_released:
        start = 1 + (yield from newest_matching(entries, lambda entry: index_of(entry) is None))
        if start < len(entries):
            first = yield entries[start]
    last_of_first = index_of(first)
    if last_of_first is None:
        raise NoIndexError
    messages = 1 if as_released else max(messages_in(first) or 1, 1)
    if index <= last_of_first - messages:
        return EARLIEST

    def comes_before(entry: bytes) -> bool | None:
        found = index_of(entry)
        if found is None:
            return False if as_released else None
        return found < index

    number = max(1 + (yield from newest_matching(entries, comes_before, start=start)), start)
    while number < len(entries):
        position = entries[number]
        if as_released:
            return position
        entry: bytes = yield position
        if index_of(entry) is not None and not is_marker(entry):
            return position
        number += 1
    return None


def is_marker(entry: bytes) -> bool:
    """Whether the broker wrote an entry for itself."""
    try:
        return parse_metadata(entry).HasField("marker_type")
    except EntryError:
        return False
