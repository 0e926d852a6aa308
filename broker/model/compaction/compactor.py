"""The two-phase compaction engine, which keeps the latest message of each key, and the protocols of engines.

The first phase reads the topic up to its end, and notes the position of the latest message of each key. The second one
reads again, and keeps an entry whose position is noted. A message without a key is kept, and an empty payload deletes
its key. A batch is kept with the messages that are latest of their keys, and has the others' metadata, as in Pulsar.

What was kept is a ledger of its own, in the order of positions and with the original ones. It counts up to a horizon:
readers with readCompacted read it first, and then the topic behind the horizon. The topic's entries stay until they are
trimmed, for all others. A run that is interrupted changes nothing: the new ledger counts when it is named
(`record.py`).

Memory is bounded. Positions of keys beyond `KEY_MEMORY` wait in a temporary file (`waiting.py`), so a topic is read
twice however many keys it has.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

import trio

from pulsarium.broker.logs import PartLog
from pulsarium.broker.model.compaction.compacted import CompactionOf
from pulsarium.broker.model.compaction.latest import LatestMessages, RetainedOfBatch
from pulsarium.broker.model.compaction.raw import RawMessage, RawReader, each
from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.stores import Stores
from pulsarium.broker.model.policy.policies import Policies
from pulsarium.broker.storage.interface import DamagedEntriesError
from pulsarium.proto.compaction import open_entry
from pulsarium.proto.entry import strip_broker_metadata
from pulsarium.proto.topic_name import TopicName

log = PartLog("compaction")
T = TypeVar("T")

KEY_MEMORY = 512 << 20
"""Bytes of memory for keys, enough for about three million."""

READ_BATCH = 100  # entries of one read
Steps = Iterator[bool]
"""The steps of the work. Other work may run between two steps. True means: wait for `ready()` before the next step.

The broker closes a generator when it gives up the run, so that a `finally` can end the engine's work elsewhere."""


class Writer(Protocol):
    """Receive the entries that an engine retains, in the order of positions."""

    removed: int
    """The number of messages that were not retained, for stats."""

    def write(self, position: Position, entry: bytes) -> None: ...


class Compactable(Protocol):
    """The topic, as its compaction sees it."""

    name: TopicName
    policies: Policies

    @property
    def compaction(self) -> CompactionOf: ...

    @property
    def ledger(self) -> ManagedLedger: ...

    @property
    def stores(self) -> Stores: ...

    @property
    def compactor(self) -> Compactor | None:
        """Return the compaction engine that this broker was started with, or None."""
        ...

    def now_ms(self) -> int: ...

    def trim_soon(self) -> None: ...


class Compactor(Protocol):
    """An engine. Other packages provide engines as entry points (`compaction.py`)."""

    def create_raw_reader(self, topic: Compactable) -> RawReader:
        """Return the reader of the topic for this engine."""
        ...

    def compact(self, reader: RawReader, writer: Writer, ready: Callable[[], None], *, retain_null_key: bool) -> Steps:
        """Write the retained entries of a topic. The engine passes `ready` to the reader's `read`, on any thread."""
        ...


def in_thread(work: Callable[[], T], ready: Callable[[], None]) -> Generator[bool, None, T]:
    """Do work in a thread, as steps that wait for its end. Return its result, or raise its error."""
    ended: list[Any] = []  # the outcome

    def end(outcome: Any) -> None:
        ended.append(outcome)
        ready()

    trio.lowlevel.start_thread_soon(work, end)
    while not ended:
        yield True
    result: T = ended[0].unwrap()
    return result


class TwoPhaseCompactor:
    """Read a topic twice: to find the latest message of each key, and to write these messages.

    Keys that need more memory than `key_memory` wait in a temporary file. Beside the keys, a message needs 1 byte of
    memory, and an entry 4.
    """

    def __init__(self, *, key_memory: str | int = KEY_MEMORY) -> None:
        """Take the memory of the keys in bytes. Raise `ValueError` for a value that is no number of at least 1."""
        if not str(key_memory).isdigit() or int(key_memory) < 1:
            raise ValueError(f"key-memory must be a number of bytes of at least 1, not {key_memory}")
        self._key_memory = int(key_memory)

    def create_raw_reader(self, topic: Compactable) -> RawReader:
        return topic.compaction.raw_reader()

    def compact(self, reader: RawReader, writer: Writer, ready: Callable[[], None], *, retain_null_key: bool) -> Steps:
        latest = LatestMessages(retain_null_key=retain_null_key, key_memory=self._key_memory)
        try:
            for message in each(reader, ready):
                if message is not None:
                    opened = open_entry(message.entry)
                    if opened is not None and opened.takes_long:
                        yield from in_thread(partial(getattr, opened, "messages"), ready)
                    for _ in latest.add(opened):
                        yield False
                yield message is None
            for _ in latest.decide():
                yield False
        finally:
            latest.close()
        writer.removed = latest.removed
        for message in each(reader, ready):
            if message is not None:
                entry = latest.left_of(message)
                if isinstance(entry, RetainedOfBatch):
                    entry = (yield from in_thread(entry.entry, ready)) if entry.opened.takes_long else entry.entry()
                if entry is not None:
                    writer.write(message.position, entry)
            yield message is None
        latest.check()


class TopicReader:
    """Read what the last compaction retained, and then the entries behind its horizon."""

    def __init__(self, topic: Compactable) -> None:
        self.last = topic.ledger.max_read
        self._ledger = topic.ledger
        self._compacted = topic.compaction.compacted
        self._topic, self._config = topic.name, topic.stores.config
        self.rewind()

    def rewind(self) -> None:
        self._position = Position(-1, -1)
        self._in_compacted = self._compacted.horizon is not None

    def read(self, ready: Callable[[], None]) -> list[RawMessage] | None:
        if self._in_compacted:
            found = self._compacted.read(self._position, READ_BATCH, ready)
            if found is None:
                return None
            if found:
                last = found[-1][0]
                self._position = Position(last.ledger_id, last.entry_id + 1)
                return [RawMessage(*each) for each in found]
            assert self._compacted.horizon is not None
            self._in_compacted, horizon = False, self._compacted.horizon
            self._position = Position(horizon.ledger_id, horizon.entry_id + 1)
        return self._read_topic(ready)

    def _read_topic(self, ready: Callable[[], None]) -> list[RawMessage] | None:
        found: list[RawMessage] = []
        while not found:
            start = self._ledger.next(Position(self._position.ledger_id, self._position.entry_id - 1))
            if start > self.last:
                break
            try:
                entries = self._ledger.read(start, READ_BATCH, ready)
            except DamagedEntriesError as error:
                if not self._config.autoSkipNonRecoverableData:
                    raise
                log.warning("damaged entries are not compacted", topic=self._topic, reason=error)
                self._position = Position(error.ledger_id, error.last + 1)
                continue
            if entries is None:
                return None
            ledger_id, first = start
            if ledger_id == self.last.ledger_id:
                entries = entries[: self.last.entry_id + 1 - first]
            self._position = Position(ledger_id, first + len(entries))
            found = list(self._shown(ledger_id, first, entries))
        return found

    def _shown(self, ledger_id: int, first: int, entries: Sequence[bytes]) -> Iterator[RawMessage]:
        """Yield the entries that Pulsar's reader sees, without those of aborted transactions."""
        transactions, exposes = self._ledger.transactions, self._config.exposingBrokerEntryMetadataToClientEnabled
        for number, entry in enumerate(entries, first):
            position = Position(ledger_id, number)
            if not transactions.hides(position, entry):
                yield RawMessage(position, entry if exposes else strip_broker_metadata(entry))
