"""Drop messages that a producer sends twice (brokerDeduplicationEnabled)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import islice

from pulsarium.broker.logs import PartLog
from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.cursor.records import CursorProperties
from pulsarium.broker.model.errors import PersistenceError
from pulsarium.broker.model.ledger.managed_ledger import PendingPublish
from pulsarium.broker.model.ledger.position import NOT_STORED
from pulsarium.broker.model.ledger.stores import Stores
from pulsarium.broker.model.topic.producers import Producer
from pulsarium.broker.storage.interface import DamagedEntriesError, StorageError
from pulsarium.proto.entry import parse_metadata
from pulsarium.proto.errors import EntryError
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.numbers import signed
from pulsarium.proto.text import text_of

log = PartLog("topics")


class Deduplication:
    """The highest sequence ids of each producer name: pushed to the managed ledger, and persisted there.

    A durable cursor stores a snapshot: its properties are the ids up to its mark-delete position. The entries behind it
    have the rest. The object stays with the topic's log while the topic is unloaded, because entries may not be stored
    yet.
    """

    def __init__(self, topic: str, cursor: ManagedCursor, stores: Stores, trim_soon: Callable[[], None]) -> None:
        self.cursor = cursor
        self._trim_soon = trim_soon
        self._topic = topic
        self._ledger = cursor.ledger
        self._stores = stores
        self._persisted: dict[str, int] = dict(cursor.properties)
        self._replay()
        self._pushed = dict(self._persisted)
        now = stores.clock.now_ms()
        self._inactive = dict.fromkeys(self._persisted, now)  # when each producer left, in milliseconds since the epoch
        self._watched: dict[str, _Watched] = {}
        self._unfinished: dict[str, int] = {}  # sequence ids of chunked messages, until the last chunk or a snapshot
        self._snapshot_ms = 0
        self.snapshot_when_full()

    def _replay(self) -> None:
        """Recover sequence ids from the entries behind the snapshot."""
        for entry in self._ledger.all_after(self.cursor.mark_delete, self._cannot_learn):
            try:
                metadata = parse_metadata(entry)
            except EntryError:  # the broker accepts entries without reading their metadata
                continue
            if _completes(metadata) or self._stores.profile.chunks_are_duplicates:
                highest = max(signed(metadata.sequence_id), signed(metadata.highest_sequence_id))
                self._persisted[text_of(metadata.producer_name)] = highest

    def reopen(self) -> None:
        """Update the ids for a topic that is loaded again, as a replay of its entries would."""
        if self._stores.profile.chunks_are_duplicates:
            self._persisted |= self._unfinished
            self._pushed |= self._unfinished
            self._unfinished.clear()

    def _cannot_learn(self, error: DamagedEntriesError) -> None:
        """Refuse to load a topic with damaged entries, as Pulsar does.

        With autoSkipNonRecoverableData, only log them.
        """
        if not self._stores.config.autoSkipNonRecoverableData:
            raise StorageError(
                f"{error}: duplicates cannot be detected (autoSkipNonRecoverableData=true loads the topic anyway)"
            ) from error
        log.warning("duplicates of damaged entries will not be detected", topic=self._topic, reason=error)

    # publishing

    def admits(self, producer: Producer, pending: PendingPublish) -> bool:
        """Return whether to store an entry. A stored duplicate is answered at once, and returns False.

        Raise `PersistenceError` for a duplicate of an entry that is not stored yet. All chunks of a message have one
        sequence id, so only the last chunk counts.
        """
        name, lowest = producer.name, signed(pending.sequence_id)
        if pending.is_chunk and not _completes(parse_metadata(pending.entry)):
            self._unfinished[name] = lowest
            return True
        self._unfinished.pop(name, None)
        if lowest <= self._pushed.get(name, lowest - 1):
            if lowest <= self._persisted.get(name, lowest - 1):
                pending.position = NOT_STORED
                producer.persisted([pending])
                return False
            raise PersistenceError(
                f"[{self._topic}][{name}]Cannot determine whether the message is a duplicate at this time"
            )
        self._pushed[name] = max(lowest, signed(pending.highest_sequence_id))
        watched = self._watched.get(name)
        if watched is None or watched.producer is not producer:
            watched = self._watched[name] = _Watched(self, producer)
        pending.publication = watched
        return True

    def last_sequence_id(self, producer_name: str) -> int:
        """Return the highest pushed sequence id, for PRODUCER_SUCCESS, or -1 if it is not known."""
        return self._pushed.get(producer_name, -1)

    def persisted(self, producer_name: str, sequence_id: int) -> None:
        self._persisted[producer_name] = sequence_id

    def take_back(self) -> None:
        """Forget pushed ids after a failed commit, because clients send these messages again."""
        self._pushed = dict(self._persisted)
        self._unfinished.clear()

    # snapshots

    def snapshot_when_full(self) -> None:
        """Take a snapshot after brokerDeduplicationEntriesInterval new entries."""
        if self.cursor.backlog() >= self._stores.config.brokerDeduplicationEntriesInterval:
            self.snapshot()

    def snapshot_when_old(self, interval: int) -> None:
        """Take a snapshot of new entries when the last one is `interval` seconds old. 0 or less is never."""
        is_old = self._stores.clock.now_ms() - self._snapshot_ms >= interval * 1000 > 0
        if is_old and self._ledger.last_confirmed > self.cursor.mark_delete:
            self.snapshot()

    def snapshot(self) -> None:
        """Store the sequence ids as of the last confirmed entry. Ledgers before it are no longer needed.

        This is a persist point.
        """
        self.cursor.ack_cumulative(self._ledger.last_confirmed)
        self._store()

    def _store(self) -> None:
        self._snapshot_ms = self._stores.clock.now_ms()
        self._unfinished.clear()  # a replay begins behind these chunks
        most = self._stores.config.brokerDeduplicationMaxNumberOfProducers
        self.cursor.properties = CursorProperties(islice(self._persisted.items(), most))
        self.cursor.save()
        self._trim_soon()

    # producers that left

    def producer_removed(self, name: str) -> None:
        self._watched.pop(name, None)
        self._inactive[name] = self._stores.clock.now_ms()

    def forget_inactive(self, connected: Collection[str]) -> None:
        """Forget producers that left before brokerDeduplicationProducerInactivityTimeoutMinutes."""
        timeout = self._stores.config.brokerDeduplicationProducerInactivityTimeoutMinutes * 60_000
        before = self._stores.clock.now_ms() - timeout
        gone = [name for name, since in self._inactive.items() if since < before or name in connected]
        for name in gone:
            del self._inactive[name]
        forgotten = [name for name in gone if name not in connected]
        for name in forgotten:
            self._pushed.pop(name, None)
            self._persisted.pop(name, None)
        if forgotten:
            self._store()


class _Watched:
    """Forward the outcome of a producer's entries to the producer and to the deduplication."""

    __slots__ = ("_deduplication", "producer")

    def __init__(self, deduplication: Deduplication, producer: Producer) -> None:
        self._deduplication = deduplication
        self.producer = producer

    def persisted(self, entries: Sequence[PendingPublish]) -> None:
        self._note(entries)
        self.producer.persisted(entries)

    def _note(self, entries: Sequence[PendingPublish]) -> None:
        last = entries[-1]
        highest = max(signed(last.sequence_id), signed(last.highest_sequence_id))
        self._deduplication.persisted(self.producer.name, highest)

    def failed(self, entries: Sequence[PendingPublish], error: Exception) -> None:
        self._deduplication.take_back()
        self.producer.failed(entries, error)

    def forgotten(self, entries: Sequence[PendingPublish]) -> None:
        self._note(entries)
        self.producer.forgotten(entries)


def _completes(metadata: pb.MessageMetadata) -> bool:
    """Return whether an entry is a whole message, or the last chunk of one."""
    return not metadata.HasField("chunk_id") or metadata.chunk_id == metadata.num_chunks_from_msg - 1
