"""Find the last message of each key in a chunk: the first half of the work in Spark's workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from pulsarium.pipeline.compaction.chunks import (
    ENTRY_SHIFT,
    HAS_VALUE,
    IN,
    KEY,
    KEYS,
    CompactionTask,
    entry_place,
    format_of,
    message_bits,
    read,
    write,
)
from pulsarium.proto.compaction import open_entry

ROWS = 16384

SUMMARY = "removed long, with_value long, begin_empty long"


class KeysOf:
    """Last messages of a chunk's keys, collected entry by entry."""

    def __init__(self, chunk: int, *, retain_null_key: bool) -> None:
        self.removed = 0
        """Number of messages that this chunk alone removes, as Pulsar counts them."""
        self.stays: list[int] = []
        """Places of retained messages without a key, and of entries that cannot be parsed and stay whole."""
        self.last: dict[bytes, int] = {}
        self.begin_empty: set[bytes] = set()
        """Keys whose first message in the chunk has no value."""
        self._first = entry_place(chunk, 0)
        self._retain_null_key = retain_null_key

    def learn(self, number: int, entry: bytes) -> None:
        """Add the entry with this number."""
        opened = open_entry(entry)
        if opened is None:
            self.removed += 1
            return
        place = self._first + (number << ENTRY_SHIFT)
        if opened.messages is None:
            self.stays.append(place | HAS_VALUE)
            return
        last = self.last
        for index, key, has_value in opened.messages:
            at = place | message_bits(index, has_value)
            if key is None:
                if self._retain_null_key:
                    self.stays.append(at | HAS_VALUE)
                else:
                    self.removed += 1
                continue
            before = last.get(key)
            if not has_value:
                self.removed += 1
                if before is None:
                    self.begin_empty.add(key)
            elif before is not None:
                self.removed += before & HAS_VALUE
            last[key] = at

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all keys and places, for keys-N.arrow."""
        rows: list[tuple[bytes | None, int]] = [*self.last.items(), *((None, place) for place in self.stays)]
        for start in range(0, len(rows), ROWS):
            keys, places = zip(*rows[start : start + ROWS], strict=True)
            begins = [key in self.begin_empty for key in keys] if self.begin_empty else [False] * len(keys)
            yield pa.record_batch([pa.array(keys, pa.binary()), places, begins], schema=KEYS)

    @property
    def with_value(self) -> int:
        """Return how many keys have a value at the end."""
        return sum(place & HAS_VALUE for place in self.last.values())


def open_chunks(batches: Iterable[pa.RecordBatch], work: CompactionTask) -> Iterator[pa.RecordBatch]:
    """Write keys-N.arrow for each chunk, and yield a SUMMARY of each. For mapInArrow over the numbers of chunks."""
    for chunk in _numbers(batches):
        found = open_chunk(work, chunk)
        counts = {
            "removed": [found.removed],
            "with_value": [found.with_value],
            "begin_empty": [len(found.begin_empty)],
        }
        yield pa.RecordBatch.from_pydict(counts)


def open_chunk(work: CompactionTask, chunk: int) -> KeysOf:
    """Read in-N.arrow, write keys-N.arrow, and return the keys."""
    found = KeysOf(chunk, retain_null_key=work.retain_null_key)
    shape = format_of(work.format)
    number = 0
    for batch in read(work.path(IN, chunk)):
        entry_place(chunk, number + batch.num_rows - 1)  # raises OverflowError for too many entries
        for entry in batch.column("data").to_pylist():
            found.learn(number, entry if shape is None else shape.to_batch(entry))
            number += 1
    write(work.path(KEY, chunk), KEYS, found.batches())
    return found


def keys_of_chunks(batches: Iterable[pa.RecordBatch], work: CompactionTask) -> Iterator[pa.RecordBatch]:
    """Yield the rows of keys-N.arrow that have a key. For mapInArrow over the numbers of chunks."""
    for chunk in _numbers(batches):
        for batch in read(work.path(KEY, chunk)):
            yield batch.filter(pc.is_valid(batch.column("key")))


def _numbers(batches: Iterable[pa.RecordBatch]) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(0).to_pylist()
