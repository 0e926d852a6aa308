from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.storage import segments
from pulsarium.broker.storage.database import PAGE_SIZE, open_database, open_reader
from pulsarium.broker.storage.interface import DamagedEntriesError, EntryRun, StorageError
from pulsarium.broker.storage.segments import header_size, pack, unpack


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(segments.SCHEMA)
    yield connection
    connection.close()


def put(connection: sqlite3.Connection, ledger_id: int, *runs: EntryRun) -> None:
    segments.insert(connection, segments.rows_of(ledger_id, runs))


def numbered(first: int, count: int) -> EntryRun:
    return EntryRun(first, [b"%d" % number for number in range(first, first + count)])


def test_adjacent_runs_become_one_row() -> None:
    rows = list(segments.rows_of(3, [numbered(0, 2), numbered(2, 3), numbered(9, 1)]))
    assert [(key, count) for key, count, _, _ in rows] == [(3 << 32, 5), (3 << 32 | 9, 1)]
    assert unpack(rows[0][2]) == [b"0", b"1", b"2", b"3", b"4"]


def test_rows_are_cut_and_joined_to_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "ROW_BYTES", 10)
    runs = [
        EntryRun(0, [b"aaaa", b"bbbb", b"cccc"]),
        EntryRun(3, [b"d" * 25]),
        EntryRun(4, [b"e", b"f"]),
        EntryRun(6, [b"g" * 8]),
    ]
    rows = list(segments.rows_of(1, runs))
    assert [(key & 0xFFFFFFFF, unpack(data)) for key, _, data, _ in rows] == [
        (0, [b"aaaa", b"bbbb"]),
        (2, [b"cccc"]),
        (3, [b"d" * 25]),
        (4, [b"e", b"f", b"g" * 8]),
    ]


def test_reads_cross_rows_and_begin_and_end_inside_them(connection: sqlite3.Connection) -> None:
    for first in (0, 4, 8):
        put(connection, 1, numbered(first, 4))
    put(connection, 2, numbered(0, 1))
    for first in range(12):
        for last in range(first, 12):
            expected = [b"%d" % number for number in range(first, last + 1)]
            assert segments.read(connection, 1, first, last) == expected
    assert segments.read(connection, 1, 5, 4) == []


@pytest.mark.parametrize(("first", "last"), [(0, 2), (3, 3), (6, 9), (8, 12), (12, 12), (2, 10)])
def test_a_missing_entry_is_an_error(connection: sqlite3.Connection, first: int, last: int) -> None:
    put(connection, 1, numbered(1, 2), numbered(4, 3), numbered(9, 3))
    put(connection, 2, numbered(0, 20))
    with pytest.raises(StorageError, match=r"ledger 1: entry \d+ of .* is not stored"):
        segments.read(connection, 1, first, last)


def test_a_damaged_row_is_an_error_and_leaves_no_snapshot_open(tmp_path: Path) -> None:
    writer = open_database(tmp_path / "db", "none")
    put(writer, 1, numbered(0, 3))
    put(writer, 1, numbered(3, 3))
    writer.execute("UPDATE segment SET data = x'01' WHERE key = ?", (1 << 32,))
    reader = open_reader(tmp_path / "db")
    with pytest.raises(StorageError, match="damaged") as kept:
        segments.read(reader, 1, 0, 5)
    put(writer, 1, numbered(6, 3))
    writer.execute("PRAGMA busy_timeout=0")
    busy, _, _ = writer.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()
    assert not busy, f"{kept.value} holds its cursor"
    reader.close()
    writer.close()


