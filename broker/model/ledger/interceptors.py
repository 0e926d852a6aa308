"""What the broker writes in front of each entry (brokerEntryMetadataInterceptors)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pulsarium.broker.clock import Clock
from pulsarium.broker.config.keys import Config
from pulsarium.broker.logs import Log
from pulsarium.broker.storage.interface import DamagedEntriesError
from pulsarium.proto.entry import parse_broker_metadata
from pulsarium.proto.errors import EntryError
from pulsarium.proto.generated import PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger

log = Log("topics")

INDEX_PROPERTY = "index"  # where the count stands once the entry that had it is gone; Pulsar keeps it there always
MOST_DIGITS = 18  # of an index


class EntryStamps:
    """Stamps entries with the broker's time and with the index of their last message, as far as configured."""

    def __init__(self, config: Config, clock: Clock) -> None:
        self._timestamp = config.appends_broker_timestamp
        self._index = config.appends_index
        self._clock = clock
        self.index = -1  # of the last message

    def __bool__(self) -> bool:
        return self._timestamp or self._index

    def next(self, messages: int) -> pb.BrokerEntryMetadata:
        """The stamp of the next entry, which counts for `messages` messages."""
        stamp = pb.BrokerEntryMetadata()
        if self._timestamp:
            stamp.broker_timestamp = self._clock.now_ms()
        if self._index:
            self.index += max(messages, 0)  # what SEND claims, which may be anything
            stamp.index = max(self.index, 0)
        return stamp

    def go_on(self, ledger: ManagedLedger) -> None:
        """Of a topic that is loaded again: after its last entry, or what was kept when that went.

        Behind an entry that can be read, each one that cannot counts for one message, so that indexes go on rising.
        """
        position, unread = ledger.last_appended, 0
        while position is not None and position.entry_id >= 0:
            try:
                index = index_of(ledger.read_now(position))
            except DamagedEntriesError as error:
                if not self._index:
                    return
                if not unread:
                    log.warning("the last entry is damaged: indexes may come again", ledger=ledger.name, reason=error)
                unread += 1
                position = ledger.previous(position)
            else:
                self.index = unread + (-1 if index is None else index)
                return
        if self._index:
            self.index = unread + kept_index(ledger.properties)


def kept_index(properties: Mapping[str, str]) -> int:
    """The index of the last message of a ledger whose last entry is gone; -1 when none was kept."""
    text = properties.get(INDEX_PROPERTY, "")  # users may set it too: what they say has to fit into a long
    return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else -1


def index_of(entry: bytes) -> int | None:
    """The index of an entry's last message, as the broker wrote it; None where it did not."""
    try:
        stamp = parse_broker_metadata(entry)
    except EntryError:  # a producer may send what looks like one
        return None
    return stamp.index if stamp is not None and stamp.HasField("index") else None
