"""The log of a store: who copies it into the database file, when, and how long it may become."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pulsarium.broker.storage import checkpoints
from pulsarium.broker.storage.checkpoints import LONG, MOST, Checkpoints
from pulsarium.broker.storage.database import PAGE_SIZE, metadata, open_database, put_metadata
from pulsarium.broker.storage.interface import StorageError
from pulsarium.broker.storage.persist import PersistPoint

COPY = 20 * PAGE_SIZE
COPIER = "storage checkpoint_0"


class Hook:
    """Notes which threads copy, one after the other. Can hold them up."""

    def __init__(self) -> None:
        self.copied_by: list[str] = []
        self.may_copy = threading.Event()
        self.may_copy.set()

    def __call__(self, point: PersistPoint) -> None:
        assert point is PersistPoint.CHECKPOINT
        self.copied_by.append(threading.current_thread().name)
        assert self.may_copy.wait(30)


class Log:
    """A database, its log and what keeps that short, on the thread of the test."""

    def __init__(self, path: Path) -> None:
        self.hook = Hook()
        self.path = path
        self.connection = open_database(path, "os")
        self.checkpoints = Checkpoints(self.connection, path, "os", self.hook)
        self.commits = 0
        put_metadata(self.connection, [("path", b"")])
        self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def commit(self, count: int = 1) -> None:
        """Commit a page of log each."""
        for _ in range(count):
            self.commits += 1
            put_metadata(self.connection, [("path", b"%d" % self.commits)])
            self.checkpoints.grew(PAGE_SIZE)

    def commit_and_step(self, count: int) -> None:
        for _ in range(count):
            self.commit()
            self.checkpoints.step()

    def end_of_copy(self) -> None:
        """Wait for the copy that is under way, which nobody has seen to end yet."""
        copy = self.checkpoints._copy
        assert copy is not None
        copy.result(30)

    def copy_while(self, count: int) -> None:
        """Begin a copy, which ends after so many more commits, and which nobody has seen to end yet."""
        self.hook.may_copy.clear()
        self.checkpoints.step()
        self.commit_and_step(count)
        self.hook.may_copy.set()
        self.end_of_copy()

    @property
    def size(self) -> int:
        return self.path.with_name(f"{self.path.name}-wal").stat().st_size


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Log]:
    monkeypatch.setattr(checkpoints, "COPY_BYTES", COPY)
    log = Log(tmp_path / "log.db")
    yield log
    log.hook.may_copy.set()
    log.checkpoints.close()


def in_a_thread(call: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=call, name="commit")
    thread.start()
    return thread


def test_a_log_that_is_short_is_left_alone(log: Log) -> None:
    log.commit_and_step(20)
    assert log.hook.copied_by == []


def test_another_thread_copies_while_commits_go_on(log: Log) -> None:
    log.hook.may_copy.clear()
    log.commit_and_step(20 * MOST - 1)
    log.hook.may_copy.set()
    log.end_of_copy()
    assert log.hook.copied_by == [COPIER]


def test_the_commit_thread_waits_for_a_copy_when_the_log_is_at_its_longest(log: Log) -> None:
    log.hook.may_copy.clear()
    log.commit_and_step(20 * MOST - 1)
    log.commit()
    waiting = in_a_thread(log.checkpoints.step)
    log.hook.may_copy.set()
    waiting.join()
    assert log.hook.copied_by == [COPIER, "commit"]


def test_the_commit_thread_copies_the_little_that_the_last_copy_left(log: Log) -> None:
    log.commit(20 * LONG)
    log.copy_while(2)
    log.checkpoints.step()
    before = log.size
    log.commit(20)
    assert log.hook.copied_by == [COPIER, "MainThread"]
    assert log.size == before  # from its beginning again


def test_copies_follow_each_other_while_each_leaves_less(log: Log) -> None:
    log.commit(20 * LONG)
    for left in (20, 5):
        log.copy_while(left)
    log.commit_and_step(2)
    log.end_of_copy()
    assert log.hook.copied_by == [COPIER] * 3


def test_the_commit_thread_ends_it_when_another_copy_would_hardly_leave_less(log: Log) -> None:
    log.commit(20 * LONG)
    for left in (30, 25):
        log.copy_while(left)
    log.checkpoints.step()
    assert log.hook.copied_by == [COPIER, COPIER, "MainThread"]


def test_no_copy_begins_before_a_commit_that_came_after_the_last_one(log: Log) -> None:
    """Because a commit might start the log afresh during such a copy, which SQLite before 3.51.3 does not notice."""
    log.commit(21)
    log.copy_while(30)
    for _ in range(3):
        log.checkpoints.step()
    assert log.hook.copied_by == [COPIER]
    log.commit_and_step(1)
    log.end_of_copy()
    assert log.hook.copied_by == [COPIER] * 2


def test_the_log_stays_short_however_fast_commits_come(log: Log) -> None:
    for _ in range(150):
        log.commit(20)
        log.checkpoints.step()
    assert log.size < 1.2 * MOST * COPY  # of 19 times that
    assert len(log.hook.copied_by) > 10


def test_a_copy_that_fails_is_told_and_loses_nothing(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(file: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("os.fsync", fail)
    log.commit_and_step(21)
    with pytest.raises(OSError, match="Input/output error"):
        log.end_of_copy()
    with pytest.raises(StorageError, match=r"checkpoint failed: .*Input/output error"):
        log.checkpoints.step()
    monkeypatch.undo()
    log.commit_and_step(21)
    with closing(sqlite3.connect(log.path)) as reader:
        assert metadata(reader) == {"path": b"42"}
