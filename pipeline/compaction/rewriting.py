"""Write the rest of a chunk after compaction: the second half of the work in Spark's workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pulsarium.pipeline.compaction.chunks import (
    ENTRIES,
    ENTRY_MASK,
    ENTRY_SHIFT,
    IN,
    INDEX_MASK,
    INDEX_SHIFT,
    KEY,
    OUT,
    CompactionTask,
    Format,
    format_of,
    read,
    write,
)
from pulsarium.proto.compaction import rewrite

Places = np.ndarray[Any, np.dtype[np.int64]]

SUMMARY = "entries long, keys long"
NO_PLACE = -1
"""Place of one extra row per chunk, so that a chunk without any remaining key is written too."""


def rewrite_chunks(batches: Iterable[pa.RecordBatch], work: CompactionTask) -> Iterator[pa.RecordBatch]:
    """Write out-N.arrow for each chunk, and yield a SUMMARY of each.

    For mapInArrow over rows of (chunk, place), with all rows of a chunk together.
    """
    table = pa.Table.from_batches(list(batches), pa.schema([("chunk", pa.int64()), ("place", pa.int64())]))
    chunks, places = table["chunk"].to_numpy(), table["place"].to_numpy()
    for chunk in np.unique(chunks):
        own = places[(chunks == chunk) & (places != NO_PLACE)]
        entries = rewrite_chunk(work, int(chunk), own)
        yield pa.RecordBatch.from_pydict({"entries": [entries], "keys": [len(own)]})


def rewrite_chunk(work: CompactionTask, chunk: int, places: Places) -> int:
    """Write the messages at these places and those without a key, and return the number of entries."""
    rows = (batch.filter(pc.is_null(batch.column("key"))) for batch in read(work.path(KEY, chunk)))
    keyless = [batch.column("place").to_numpy() for batch in rows]
    left = RemainingEntries(np.sort(np.concatenate([places, *keyless])), format_of(work.format))
    write(work.path(OUT, chunk), ENTRIES, left.of(read(work.path(IN, chunk))))
    return len(left.numbers)


class RemainingEntries:
    """The remaining entries of a chunk and their messages, from sorted places."""

    def __init__(self, places: Places, shape: Format | None) -> None:
        indexes = (places >> INDEX_SHIFT & INDEX_MASK) - 1
        self.numbers, starts = np.unique(places >> ENTRY_SHIFT & ENTRY_MASK, return_index=True)
        self._indexes = np.split(indexes, starts[1:])
        self._of_batch = indexes[starts] >= 0
        self._format = shape

    def of(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the entries of out-N.arrow from those of in-N.arrow. Entries that stay whole are not parsed."""
        first = 0
        for batch in batches:
            begin, end = np.searchsorted(self.numbers, [first, first + batch.num_rows])
            if begin < end:
                taken = batch.take(pa.array(self.numbers[begin:end] - first))
                yield self._rewritten(taken, begin, end)
            first += batch.num_rows

    def _rewritten(self, taken: pa.RecordBatch, begin: int, end: int) -> pa.RecordBatch:
        of_batch = self._of_batch[begin:end]
        if self._format is None and not of_batch.any():
            return taken
        data = taken.column("data").to_pylist()
        for row in range(len(data)) if self._format is not None else np.flatnonzero(of_batch):
            data[row] = self._left_of(data[row], begin + int(row))
        return taken.set_column(2, ENTRIES.field("data"), pa.array(data, pa.large_binary()))

    def _left_of(self, entry: bytes, at: int) -> bytes:
        shape = self._format
        if shape is not None:
            entry = shape.to_batch(entry)
        if self._of_batch[at]:
            rewritten = rewrite(entry, set(self._indexes[at].tolist()))
            assert rewritten is not None, "the entry was parsed before"
            entry = rewritten
        return entry if shape is None else shape.to_values(entry)