@pytest.mark.parametrize(
    ("damage", "wanted", "expected"),
    [
        ("UPDATE segment SET checksum = 0 WHERE key & 0xff = 4", (0, 11), (4, 7)),
        ("UPDATE segment SET checksum = 0 WHERE key & 0xff = 4", (5, 6), (5, 6)),
        ("DELETE FROM segment WHERE key & 0xff = 4", (0, 11), (4, 7)),
        ("DELETE FROM segment WHERE key & 0xff >= 4", (0, 11), (4, 11)),
        ("DELETE FROM segment WHERE key & 0xff = 0", (1, 11), (1, 3)),
    ],
)
def test_the_error_names_the_damaged_entries(
    connection: sqlite3.Connection, damage: str, wanted: tuple[int, int], expected: tuple[int, int]
) -> None:
    for first in (0, 4, 8):
        put(connection, 1, numbered(first, 4))
    connection.execute(damage)
    with pytest.raises(DamagedEntriesError) as refused:
        segments.read(connection, 1, *wanted)
    assert (refused.value.ledger_id, refused.value.first, refused.value.last) == (1, *expected)
    assert segments.read(connection, 1, 8, 11) if expected[1] < 8 else True


def test_a_page_that_is_lost_takes_its_row_only(tmp_path: Path) -> None:
    """SQLite itself cannot follow the chain of pages of a long row."""
    path = tmp_path / "db"
    writer = open_database(path, "none")
    for first in (0, 2, 4):
        put(writer, 1, EntryRun(first, [bytes([first]) * 100_000] * 2))
    writer.close()
    data = bytearray(path.read_bytes())
    lost = data.index(bytes([2]) * (PAGE_SIZE - 4)) // PAGE_SIZE * PAGE_SIZE  # behind the next page's number
    data[lost : lost + PAGE_SIZE] = bytes(PAGE_SIZE)
    path.write_bytes(data)
    reader = open_reader(path)
    with pytest.raises(DamagedEntriesError) as refused:
        segments.read(reader, 1, 0, 5)
    assert (refused.value.first, refused.value.last) == (2, 3)
    assert len(segments.read(reader, 1, 0, 1) + segments.read(reader, 1, 4, 5)) == 4
    reader.close()


def test_stored_runs_count_entries_and_their_bytes(connection: sqlite3.Connection) -> None:
    put(connection, 1, EntryRun(0, [b"ab", b"c"]), EntryRun(7, [b""]))
    put(connection, 2, EntryRun(0, [b"x"]))
    assert segments.stored_runs(connection, 1) == [(0, 2, 3), (7, 1, 0)]
    assert segments.stored_runs(connection, 9) == []


@pytest.mark.parametrize("count", [1, 2, 99])
def test_the_count_of_the_last_row_is_what_its_checksum_covers(connection: sqlite3.Connection, count: int) -> None:
    """The rows tell how many entries a topic has. A wrong count shows as a gap in the middle, but not at the end."""
    put(connection, 1, EntryRun(0, [b"a", b"b"]))
    put(connection, 1, EntryRun(2, [b"c", b"d", b"ef"]))
    connection.execute("UPDATE segment SET count = ? WHERE key = ?", (count, 1 << 32 | 2))
    assert segments.stored_runs(connection, 1) == [(0, 2, 2), (2, 3, 4)]


def test_a_damaged_last_row_still_counts(connection: sqlite3.Connection) -> None:
    """The entries of such a row are refused when a client reads them, and can be skipped."""
    put(connection, 1, numbered(0, 3))
    connection.execute("UPDATE segment SET data = zeroblob(length(data))")
    assert segments.stored_runs(connection, 1) == [(0, 3, 3)]


@pytest.mark.parametrize(("ledger_id", "entry_id"), [(1 << 31, 0), (0, 1 << 32), (-1, 0), (0, -1)])
def test_ids_beyond_the_key_are_an_error(ledger_id: int, entry_id: int) -> None:
    with pytest.raises(StorageError, match="too large for the store"):
        list(segments.rows_of(ledger_id, [EntryRun(entry_id, [b""])]))


@pytest.mark.parametrize("ledger_id", [1 << 31, -1])
def test_no_ledger_beyond_the_key_is_deleted(connection: sqlite3.Connection, ledger_id: int) -> None:
    with pytest.raises(StorageError, match="too large for the store"):
        segments.mark_deleted(connection, [ledger_id])
    assert segments.marked_deleted(connection) == []


