"""Files between broker and Spark: Arrow's IPC files in a shared folder, a set for each chunk of a topic.

in-N.arrow    entries with their positions, as the broker read them; written by the broker
keys-N.arrow  the last place of each key in the chunk, and the places that stay without a key (the key is null)
out-N.arrow   the rest of in-N after compaction, in its order

The place of a message in the compacted topic is one number of 63 bits. A later message has a greater place.

    chunk (18) | entry in it (19) | index in its batch + 1 (25), 0 for none | has a value (1)

Spark takes the greatest place of each key, which is one comparison of integers. The result's last bit says whether the
key stays. Entries are written in Pulsar's format, or in another one, as PIP-429 allows. A folder is deleted with its
compaction. The next compaction deletes the folder of a broker that was killed.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, Protocol, cast
from uuid import uuid4

import pyarrow as pa

from pulsarium.proto import compacted_values

CHUNK_BITS, ENTRY_BITS, INDEX_BITS = 18, 19, 25
MOST_CHUNKS, MOST_ENTRIES = 1 << CHUNK_BITS, 1 << ENTRY_BITS
HAS_VALUE = 1
INDEX_SHIFT = 1
ENTRY_SHIFT = INDEX_SHIFT + INDEX_BITS
CHUNK_SHIFT = ENTRY_SHIFT + ENTRY_BITS
INDEX_MASK, ENTRY_MASK = (1 << INDEX_BITS) - 1, MOST_ENTRIES - 1


def entry_place(chunk: int, entry: int) -> int:
    """Return the place of an entry as a whole. Raise `OverflowError` when a number is too large."""
    if not 0 <= chunk < MOST_CHUNKS:
        raise OverflowError(f"chunk {chunk}: a topic has at most {MOST_CHUNKS} chunks: raise the option chunk-bytes")
    if not 0 <= entry < MOST_ENTRIES:
        raise OverflowError(f"entry {entry} of chunk {chunk}: a chunk has at most {MOST_ENTRIES} entries")
    return chunk << CHUNK_SHIFT | entry << ENTRY_SHIFT


def message_bits(batch_index: int, has_value: bool) -> int:
    """Return the bits that a message adds to the place of its entry.

    `batch_index` is -1 for a message outside a batch. Raise `OverflowError` when it is too large.
    """
    if not -1 <= batch_index < INDEX_MASK:
        raise OverflowError(
            f"message {batch_index} of a batch: compaction supports at most {INDEX_MASK} messages in a batch"
        )
    return batch_index + 1 << INDEX_SHIFT | has_value


log = logging.getLogger("pulsarium.compaction")

PREFIX = "pulsarium-compaction-"
LOCK = "lock"
SHORTLY = 0.01


@contextmanager
def work_folder(parent: Path) -> Iterator[Path]:
    """Yield a new folder that only this user can read, and delete the folder at the end.

    A lock file marks the folder as in use.
    """
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    try:
        unlocked = folder / f"{LOCK}.new"
        with unlocked.open("wb") as lock:
            with suppress(OSError):  # on a file system without locks nobody may remove the folder
                fcntl.flock(lock, fcntl.LOCK_EX)
                unlocked.rename(folder / LOCK)  # the lock file has its name only once it is locked
            yield folder
    finally:
        remove(folder)


def remove_abandoned(parent: Path) -> Iterator[Path]:
    """Remove the folders of killed brokers, and yield each.

    The lock of such a folder is free.
    """
    for lock in parent.glob(f"{PREFIX}*/{LOCK}"):
        with suppress(OSError), lock.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove(lock.parent)
            yield lock.parent


def remove(folder: Path) -> None:
    """Remove a folder that a process may still write to for a moment.

    The lock is removed last, so that the folder stays recognizable.
    """
    for _ in range(20):
        for each in _inside(folder):
            if each.is_dir():
                shutil.rmtree(each, ignore_errors=True)
            elif each.name != LOCK:
                with suppress(OSError):
                    each.unlink()
        if all(each.name == LOCK for each in _inside(folder)):
            shutil.rmtree(folder, ignore_errors=True)
            return
        time.sleep(SHORTLY)
    log.warning("compaction on Spark: could not remove %s: delete it", folder)


def _inside(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


PULSAR, VALUES = "pulsar", "values"


class Format(Protocol):
    """A module or an object that converts entries from Pulsar's format to its own, and back.

    Both functions return entries of other formats unchanged.
    """

    def to_values(self, entry: bytes) -> bytes:
        """Return an entry of a compacted ledger in this format."""
        ...

    def to_batch(self, entry: bytes) -> bytes:
        """Return the entry in Pulsar's format, for the next compaction."""
        ...


