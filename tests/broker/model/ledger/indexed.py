"""Ledgers whose entries have message indexes, and lookups of these indexes."""

from __future__ import annotations

from pulsarium.broker.cluster import Cluster
from pulsarium.broker.model.ledger.interceptors import EntryStamps, find_index
from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.sequence import read_through
from pulsarium.proto.entry import with_broker_metadata
from tests.broker.model.stores import NAME, append, cluster_of
from tests.broker.wire import batch_of, plain

INTERCEPTORS = tuple(
    f"org.apache.pulsar.common.intercept.Append{what}MetadataInterceptor" for what in ("BrokerTimestamp", "Index")
)
MARKER = plain(b"", marker_type=20)


def entry_of(messages: int) -> bytes:
    """Return an entry of so many messages: a marker for 0, a plain message for 1, and otherwise a batch."""
    if not messages:
        return MARKER
    return plain(b"x") if messages == 1 else batch_of(*[b"x"] * messages)


class Indexed:
    """A managed ledger that gives a message index to each appended entry."""

    def __init__(self) -> None:
        self.cluster: Cluster = cluster_of(brokerEntryMetadataInterceptors=INTERCEPTORS)
        self.ledger = ManagedLedger(NAME, self.cluster)
        self._stamps = EntryStamps(self.cluster.config, self.cluster.clock)
        self.looks = 0

    def append(self, *counts: int) -> list[Position]:
        """Append an entry for each count of messages, and return the positions. A marker (0) takes an index too."""
        append(self.ledger, self.cluster, *[self.stamped(entry_of(count), max(count, 1)) for count in counts])
        ledger_id, last = self.ledger.last_confirmed
        return [Position(ledger_id, last - len(counts) + 1 + number) for number in range(len(counts))]

    def stamped(self, entry: bytes, messages: int = 1) -> bytes:
        return with_broker_metadata(entry, self._stamps.next(messages))

    def trim(self, ledgers: int) -> list[int]:
        """Delete up to `ledgers` of the first ledgers, but never the last one, and return their ids."""
        gone = list(self.ledger.ledgers.values())[:-1][:ledgers]
        self.ledger.truncate(gone, lambda last: None)
        self.cluster.turn.finish()
        return [ledger.id for ledger in gone]

    def roll(self) -> None:
        """Begin a new ledger for the next entries."""
        self.ledger.reopen()

    def find(self, index: int, *, as_released: bool = False) -> Position | None:
        self.looks = 0
        return read_through(find_index(self.ledger, index, as_released=as_released), self._look)

    def _look(self, position: Position) -> bytes:
        self.looks += 1
        return self.ledger.read_now(position)
