"""Encode and decode the records of entry log files. One record is one commit.

All numbers are little-endian. `entry_log.py` says how files follow each other.

    file    8s "PULSLOG1", u64 salt, u64 sequence number of the first record, u32 CRC32C of these; then records
    record  4s "PREC", u32 CRC32C of the rest of this head and the notes, u64 sequence number, u32 bytes of notes,
            u32 bytes of rows; then the notes, then the rows
    notes   u32 number of paths, u32 number of deleted ledgers; u32 for each deleted ledger; for each path: u32 bytes of
            the path, i32 bytes of the value (-1: the path is deleted), the path, the value. No notes take no bytes.
    row     u64 ledger id << 32 | first entry id, u32 CRC32C of these and the entries, u32 bytes of the packed entries;
            then the packed entries (`segments.pack`)

The checksum of a head begins with the random salt of its file. So neither the bytes of another file nor those of an
entry can be taken for a record.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pulsarium.broker.storage.segments import Row, checksum_of, count_of
from pulsarium.proto.entry import crc32c

FILE_MAGIC, MAGIC = b"PULSLOG1", b"PREC"
_FILE = struct.Struct("<8sQQI")
_HEAD = struct.Struct("<4sIQII")
_CHECKED = struct.Struct("<QII")  # the rest of a head
_ROW = struct.Struct("<QII")
_COUNTS = struct.Struct("<II")
_PATH = struct.Struct("<Ii")

FILE_HEAD_BYTES = _FILE.size
ROW_HEAD_BYTES = _ROW.size


class FileHead(NamedTuple):
    """The head of an entry log file."""

    salt: int
    first_sequence: int

    def encode(self) -> bytes:
        data = _FILE.pack(FILE_MAGIC, self.salt, self.first_sequence, 0)[:-4]
        return data + crc32c(data).to_bytes(4, "little")


def file_head(data: bytes) -> FileHead | None:
    """Return the head at the start of a file, or None without an undamaged one."""
    if len(data) < _FILE.size:
        return None
    head = FileHead(*_FILE.unpack_from(data)[1:3])
    return head if head.encode() == data[: _FILE.size] else None


class RowPlace(NamedTuple):
    """The place of a stored row."""

    first: int  # entry id
    entries: int  # their number
    file: int
    offset: int  # of the row's head
    size: int  # of the packed entries


class LogRecord(NamedTuple):
    """A decoded record. `end` is the offset behind the record."""

    pieces: list[tuple[int, RowPlace]]  # with their ledger ids
    metadata: dict[str, bytes | None]
    deleted_ledgers: list[int]
    end: int


def encode(
    salt: int,
    sequence: int,
    rows: Sequence[Row],
    metadata: Mapping[str, bytes | None],
    deleted_ledgers: Sequence[int],
) -> list[bytes]:
    """Return the pieces of a record, to be written one after the other."""
    notes = _notes(metadata, deleted_ledgers) if metadata or deleted_ledgers else b""
    parts, size = [b"", notes], 0
    for key, _, data, checksum in rows:
        parts += (_ROW.pack(key, checksum, len(data)), data)
        size += ROW_HEAD_BYTES + len(data)
    checked = _CHECKED.pack(sequence, len(notes), size)
    checksum = crc32c(notes, crc32c(checked, salt & 0xFFFFFFFF) ^ salt >> 32)
    parts[0] = MAGIC + checksum.to_bytes(4, "little") + checked
    return parts


def places(file: int, offset: int, parts: Sequence[bytes], rows: Sequence[Row]) -> list[tuple[int, RowPlace]]:
    """Return the places of the rows of a record that was written at `offset`, with their ledger ids."""
    found, offset = [], offset + len(parts[0]) + len(parts[1])
    for key, count, data, _ in rows:
        size = len(data)
        found.append((key >> 32, RowPlace(key & 0xFFFFFFFF, count, file, offset, size)))
        offset += ROW_HEAD_BYTES + size
    return found


def _notes(metadata: Mapping[str, bytes | None], deleted_ledgers: Sequence[int]) -> bytes:
    parts = [
        _COUNTS.pack(len(metadata), len(deleted_ledgers)),
        struct.pack(f"<{len(deleted_ledgers)}I", *deleted_ledgers),
    ]
    for path, value in metadata.items():
        name = path.encode()
        parts += (_PATH.pack(len(name), -1 if value is None else len(value)), name, value or b"")
    return b"".join(parts)


def decode(data: bytes, offset: int, file: int, salt: int, sequence: int | None) -> LogRecord | None:
    """Return the record at `offset`, or None when no whole and undamaged record of this number is there.

    `data` is the whole file. Without `sequence`, accept any number.
    """
    if offset + _HEAD.size > len(data):
        return None
    magic, checksum, number, notes_size, rows_size = _HEAD.unpack_from(data, offset)
    start = offset + _HEAD.size
    end = start + notes_size + rows_size
    if magic != MAGIC or end > len(data) or (sequence is not None and number != sequence):
        return None
    checked = _CHECKED.pack(number, notes_size, rows_size)
    notes = data[start : start + notes_size]
    if checksum != crc32c(notes, crc32c(checked, salt & 0xFFFFFFFF) ^ salt >> 32):
        return None
    pieces = list[tuple[int, RowPlace]]()
    position = start + notes_size
    while position < end:
        row = row_at(data, position)
        if row is None:
            return None
        key, count, packed, _ = row
        pieces.append((key >> 32, RowPlace(key & 0xFFFFFFFF, count, file, position, len(packed))))
        position += ROW_HEAD_BYTES + len(packed)
    return LogRecord(pieces, *_noted(notes), end) if position == end else None


def row_at(data: bytes, position: int) -> Row | None:
    """Return the row at `position`, or None for a damaged one."""
    if position + ROW_HEAD_BYTES > len(data):
        return None
    key, checksum, size = _ROW.unpack_from(data, position)
    packed = data[position + ROW_HEAD_BYTES : position + ROW_HEAD_BYTES + size]
    if len(packed) != size or checksum != checksum_of(key, packed):
        return None
    return key, count_of(packed), packed, checksum


def _noted(notes: bytes) -> tuple[dict[str, bytes | None], list[int]]:
    metadata = dict[str, bytes | None]()
    if not notes:
        return metadata, []
    paths, deleted = _COUNTS.unpack_from(notes)
    ledgers = list(struct.unpack_from(f"<{deleted}I", notes, _COUNTS.size))
    position = _COUNTS.size + 4 * deleted
    for _ in range(paths):
        name_size, size = _PATH.unpack_from(notes, position)
        position += _PATH.size
        path = notes[position : position + name_size].decode()
        position += name_size
        metadata[path] = None if size < 0 else notes[position : position + size]
        position += max(size, 0)
    return metadata, ledgers


def later_records(data: bytes, offset: int, file: int, salt: int, sequence: int) -> Iterator[LogRecord]:
    """Yield the undamaged records behind `offset` that are not before number `sequence`."""
    while (offset := data.find(MAGIC, offset)) >= 0:
        found = decode(data, offset, file, salt, None)
        if found is not None and _HEAD.unpack_from(data, offset)[2] >= sequence:
            yield found
            offset = found.end
        else:
            offset += 1


class Rest(NamedTuple):
    """Bytes of a file behind its last record in order. `commits` of them are whole records.

    The rest is unfinished when a process that was killed can have written it.
    """

    offset: int
    bytes: int
    commits: int
    unfinished: bool


def rest_of(data: bytes, offset: int, file: int, salt: int, sequence: int) -> Rest | None:
    """Return what is behind the records of a file, which end at `offset`, or None for nothing.

    A process that was killed leaves the first bytes of the record with number `sequence`, and nothing else.
    """
    size = len(data) - offset
    if size <= 0:
        return None
    commits = sum(1 for _ in later_records(data, offset, file, salt, sequence))
    if size < _HEAD.size:
        return Rest(offset, size, commits, unfinished=MAGIC.startswith(data[offset : offset + len(MAGIC)]))
    magic, _, number, notes_size, rows_size = _HEAD.unpack_from(data, offset)
    begins = magic == MAGIC and number == sequence and size < _HEAD.size + notes_size + rows_size
    return Rest(offset, size, commits, unfinished=begins and not commits)
