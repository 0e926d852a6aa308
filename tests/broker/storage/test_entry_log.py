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
from pulsarium.broker.storage.entry_log import EntryLog, RecordEnd, Tail
from pulsarium.broker.storage.interface import EntryRun
from pulsarium.broker.storage.log_files import LogFiles
from pulsarium.broker.storage.record import FILE_HEAD_BYTES, MAGIC, LogRecord, row_at
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
    rows = [row for ledger, some in entries.items() for row in rows_of(ledger, [EntryRun(10 * number, some)])]
    log.append(rows, metadata, deleted, written)


def fill(directory: Path, kept: Sequence[Commit], end: RecordEnd = RecordEnd()) -> RecordEnd:  # noqa: B008
    log = EntryLog(LogFiles(directory), end, "none")
    for number, commit in enumerate(kept, end.sequence):
        append(log, number, commit)
    return log.end


def commit_of(record: LogRecord, files: LogFiles) -> Commit:
    entries = dict[int, list[bytes]]()
    for ledger_id, piece in record.pieces:
        row = row_at(files.read(piece.file), piece.offset)
        assert row is not None
        entries[ledger_id] = unpack(row[2])
    return entries, record.metadata, record.deleted_ledgers


def left(directory: Path, applied: RecordEnd = RecordEnd(), newest: int = 0) -> tuple[list[Commit], Tail]:  # noqa: B008
    files = LogFiles(directory)
    tail = Tail(files, applied, newest)
    return [commit_of(record, files) for record in tail.records()], tail


def dropped(tail: Tail) -> list[tuple[int, int] | None]:
    """Return offset and bytes of each end that was dropped, or None for a missing file."""
    return [rest and (rest.offset, rest.bytes) for _, rest in tail.dropped]


@given(kept=commits, data=st.data())
def test_any_prefix_of_the_bytes_recovers_to_a_prefix_of_the_commits(kept: list[Commit], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as name:
        directory, ends = Path(name), list[int]()
        log = EntryLog(LogFiles(directory), RecordEnd(), "none")
        for number, commit in enumerate(kept):
            append(log, number, commit)
            ends.append(log.end.offset)
        path = log.files.path(1)
        length = data.draw(st.integers(0, ends[-1]))
        path.write_bytes(path.read_bytes()[:length])
        found, tail = left(directory)
        assert found == kept[: sum(end <= length for end in ends)]
        last = max((end for end in ends if end <= length), default=FILE_HEAD_BYTES)
        assert dropped(tail) == ([(last, length - last)] if length > last else [])
        assert all(rest and rest.unfinished for _, rest in tail.dropped)
        fill(directory, kept, tail.end)  # the next start writes another file
        assert left(directory)[0] == [*found, *kept]


@given(kept=commits, data=st.data())
def test_a_damaged_byte_loses_only_what_is_behind_it_and_says_so(kept: list[Commit], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as name:
        directory, ends = Path(name), [FILE_HEAD_BYTES]
        log = EntryLog(LogFiles(directory), RecordEnd(), "none")
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
        assert dropped(tail) == [(ends[before], ends[-1] - ends[before])]
        assert [rest and rest.commits for _, rest in tail.dropped] == [len(kept) - before - 1]


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
    assert (len(found), [(file, rest and rest.commits) for file, rest in tail.dropped]) == (1, [(3, 1), (4, 1)])


def test_a_record_that_fails_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    log = EntryLog(LogFiles(tmp_path), RecordEnd(), "none")
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
    assert (found, dropped(tail)) == ([], [(FILE_HEAD_BYTES, len(copied) - FILE_HEAD_BYTES)])
    assert [rest and rest.unfinished for _, rest in tail.dropped] == [False]


HEAD = FILE_HEAD_BYTES


@pytest.mark.parametrize(
    ("content", "newest", "rest"),
    [
        (b"", 1, (0, 0)),  # it had a head, which the database knows
        (b"", 0, None),  # a process was killed when it created the file
        (bytes(HEAD), 1, (0, HEAD)),
        (bytes(HEAD), 0, None),
        (bytes(HEAD + 1), 0, (0, HEAD + 1)),
        (b"x" * HEAD, 1, (0, HEAD)),
    ],
)
def test_a_file_without_a_head_is_damaged_unless_a_process_was_killed_when_it_created_it(
    tmp_path: Path, content: bytes, newest: int, rest: tuple[int, int] | None
) -> None:
    LogFiles(tmp_path).path(1).write_bytes(content)
    found, tail = left(tmp_path, newest=newest)
    assert (found, dropped(tail)) == ([], [] if rest is None else [rest])
    assert not any(each and each.unfinished for _, each in tail.dropped)


@pytest.mark.parametrize("junk", [b"\0", bytes(5000), b"junk", b"PREx" * 99])
def test_bytes_behind_the_last_record_that_begin_no_record_are_damage(tmp_path: Path, junk: bytes) -> None:
    end = fill(tmp_path, [ONE])
    with LogFiles(tmp_path).path(1).open("ab") as file:
        file.write(junk)
    found, tail = left(tmp_path)
    assert (found, dropped(tail)) == ([ONE], [(end.offset, len(junk))])
    assert [rest and rest.unfinished for _, rest in tail.dropped] == [False]


def test_a_missing_newest_file_is_dropped_and_its_number_not_used_again(tmp_path: Path) -> None:
    fill(tmp_path, [ONE])
    found, tail = left(tmp_path, newest=2)
    assert (found, tail.dropped) == ([ONE], [(2, None)])
    log = EntryLog(LogFiles(tmp_path), tail.end, "none", tail.newest)
    log.begin_file()
    assert log.end.file == 3


def test_a_newest_file_that_was_given_back_is_no_loss(tmp_path: Path) -> None:
    """The database may have the commits of the next file before it has its number."""
    applied = fill(tmp_path, [ONE])._replace(file=2)
    LogFiles(tmp_path).path(1).rename(LogFiles(tmp_path).path(2))
    _, tail = left(tmp_path, applied, newest=1)
    assert tail.dropped == []


def test_a_file_that_is_shorter_than_what_the_database_has_of_it_was_cut(tmp_path: Path) -> None:
    applied = fill(tmp_path, [ONE, ONE])
    path = LogFiles(tmp_path).path(1)
    path.write_bytes(path.read_bytes()[:-3])
    found, tail = left(tmp_path, applied, newest=1)
    assert (found, dropped(tail)) == ([], [(applied.offset - 3, 3)])


def test_what_a_later_process_wrote_behind_damage_is_kept(tmp_path: Path) -> None:
    """A process that finds damage goes on behind the last sound record, and reports the damage once."""
    fill(tmp_path, [ONE] * 3)
    path = LogFiles(tmp_path).path(1)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    before, tail = left(tmp_path)
    assert (len(before), len(tail.dropped)) == (1, 1)
    log = EntryLog(LogFiles(tmp_path), tail.end, "none")
    log.begin_file()
    assert len(left(tmp_path)[1].dropped) == 1
    append(log, tail.end.sequence, ({9: [b"later"]}, {}, []))
    found, tail = left(tmp_path)
    assert (found, tail.dropped) == ([ONE, ({9: [b"later"]}, {}, [])], [])