def format_of(name: str) -> Format | None:
    """Return the format of this name, or None for `pulsar`, which needs no conversion.

    Other names are `values`, `module` and `module:object`. Raise `ValueError` for an unknown format.
    """
    if name == PULSAR:
        return None
    if name == VALUES:
        return cast(Format, compacted_values)
    module, _, attribute = name.partition(":")
    try:
        found = import_module(module)
        made = getattr(found, attribute) if attribute else found
    except (ImportError, AttributeError) as error:
        raise ValueError(f"format must be {PULSAR}, {VALUES} or module:object, not {name}: {error}") from error
    if not (hasattr(made, "to_values") and hasattr(made, "to_batch")):
        raise ValueError(f"format {name} lacks to_values or to_batch")
    return cast(Format, made)


CHUNK_BYTES = 32 << 20
CHUNK_ENTRIES = MOST_ENTRIES // 4  # small entries cost as much as large ones, and more of them would be one long task
BATCH_BYTES = 1 << 20
BATCH_ROWS = 4096

ENTRIES = pa.schema([("ledger", pa.int64()), ("entry", pa.int64()), ("data", pa.large_binary())])
KEYS = pa.schema([("key", pa.binary()), ("place", pa.int64()), ("begins_empty", pa.bool_())])

IN, KEY, OUT = "in", "keys", "out"
_WORK = "work.json"


class Position(Protocol):
    """The position of an entry in its topic."""

    @property
    def ledger_id(self) -> int: ...
    @property
    def entry_id(self) -> int: ...


class EntryPosition(NamedTuple):
    """The position of an entry that was read from a file."""

    ledger_id: int
    entry_id: int


@dataclass(frozen=True)
class CompactionTask:
    """The task of a compaction: its folder and settings. Spark's workers get it with their tasks."""

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
        """Return the finished share of the work, from 0 to 1."""
        names = [name for name in os.listdir(self.folder) if name.endswith(".arrow")]
        done = sum(name.startswith((KEY, OUT)) for name in names)
        return done / (2 * self.chunks) if self.chunks else 1.0

    def save(self) -> None:
        (Path(self.folder) / _WORK).write_text(json.dumps(asdict(self)))

    @staticmethod
    def load(folder: str) -> CompactionTask:
        """Return the work that `save` wrote to a folder."""
        kept = json.loads((Path(folder) / _WORK).read_text())
        return CompactionTask(**{**kept, "config": tuple((key, value) for key, value in kept["config"])})


class Spool:
    """Writer of entries to chunks, in batches of about 1 MB."""

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
        """Add the next entries. Raise `OverflowError` for a topic of too many chunks."""
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
            raise OverflowError(f"the topic does not fit into {MOST_CHUNKS} chunks: raise the option chunk-bytes")
        path = CompactionTask(str(self._folder), 0).path(IN, self.chunks)
        self._file = pa.ipc.new_file(str(path), ENTRIES)
        self.chunks += 1
        self._in_file = self._file_bytes = 0

    def close_file(self) -> None:
        """Close the open file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def close(self) -> None:
        """Write the remaining entries, and close the last file."""
        self._flush()
        self.close_file()


def entries_batch(rows: Iterable[tuple[Position, bytes]]) -> pa.RecordBatch:
    positions, entries = zip(*rows, strict=True)
    ledgers = [each.ledger_id for each in positions]
    numbers = [each.entry_id for each in positions]
    return pa.record_batch([ledgers, numbers, pa.array(entries, pa.large_binary())], schema=ENTRIES)


def read(path: Path) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a file."""
    with pa.OSFile(str(path)) as source:
        file = pa.ipc.open_file(source)
        for number in range(file.num_record_batches):
            yield file.get_batch(number)


def write(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write a whole file, or none.

    Two attempts of a task may race, because both write the same contents.
    """
    temporary = path.with_name(f"{path.name}.{uuid4().hex}")
    try:
        with pa.ipc.new_file(str(temporary), schema) as file:
            for batch in batches:
                file.write_batch(batch)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def positioned(batch: pa.RecordBatch) -> Iterator[tuple[EntryPosition, bytes]]:
    """Yield the entries of a batch with their positions."""
    for ledger_id, entry_id, data in zip(*(column.to_pylist() for column in batch.columns), strict=True):
        yield EntryPosition(ledger_id, entry_id), data
