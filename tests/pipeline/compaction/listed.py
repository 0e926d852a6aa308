"""Compact lists of entries with the broker's engine and with the parts of the Spark job, without a broker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pulsarium.broker.model.compaction.compactor import TwoPhaseCompactor
from pulsarium.broker.model.compaction.raw import RawMessage
from pulsarium.broker.model.ledger.position import Position
from pulsarium.pipeline.compaction.chunks import (
    CHUNK_SHIFT,
    HAS_VALUE,
    OUT,
    PULSAR,
    VALUES,
    CompactionTask,
    Spool,
    positioned,
    read,
)
from pulsarium.pipeline.compaction.opening import open_chunk
from pulsarium.pipeline.compaction.rewriting import rewrite_chunk
from pulsarium.proto.compacted_values import to_batch, to_values

Entries = list[tuple[Position, bytes]]


@dataclass
class Listed:
    """A raw reader of a list. Each read returns up to three messages."""

    entries: Entries
    at: int = 0

    @property
    def last(self) -> Position:
        return self.entries[-1][0]

    def read(self, ready: Callable[[], None]) -> list[RawMessage] | None:
        found = [RawMessage(*each) for each in self.entries[self.at : self.at + 3]]
        self.at += len(found)
        return found

    def rewind(self) -> None:
        self.at = 0


@dataclass
class Kept:
    """A writer that keeps compacted entries in a list."""

    entries: Entries = field(default_factory=list)
    removed: int = 0

    def write(self, position: Position, entry: bytes) -> None:
        self.entries.append((Position(*position), entry))


def by_the_broker(entries: Entries, *, retain_null_key: bool, shape: str = PULSAR) -> Kept:
    """Return the entries that the engine in the broker keeps."""
    kept = Kept()
    if shape == VALUES:
        entries = [(position, to_batch(entry)) for position, entry in entries]
    for _ in TwoPhaseCompactor().compact(Listed(entries), kept, lambda: None, retain_null_key=retain_null_key):
        pass
    if shape == VALUES:
        kept.entries = [(position, to_values(entry)) for position, entry in kept.entries]
    return kept


def spool(folder: Path, entries: Entries, chunk_entries: int, **work: bool | str) -> CompactionTask:
    """Write a topic to disk in chunks of `chunk_entries` entries, and return the work of a job."""
    spool = Spool(folder, chunk_entries=chunk_entries)
    for start in range(0, len(entries), 7):
        spool.add(entries[start : start + 7])
    spool.close()
    assert spool.entries == len(entries)
    return CompactionTask(str(folder), spool.chunks, **work)  # type: ignore[arg-type]


def without_spark(work: CompactionTask) -> int:
    """Do the work of the job in this process, key by key. Return the number of removed messages, as Pulsar counts."""
    removed, last = 0, dict[bytes, int]()
    for chunk in range(work.chunks):
        found = open_chunk(work, chunk)
        removed += found.removed
        for key, place in found.last.items():
            replaced = last.get(key, 0) & HAS_VALUE and key not in found.begin_empty
            removed += bool(replaced)
            assert place > last.get(key, -1)
            last[key] = place
    rewrite_all(work, last)
    return removed


def rewrite_all(work: CompactionTask, last: Mapping[bytes, int]) -> None:
    kept = np.array([place for place in last.values() if place & HAS_VALUE], dtype=np.int64)
    np.random.default_rng(1).shuffle(kept)
    for chunk in range(work.chunks):
        rewrite_chunk(work, chunk, kept[kept >> CHUNK_SHIFT == chunk])


def out(work: CompactionTask) -> Entries:
    """Return the entries that the job kept."""
    return [(Position(*where), data) for chunk in range(work.chunks) for where, data in _out(work, chunk)]


def _out(work: CompactionTask, chunk: int) -> Iterator[tuple[tuple[int, int], bytes]]:
    for batch in read(work.path(OUT, chunk)):
        yield from positioned(batch)


def at_positions(entries: Iterable[bytes], ledger_id: int) -> Entries:
    return [(Position(ledger_id, number), entry) for number, entry in enumerate(entries)]


def rounds_of(rounds: Sequence[Sequence[bytes]], compact: Callable[[Entries], Entries]) -> Entries:
    """Compact round after round. Each round is published behind the entries that the last compaction kept."""
    left: Entries = []
    for number, entries in enumerate(rounds):
        left = compact([*left, *at_positions(entries, number)])
    return left
