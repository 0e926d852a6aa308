"""The transaction buffer of a topic: what is published in transactions stands in the topic, and waits for their end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from pulsarium.broker.model.errors import NotAllowedError, TopicTerminatedError
from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger, Pending
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.stores import Stores
from pulsarium.broker.model.transaction.record import BufferRecord, Sent
from pulsarium.proto.entry import build, txn_bits_of, with_txn_bits
from pulsarium.proto.errors import EntryError
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import TxnId

TXN_COMMIT = 21  # PulsarMarkers.proto, MarkerType
TXN_ABORT = 22
NO_SEQUENCE = 2**64 - 1
NO_MESSAGE = b""
ONE_MESSAGE = 1  # that a marker counts for; with `index_per_transactional_entry` any entry of a transaction


def marker(txn: TxnId, *, commit: bool, now_ms: int) -> bytes:
    """The entry that ends a transaction on a topic."""
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
    """The entry as it says itself that it was sent in `txn`: the Go client says that in SEND alone."""
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

    def append(self, pending: Pending) -> Position: ...


@dataclass(frozen=True, slots=True)
class TransactionBufferStats:
    """Times in milliseconds, 0 for never; `low_watermarks` by coordinator."""

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
    """start: its first entry here, while it is open."""

    start: Position | None
    aborted: bool


class TransactionBuffer:
    """Of a topic that is loaded. Entries and markers are appended to it like others; `BufferRecord` keeps the rest.

    What a producer sends in a transaction that is over, or that nobody knows, is taken all the same (cmd 6): behind one
    that was aborted it is passed over, else it is held back until a low watermark says that it is over.
    """

    def __init__(self, topic: PublishedTo, record: BufferRecord) -> None:
        self.committed = 0  # since the topic was loaded
        self.aborted = 0
        self._topic = topic
        self._record = record
        self._entries = topic.ledger.transactions
        self._low_watermarks: dict[int, int] = {}  # by coordinator: its transactions up to this one are over
        self._loaded_ms = topic.now_ms()
        self._one_index = topic.stores.profile.index_per_transactional_entry
        self._names_transaction = topic.stores.profile.transaction_by_send
        self._sent: Sent | None = None  # the last one: most entries come with others of theirs

    @property
    def ongoing(self) -> int:
        """How many transactions are open here."""
        return len(self._entries.ongoing)

    # publishing

    def publish(self, txn: TxnId, pending: Pending) -> None:
        """Take an entry that consumers see once the transaction is committed."""
        if txn.least <= self._low_watermarks.get(txn.most, txn.least - 1):
            raise NotAllowedError(f"Transaction [{txn}] has been ended. Please use a new transaction to send message.")
        sent = self._sent
        if sent is None or sent.txn != txn or sent.publication is not pending.publication:
            sent = self._sent = Sent(self._record, txn, pending.publication)
        pending.publication = sent
        if self._one_index:
            pending.messages = ONE_MESSAGE
        if self._names_transaction:
            pending.entry = naming(pending.entry, txn)
        self._record.published(txn, self._topic.append(pending))

    # ending

    def end(self, txn: TxnId, *, commit: bool, low_watermark: int) -> None:
        """As `Participant.end`: a marker is appended. A topic that nothing was ever sent to in a transaction needs none
        of an abort, and one that is terminated takes none; there the end is only noted."""
        if commit or self._record.is_used:
            self._end(txn, commit=commit)
        reached = max(low_watermark, self._low_watermarks.get(txn.most, low_watermark))
        self._low_watermarks[txn.most] = reached
        while (first := next(iter(self._record.noted.ongoing), None)) is not None:
            if first.least > self._low_watermarks.get(first.most, first.least - 1):
                break
            self._end(first, commit=False)

    def _end(self, txn: TxnId, *, commit: bool) -> None:
        topic = self._topic
        try:
            entry = marker(txn, commit=commit, now_ms=topic.now_ms())
            position = topic.append(Pending(_End(self, txn, commit=commit), entry, messages=ONE_MESSAGE))
        except TopicTerminatedError:
            position = topic.ledger.terminated or topic.ledger.last_confirmed
            topic.stores.turn.after_commit(partial(self.ended_without_marker, txn, position, commit=commit))
        self._record.ended(txn, position, commit=commit)

    def ended(self, txn: TxnId, position: Position, *, commit: bool) -> None:
        """That is kept now."""
        self._record.confirm_ended(txn, position, commit=commit)
        if commit:
            self.committed += 1
        else:
            self.aborted += 1

    def failed(self) -> None:
        self._record.take_back()
        self._low_watermarks.clear()  # they may be of ends that are not kept

    def ended_without_marker(self, txn: TxnId, position: Position, error: Exception | None, *, commit: bool) -> None:
        """That is kept, or could not be; consumers may read further, although nothing was appended."""
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
    """Waits for a marker."""

    def __init__(self, buffer: TransactionBuffer, txn: TxnId, *, commit: bool) -> None:
        self._buffer = buffer
        self._txn = txn
        self._commit = commit

    def persisted(self, entries: Sequence[Pending]) -> None:
        self._buffer.ended(self._txn, entries[-1].position, commit=self._commit)

    def failed(self, entries: Sequence[Pending], error: Exception) -> None:
        self._buffer.failed()

    def forgotten(self, entries: Sequence[Pending]) -> None:
        self.persisted(entries)
