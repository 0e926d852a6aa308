"""The transaction buffer of a topic, which holds messages back until the end of their transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Protocol

from pulsarium.broker.model.errors import NotAllowedError, PersistenceError, TopicTerminatedError
from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger, PendingPublish
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.stores import Stores
from pulsarium.broker.model.transaction.record import BufferRecord, PublishedEntries
from pulsarium.proto.entry import build, txn_bits_of, with_txn_bits
from pulsarium.proto.errors import EntryError
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import TxnId
from pulsarium.proto.numbers import NO_SEQUENCE

TXN_COMMIT = 21  # PulsarMarkers.proto, MarkerType
TXN_ABORT = 22
NO_MESSAGE = b""
FAILED = "The topic failed to store messages: look it up again"
MOST_OVERDUE = 100  # transactions that one end aborts, because the low watermark has passed them; Pulsar aborts one
ONE_MESSAGE = 1  # messages of a marker; with `index_per_transactional_entry`, also of any entry of a transaction


def marker(txn: TxnId, *, commit: bool, now_ms: int) -> bytes:
    """Return the entry that ends a transaction on a topic."""
    metadata = pb.MessageMetadata(
        producer_name="pulsar.txn.marker",
        sequence_id=NO_SEQUENCE,
        publish_time=now_ms,
        marker_type=TXN_COMMIT if commit else TXN_ABORT,
        txnid_most_bits=txn.most,
        txnid_least_bits=txn.least,
    )
    return build(metadata, NO_MESSAGE)


def naming(entry: bytes, txn: TxnId) -> bytes:
    """Return the entry with `txn` in its metadata. The Go client names the transaction only in SEND."""
    try:
        return entry if txn_bits_of(entry) == txn else with_txn_bits(entry, *txn)
    except EntryError:
        return entry


class PublishedTo(Protocol):
    """The topic, as its buffer sees it."""

    @property
    def ledger(self) -> ManagedLedger: ...

    @property
    def stores(self) -> Stores: ...

    def now_ms(self) -> int: ...

    def append(self, pending: PendingPublish) -> Position: ...


@dataclass(frozen=True, slots=True)
class TransactionBufferStats:
    """Stats of a transaction buffer: times in milliseconds, or 0, and `low_watermarks` by coordinator."""

    state: str
    max_read_position: Position
    last_snapshot_ms: int
    low_watermarks: dict[int, int]
    ongoing: int
    aborted: int
    recover_start_ms: int
    recover_end_ms: int


@dataclass(frozen=True, slots=True)
class TransactionInBufferStats:
    """Stats of a transaction in a buffer. `start` is its first entry, while the transaction is open."""

    start: Position | None
    aborted: bool


class TransactionBuffer:
    """The transaction buffer of a loaded topic.

    Entries and markers are appended; `BufferRecord` stores the transactions. A segment of a scalable topic has no
    markers (PIP-473).

    The broker accepts messages of ended or unknown transactions. It hides them when the transaction was
    aborted, and else holds them back until a low watermark declares the transaction ended.
    """

    def __init__(self, topic: PublishedTo, record: BufferRecord, *, marks: bool = True) -> None:
        self.committed = 0  # since the topic was loaded
        self.aborted = 0
        self._topic = topic
        self._record = record
        self._marks = marks
        self._entries = topic.ledger.transactions
        self._low_watermarks: dict[int, int] = {}  # by coordinator: transactions up to this number have ended
        self._loaded_ms = topic.now_ms()
        self._one_index = topic.stores.profile.index_per_transactional_entry
        self._names_transaction = topic.stores.profile.transaction_by_send
        self._sent: PublishedEntries | None = (
            None  # the last one, because entries of one transaction usually follow each other
        )

    @property
    def ongoing(self) -> int:
        """Return the number of open transactions on this topic."""
        return len(self._entries.ongoing)

    # publishing

    def publish(self, txn: TxnId, pending: PendingPublish) -> None:
        """Append an entry that consumers see after the commit of the transaction.

        Raise `NotAllowedError` after its end.
        """
        if txn.least <= self._low_watermarks.get(txn.most, txn.least - 1):
            raise NotAllowedError(f"Transaction [{txn}] has been ended. Please use a new transaction to send message.")
        sent = self._sent
        if sent is None or sent.txn != txn or sent.publication is not pending.publication:
            sent = self._sent = PublishedEntries(self._record, txn, pending.publication)
        pending.publication = sent
        if self._one_index:
            pending.messages = ONE_MESSAGE
        if self._names_transaction:
            pending.entry = naming(pending.entry, txn)
        self._record.published(txn, self._topic.append(pending))

    # ending

    def end(self, txn: TxnId, *, commit: bool, low_watermark: int) -> None:
        """End a transaction, as `Participant.end` does, by appending a marker.

        An abort needs no marker on a topic that has never had an entry of a transaction. A terminated topic takes no
        marker, so the end is only noted there.
        """
        if commit or self._record.is_used:
            self._end(txn, commit=commit)
        reached = max(low_watermark, self._low_watermarks.get(txn.most, low_watermark))
        self._low_watermarks[txn.most] = reached
        for first in list(islice(self._record.noted.ongoing, MOST_OVERDUE)):
            if first.least > self._low_watermarks.get(first.most, first.least - 1):
                break
            self._end(first, commit=False)

    def _end(self, txn: TxnId, *, commit: bool) -> None:
        topic = self._topic
        if not self._marks:
            if topic.ledger.fenced:
                raise PersistenceError(FAILED)
            last = topic.ledger.last_appended or topic.ledger.last_confirmed
            self._end_without_marker(txn, last, commit=commit)
            return
        try:
            entry = marker(txn, commit=commit, now_ms=topic.now_ms())
            position = topic.append(PendingPublish(_End(self, txn, commit=commit), entry, messages=ONE_MESSAGE))
        except TopicTerminatedError:
            self._end_without_marker(txn, topic.ledger.terminated or topic.ledger.last_confirmed, commit=commit)
        else:
            self._record.ended(txn, position, commit=commit)

    def _end_without_marker(self, txn: TxnId, last: Position, *, commit: bool) -> None:
        self._topic.stores.turn.after_commit(partial(self.ended_without_marker, txn, last, commit=commit))
        self._record.ended(txn, last, commit=commit)

    def ended(self, txn: TxnId, position: Position, *, commit: bool) -> None:
        """Confirm the end of a transaction after its commit."""
        self._record.confirm_ended(txn, position, commit=commit)
        if commit:
            self.committed += 1
        else:
            self.aborted += 1

    def failed(self) -> None:
        self._record.take_back()
        self._low_watermarks.clear()  # the watermarks may belong to ends that failed

    def ended_without_marker(self, txn: TxnId, position: Position, error: Exception | None, *, commit: bool) -> None:
        """Confirm an end without a marker, or take it back. Tell consumers, because no appended entry does."""
        if error is not None:
            self.failed()
            return
        self.ended(txn, position, commit=commit)
        self._topic.ledger.listener.confirmed()

    # stats

    def stats(self) -> TransactionBufferStats:
        ledger, held = self._topic.ledger, self._entries.held_at
        return TransactionBufferStats(
            state="Ready" if self._record.snapshot_ms else "NoSnapshot",
            max_read_position=ledger.last_confirmed if held is None else ledger.previous(held),
            last_snapshot_ms=self._record.snapshot_ms,
            low_watermarks=dict(self._low_watermarks),
            ongoing=self.ongoing,
            aborted=len(self._entries.aborted),
            recover_start_ms=self._loaded_ms,
            recover_end_ms=self._loaded_ms,
        )

    def stats_of(self, txn: TxnId) -> TransactionInBufferStats:
        return TransactionInBufferStats(self._entries.ongoing.get(txn), txn in self._entries.aborted)


class _End:
    """The publication of a marker."""

    def __init__(self, buffer: TransactionBuffer, txn: TxnId, *, commit: bool) -> None:
        self._buffer = buffer
        self._txn = txn
        self._commit = commit

    def persisted(self, entries: Sequence[PendingPublish]) -> None:
        self._buffer.ended(self._txn, entries[-1].position, commit=self._commit)

    def failed(self, entries: Sequence[PendingPublish], error: Exception) -> None:
        self._buffer.failed()

    def forgotten(self, entries: Sequence[PendingPublish]) -> None:
        self.persisted(entries)
