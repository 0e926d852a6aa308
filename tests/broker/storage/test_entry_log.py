"""The entry log: however a process or a disk leaves the log, its first commits, and no others, can be read back."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.storage import entry_log
from pulsarium.broker.storage.entry_log import End, EntryLog, Tail
from pulsarium.broker.storage.interface import Run
from pulsarium.broker.storage.log_files import LogFiles
from pulsarium.broker.storage.record import FILE_HEAD_BYTES, MAGIC, Record, row_at
from pulsarium.broker.storage.segments import rows_of, unpack

Commit = tuple[dict[int, list[bytes]], dict[str, bytes | None], list[int]]
"""Entries by ledger id, metadata, and deleted ledgers of a commit."""

commits = st.lists(
    st.tuples(
        st.dictionaries(
            st.integers(0, 9), st.lists(st.binary(max_size=40) | st.just(MAGIC * 9), min_size=1, max_size=4), max_size=3
        ),
        st.dictionaries(st.text("ab/\u00e9", max_size=4), st.none() | st.binary(max_size=9), max_size=3),
        st.lists(st.integers(0, (1 << 31) - 1), max_size=3),
    ),
    min_size=1,
    max_size=8,
)


def append(log: EntryLog, number: int, commit: Commit, written: Any = lambda: None) -> None:
    if log.needs_file:
        log.begin_file()
    entries, metadata, deleted = commit
    rows = [row for ledger, some in entries.items() for row in rows_of(ledger, [Run(10 * number, some)])]
    log.append(rows, metadata, deleted, written)


def fill(directory: Path, kept: Sequence[Commit], end: End = End()) -> End:  # noqa: B008
    log = EntryLog(LogFiles(directory), end, "none")
    for number, commit in enumerate(kept, end.sequence):
        append(log, number, commit)
    return log.end


def commit_of(record: Record, files: LogFiles) -> Commit:
    entries = dict[int, list[bytes]]()
    for ledger_id, piece in record.pieces:
        row = row_at(files.read(piece.file), piece.offset)
        assert row is not None
        entries[ledger_id] = unpack(row[2])
    return entries, record.metadata, record.deleted_ledgers


def left(directory: Path, applied: End = End()) -> tuple[list[Commit], Tail]:  # noqa: B008
    files = LogFiles(directory)
    tail = Tail(files, applied)
    return [commit_of(record, files) for record in tail.records()], tail


@given(kept=commits, data=st.data())
def test_any_prefix_of_the_bytes_recovers_to_a_prefix_of_the_commits(kept: list[Commit], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as name:
        directory, ends = Path(name), list[int]()
        log = EntryLog(LogFiles(directory), End(), "none")
        for number, commit in enumerate(kept):
            append(log, number, commit)
            ends.append(log.end.offset)
        path = log.files.path(1)
        length = data.draw(st.integers(0, ends[-1]))
        path.write_bytes(path.read_bytes()[:length])
        found, tail = left(directory)
        assert found == kept[: sum(end <= length for end in ends)]
        assert tail.lost == []
        fill(directory, kept, tail.end)  # the next start writes another file
        assert left(directory)[0] == [*found, *kept]


@given(kept=commits, data=st.data())
def test_a_damaged_byte_loses_only_what_is_behind_it_and_says_so(kept: list[Commit], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as name:
        directory, ends = Path(name), [FILE_HEAD_BYTES]
        log = EntryLog(LogFiles(directory), End(), "none")
        for number, commit in enumerate(kept):
            append(log, number, commit)
            ends.append(log.end.offset)
        path = log.files.path(1)
        content, place = bytearray(path.read_bytes()), data.draw(st.integers(FILE_HEAD_BYTES, ends[-1] - 1))
        content[place] ^= 1 << data.draw(st.integers(0, 7))
        path.write_bytes(content)
        found, tail = left(directory)
        before = sum(end <= place for end in ends) - 1
        assert found == kept[:before]
        assert sum(lost.commits for lost in tail.lost) == len(kept) - before - 1


ONE: Commit = ({1: [b"x"]}, {}, [])


def test_a_full_file_is_followed_by_the_next_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_log, "LOG_BYTES", 200)
    kept: list[Commit] = [({1: [bytes(60)]}, {"path": b"%d" % number}, []) for number in range(10)]
    end = fill(tmp_path, kept)
    assert LogFiles(tmp_path).numbers() == list(range(1, end.file + 1))
    assert end.file > 3
    assert left(tmp_path)[0] == kept
    assert left(tmp_path, end)[0] == []


def test_a_missing_file_loses_the_commits_behind_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_log, "LOG_BYTES", 1)
    fill(tmp_path, [ONE] * 4)
    LogFiles(tmp_path).remove(2)
    found, tail = left(tmp_path)
    assert (len(found), tail.lost) == (1, [(3, 1), (4, 1)])


def test_a_record_that_fails_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    log = EntryLog(LogFiles(tmp_path), End(), "none")
    append(log, 0, ONE)

    def fail() -> None:
        raise OSError("no luck")

    with pytest.raises(OSError, match="no luck"):
        append(log, 1, ({1: [bytes(500)]}, {}, []), fail)
    assert log.files.path(1).stat().st_size == log.end.offset
    append(log, 1, ({2: [b"y"]}, {}, []))
    assert left(tmp_path)[0] == [ONE, ({2: [b"y"]}, {}, [])]


def test_bytes_of_another_file_are_no_record(tmp_path: Path) -> None:
    """Otherwise a client could send an entry that the store takes for a commit."""
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        fill(tmp_path / name, [ONE, ONE])
    path = tmp_path / "one" / "entries-00000001.log"
    copied = (tmp_path / "other" / path.name).read_bytes()
    path.write_bytes(path.read_bytes()[:FILE_HEAD_BYTES] + copied[FILE_HEAD_BYTES:])
    found, tail = left(tmp_path / "one")
    assert (found, tail.lost) == ([], [])
