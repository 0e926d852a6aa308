"""The files between broker and Spark, in a folder that both see: Arrow's IPC files, a set for each chunk of a topic.

in-N.arrow    entries with their positions, as the broker read them; written by the broker
keys-N.arrow  the last place of each key in the chunk, and of what stays without one: null as the key
out-N.arrow   what stays of in-N, in its order
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple, Protocol
from uuid import uuid4

import pyarrow as pa

from pulsarium.pipeline.compaction.places import MOST_CHUNKS, MOST_ENTRIES

CHUNK_BYTES = 32 << 20
CHUNK_ENTRIES = MOST_ENTRIES // 4  # small entries cost as large ones do: more of them would be one long task
BATCH_BYTES = 1 << 20
BATCH_ROWS = 4096

ENTRIES = pa.schema([("ledger", pa.int64()), ("entry", pa.int64()), ("data", pa.large_binary())])
KEYS = pa.schema([("key", pa.binary()), ("place", pa.int64()), ("begins_empty", pa.bool_())])

IN, KEY, OUT = "in", "keys", "out"
_WORK = "work.json"


class Position(Protocol):
    """Where an entry stands in its topic."""

    @property
    def ledger_id(self) -> int: ...
    @property
    def entry_id(self) -> int: ...


class Place(NamedTuple):
    """The position of an entry that came back."""

    ledger_id: int
    entry_id: int


@dataclass(frozen=True)
class Work:
    """What is to be done in a folder; goes to Spark's workers with their tasks."""

    folder: str
    chunks: int
    retain_null_key: bool = False
    format: str = "pulsar"
    master: str = "local[*]"
    config: tuple[tuple[str, str], ...] = ()

    def path(self, kind: str, chunk: int) -> Path:
        return Path(self.folder) / f"{kind}-{chunk:06}.arrow"

    @property
    def finished(self) -> float:
        """How much of it is done, from 0 to 1."""
        names = [name for name in os.listdir(self.folder) if name.endswith(".arrow")]
        done = sum(name.startswith((KEY, OUT)) for name in names)
        return done / (2 * self.chunks) if self.chunks else 1.0

    def save(self) -> None:
        (Path(self.folder) / _WORK).write_text(json.dumps(asdict(self)))

    @staticmethod
    def load(folder: str) -> Work:
        """What `save` wrote."""
        kept = json.loads((Path(folder) / _WORK).read_text())
        return Work(**{**kept, "config": tuple((key, value) for key, value in kept["config"])})


class Spool:
    """Writes entries to chunks, in batches of about 1 MB."""

    def __init__(self, folder: Path, *, chunk_bytes: int = CHUNK_BYTES, chunk_entries: int = CHUNK_ENTRIES) -> None:
        self.chunks = 0
        self.entries = 0
        self._folder = folder
        self._limits = chunk_bytes, chunk_entries
        self._file: pa.RecordBatchFileWriter | None = None
        self._in_file, self._file_bytes = 0, 0
        self._rows: list[tuple[Position, bytes]] = []
        self._bytes = 0

    def add(self, found: Iterable[tuple[Position, bytes]]) -> None:
        """The next entries. OverflowError for a topic of too many chunks."""
        before = len(self._rows)
        self._rows += found
        self._bytes += sum(len(entry) for _, entry in self._rows[before:])
        if self._bytes >= BATCH_BYTES or len(self._rows) >= BATCH_ROWS:
            self._flush()

    def _flush(self) -> None:
        most_bytes, most_entries = self._limits
        rows, self._rows = self._rows, []
        while rows:
            if self._file is None:
                self._open()
            assert self._file is not None
            fit, rows = rows[: most_entries - self._in_file], rows[most_entries - self._in_file :]
            self._file.write_batch(entries_batch(fit))
            self._in_file += len(fit)
            self.entries += len(fit)
            self._file_bytes += sum(len(entry) for _, entry in fit)
            if self._file_bytes >= most_bytes or self._in_file >= most_entries:
                self.close_file()
        self._bytes = 0

    def _open(self) -> None:
        if self.chunks >= MOST_CHUNKS:
            raise OverflowError(f"the topic does not fit into {MOST_CHUNKS} chunks")
        path = Work(str(self._folder), 0).path(IN, self.chunks)
        self._file = pa.ipc.new_file(str(path), ENTRIES)
        self.chunks += 1
        self._in_file = self._file_bytes = 0

    def close_file(self) -> None:
        """Let go of the file that is open."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def close(self) -> None:
        """That were all."""
        self._flush()
        self.close_file()


def entries_batch(rows: Iterable[tuple[Position, bytes]]) -> pa.RecordBatch:
    positions, entries = zip(*rows, strict=True)
    ledgers = [each.ledger_id for each in positions]
    numbers = [each.entry_id for each in positions]
    return pa.record_batch([ledgers, numbers, pa.array(entries, pa.large_binary())], schema=ENTRIES)


def read(path: Path) -> Iterator[pa.RecordBatch]:
    """The batches of a file."""
    with pa.OSFile(str(path)) as source:
        file = pa.ipc.open_file(source)
        for number in range(file.num_record_batches):
            yield file.get_batch(number)


def write(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """A whole file or none: of two attempts at a task either's will do, since both write the same."""
    temporary = path.with_name(f"{path.name}.{uuid4().hex}")
    try:
        with pa.ipc.new_file(str(temporary), schema) as file:
            for batch in batches:
                file.write_batch(batch)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def positioned(batch: pa.RecordBatch) -> Iterator[tuple[Place, bytes]]:
    """Entries with their positions again."""
    for ledger_id, entry_id, data in zip(*(column.to_pylist() for column in batch.columns), strict=True):
        yield Place(ledger_id, entry_id), data
