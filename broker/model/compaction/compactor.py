"""The two-phase compaction engine, which keeps the latest message of each key, and the protocols of engines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

from pulsarium.broker.model.compaction.raw import RawMessage, RawReader, each
from pulsarium.broker.model.ledger.position import Position
from pulsarium.proto.compaction import Keyed, open_entry

if TYPE_CHECKING:
    from pulsarium.broker.model.compaction.compaction import Compaction
    from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger
    from pulsarium.broker.model.ledger.stores import Stores
    from pulsarium.broker.model.policy.policies import Policies
    from pulsarium.proto.topic_name import TopicName

ENTRY_BITS, INDEX_BITS = 32, 28  # of an entry id, and of a batch index
INDEX_MASK = (1 << INDEX_BITS) - 1

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
    compaction: Compaction

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
        """Return the reader of the topic for this engine (S429-26)."""
        ...

    def compact(self, reader: RawReader, writer: Writer, ready: Callable[[], None], *, retain_null_key: bool) -> Steps:
        """Write the retained entries of a topic. The engine passes `ready` to the reader's `read`, on any thread."""
        ...


class TwoPhaseCompactor:
    """Read a topic twice: first to find the latest message of each key, then to write these messages.

    Memory grows with the keys that have a value.
    """

    def create_raw_reader(self, topic: Compactable) -> RawReader:
        return topic.compaction.raw_reader()

    def compact(self, reader: RawReader, writer: Writer, ready: Callable[[], None], *, retain_null_key: bool) -> Steps:
        latest = Latest(retain_null_key=retain_null_key)
        for message in each(reader, ready):
            if message is not None:
                latest.learn(message)
            yield message is None
        writer.removed = latest.removed
        for _ in latest.learned():
            yield False
        for message in each(reader, ready):
            if message is not None:
                entry = latest.left_of(message)
                if entry is not None:
                    writer.write(message.position, entry)
            yield message is None


class Latest:
    """Places of the latest message of each key.

    A place is an int of ledger id, entry id and batch index, which takes a third of the memory of a tuple.
    """

    def __init__(self, *, retain_null_key: bool) -> None:
        self.removed = 0
        self._retain_null_key = retain_null_key
        self._place_of: dict[bytes, int] = {}
        self._whole: set[int] = set()  # entries that are retained unchanged
        self._batches: set[int] = set()  # batches that may retain some messages

    def learn(self, message: RawMessage) -> None:
        """Note the keys of the next entry."""
        opened = open_entry(message.entry)
        if opened is None:
            self.removed += 1
            return
        entry = _entry(message.position)
        if opened.messages is None:
            self._whole.add(entry)
            return
        places = self._place_of
        for found in opened.messages:
            if found.key is None:  # S429-29
                if self._retain_null_key:
                    self._keep(entry, found.batch_index + 1)
                else:
                    self.removed += 1
            elif found.has_value:
                self.removed += found.key in places
                places[found.key] = _place(entry, found)
            else:
                places.pop(found.key, None)
                self.removed += 1

    def learned(self) -> Iterator[None]:
        """Prepare the second phase after the last entry, in steps."""
        for place in self._place_of.values():
            self._keep(place >> INDEX_BITS, place & INDEX_MASK)
            yield

    def _keep(self, entry: int, index: int) -> None:
        (self._batches if index else self._whole).add(entry)

    def left_of(self, message: RawMessage) -> bytes | None:
        """Return the retained part of an entry, or None."""
        entry = _entry(message.position)
        if entry in self._whole:
            return message.entry
        opened = open_entry(message.entry) if entry in self._batches else None
        if opened is None:
            return None
        stays = [found.batch_index for found in opened.messages or () if self._stays(entry, found)]
        return opened.rewritten(stays)

    def _stays(self, entry: int, message: Keyed) -> bool:
        if message.key is None:
            return self._retain_null_key
        return self._place_of.get(message.key) == _place(entry, message)


def _entry(position: Position) -> int:
    return position.ledger_id << ENTRY_BITS | position.entry_id


def _place(entry: int, message: Keyed) -> int:
    return entry << INDEX_BITS | message.batch_index + 1
