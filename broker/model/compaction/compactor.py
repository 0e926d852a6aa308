"""The two-phase compaction engine, which keeps the latest message of each key, and the protocols of engines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

from pulsarium.broker.model.compaction.latest import Latest
from pulsarium.broker.model.compaction.raw import RawReader, each
from pulsarium.broker.model.ledger.position import Position

if TYPE_CHECKING:
    from pulsarium.broker.model.compaction.compaction import Compaction
    from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger
    from pulsarium.broker.model.ledger.stores import Stores
    from pulsarium.broker.model.policy.policies import Policies
    from pulsarium.proto.topic_name import TopicName

KEY_MEMORY = 512 << 20
"""Bytes of memory for keys, enough for about three million."""

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
        latest = Latest(retain_null_key=retain_null_key, key_memory=self._key_memory)
        try:
            for message in each(reader, ready):
                if message is not None:
                    latest.add(message)
                yield message is None
            for _ in latest.decide():
                yield False
        finally:
            latest.close()
        writer.removed = latest.removed
        for message in each(reader, ready):
            if message is not None:
                entry = latest.left_of(message)
                if entry is not None:
                    writer.write(message.position, entry)
            yield message is None
        latest.check()