def test_the_largest_ids_fit(connection: sqlite3.Connection) -> None:
    put(connection, (1 << 31) - 1, EntryRun((1 << 32) - 1, [b"last"]))
    assert segments.read(connection, (1 << 31) - 1, (1 << 32) - 1, (1 << 32) - 1) == [b"last"]


def test_a_ledger_marked_deleted_is_hidden_at_once(connection: sqlite3.Connection) -> None:
    put(connection, 1, numbered(0, 3))
    put(connection, 2, numbered(0, 3))
    segments.mark_deleted(connection, [1, 5])
    assert segments.marked_deleted(connection) == [1, 5]
    assert segments.stored_runs(connection, 1) == []
    with pytest.raises(StorageError, match="not stored"):
        segments.read(connection, 1, 0, 0)
    assert len(segments.read(connection, 2, 0, 2)) == 3


def deleted(connection: sqlite3.Connection, ledger_id: int) -> list[segments.DeletedRows]:
    """Delete the rows of a ledger, and return the slices that this takes."""
    slices = [segments.next_slice(connection, ledger_id)]
    segments.delete_slice(connection, slices[0])
    while (next_key := slices[-1].next_key) is not None:
        slices.append(segments.next_slice(connection, ledger_id, next_key))
        segments.delete_slice(connection, slices[-1])
    return slices


@pytest.mark.parametrize(("slice_rows", "slice_bytes", "slices"), [(2, 1 << 20, 3), (100, 1 << 20, 1), (100, 20, 3)])
def test_rows_are_deleted_in_slices(
    connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch, slice_rows: int, slice_bytes: int, slices: int
) -> None:
    monkeypatch.setattr(segments, "SLICE_ROWS", slice_rows)
    monkeypatch.setattr(segments, "SLICE_BYTES", slice_bytes)
    for ledger_id in (1, 2, 3):
        put(connection, ledger_id, *(EntryRun(2 * number, [b"123"]) for number in range(5)))  # rows of 11 bytes
    segments.mark_deleted(connection, [2])
    assert len(deleted(connection, 2)) == slices
    assert connection.execute("SELECT count(*) FROM segment").fetchone() == (10,)
    assert segments.marked_deleted(connection) == []
    assert len(segments.stored_runs(connection, 1)) == len(segments.stored_runs(connection, 3)) == 5


def test_damaged_rows_are_not_deleted(connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "SLICE_ROWS", 2)
    for number in range(7):
        put(connection, 2, EntryRun(2 * number, [b"123"]))
    connection.execute("UPDATE segment SET checksum = 0 WHERE key & 0xff IN (0, 2, 8)")
    segments.mark_deleted(connection, [2])
    assert sum(rows.damaged for rows in deleted(connection, 2)) == 3
    assert connection.execute("SELECT key & 0xff FROM segment").fetchall() == [(0,), (2,), (8,)]
    assert segments.marked_deleted(connection) == [2]


entry_lists = st.lists(st.binary(max_size=40), max_size=20)


@given(entry_lists)
def test_packed_entries_unpack(entries: list[bytes]) -> None:
    data = pack(entries)
    assert unpack(data) == entries
    assert len(data) == header_size(len(entries)) + sum(map(len, entries))


@given(entry_lists, st.integers(0, 25), st.integers(0, 25))
def test_a_slice_is_a_slice_of_the_entries(entries: list[bytes], start: int, stop: int) -> None:
    assert unpack(pack(entries), start, stop) == entries[start:stop]


def test_layout_is_little_endian_and_stays() -> None:
    assert pack([b"ab", b"", b"c"]) == bytes.fromhex("03000000 02000000 00000000 01000000") + b"abc"


@given(entry_lists, st.data())
def test_a_damaged_value_is_an_error(entries: list[bytes], data: st.DataObject) -> None:
    packed = pack(entries)
    for damaged in (packed[: data.draw(st.integers(0, len(packed) - 1))], packed + b"x"):
        with pytest.raises(StorageError, match="damaged"):
            unpack(damaged)
