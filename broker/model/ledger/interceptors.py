"""Write broker entry metadata in front of entries (brokerEntryMetadataInterceptors), and find entries by index."""

from __future__ import annotations

from collections.abc import Mapping

from pulsarium.broker.clock import Timeline
from pulsarium.broker.config.keys import Config
from pulsarium.broker.logs import PartLog
from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger
from pulsarium.broker.model.ledger.position import EARLIEST, Position
from pulsarium.broker.model.ledger.sequence import LedgerSequence, Reading, Visible, newest_matching
from pulsarium.broker.storage.interface import DamagedEntriesError
from pulsarium.proto.entry import messages_in, parse_broker_metadata, parse_metadata
from pulsarium.proto.errors import EntryError
from pulsarium.proto.generated import PulsarApi_pb2 as pb

log = PartLog("topics")

INDEX_PROPERTY = "index"  # keeps the index after its entry is deleted; Pulsar always keeps the index there
MOST_DIGITS = 18  # of an index


class EntryStamps:
    """Stamp entries with the broker's time and the index of their last message, as configured."""

    def __init__(self, config: Config, clock: Timeline) -> None:
        self._timestamp = config.appends_broker_timestamp
        self._index = config.appends_index
        self._clock = clock
        self.index = -1  # of the last message

    def __bool__(self) -> bool:
        return self._timestamp or self._index

    def next(self, messages: int) -> pb.BrokerEntryMetadata:
        """Return the metadata of the next entry, which counts as `messages` messages."""
        stamp = pb.BrokerEntryMetadata()
        if self._timestamp:
            stamp.broker_timestamp = self._clock.now_ms()
        if self._index:
            self.index += max(messages, 0)  # SEND may claim any number
            stamp.index = max(self.index, 0)
        return stamp

    def go_on(self, ledger: ManagedLedger) -> None:
        """Continue the index of a topic that is loaded again.

        The index continues behind the last readable entry, or else behind the stored index. Each damaged entry at the
        end counts as one message, so that indexes keep rising.
        """
        position, unread = ledger.last_appended, 0
        while position is not None and position.entry_id >= 0:
            try:
                index = index_of(ledger.read_now(position))
            except DamagedEntriesError as error:
                if not self._index:
                    return
                if not unread:
                    log.warning("the last entry is damaged: indexes may repeat", ledger=ledger.name, reason=error)
                unread += 1
                position = ledger.previous(position)
            else:
                self.index = unread + (-1 if index is None else index)
                return
        if self._index:
            self.index = unread + kept_index(ledger.properties)


def kept_index(properties: Mapping[str, str]) -> int:
    """Return the stored index of a ledger whose last entry is deleted, or -1 without one."""
    text = properties.get(INDEX_PROPERTY, "")  # users may set the property too: the number has to fit into a long
    return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else -1


def index_of(entry: bytes) -> int | None:
    """Return the index of an entry's last message, or None without one in its broker entry metadata."""
    try:
        stamp = parse_broker_metadata(entry)
    except EntryError:  # a producer may send bytes that look like broker entry metadata
        return None
    return stamp.index if stamp is not None and stamp.HasField("index") else None


class NoIndexError(Exception):
    """Raised when no entry has an index, because all were written without interceptors."""


def find_index(ledger: LedgerSequence, index: int, *, as_released: bool = False) -> Reading[Position | None]:
    """Return the position of the entry with this index.

    Return EARLIEST when the entry was deleted, and None when it does not exist yet, or no entry is left. The broker
    stores only the last index of a batch. The index of a marker belongs to the next message. Entries that were written
    without interceptors are skipped.

    `as_released` gives the answer of Pulsar 4.2.4: a marker may be the result, earlier indexes of the first
    batch count as deleted, and nothing is found when the first entry has no index.
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
    """Return whether an entry is a marker, which the broker wrote."""
    try:
        return parse_metadata(entry).HasField("marker_type")
    except EntryError:
        return False
