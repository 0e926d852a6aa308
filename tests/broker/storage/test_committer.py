from __future__ import annotations

import shutil
import sqlite3
import threading
from itertools import count
from pathlib import Path

import pytest
import trio

from pulsarium.broker.config.options import Durability
from pulsarium.broker.storage import applier, committer, pace
from pulsarium.broker.storage.interface import Batch, EntryRun, StorageError
from pulsarium.broker.storage.persist import PersistPoint
from pulsarium.broker.storage.sqlite import SqliteStorage
from pulsarium.broker.storage.worker import Job
from tests.broker.loopback import until
from tests.broker.storage.asking import ask, batch_of, no_file_grows_beyond

BEGIN = bytes(101)  # more than the event loop writes in the tests of who writes


class Hook:
    """A hook that records the persist points. It can hold the commit thread at one point, or make one fail."""

    def __init__(self) -> None:
        self.seen: list[PersistPoint] = []
        self.hold_at: PersistPoint | None = None
        self.released = threading.Event()
        self.failures: dict[PersistPoint, Exception] = {}
        self.failing: set[int] = set()  # transactions that fail, by number from 1

    def __call__(self, point: PersistPoint) -> None:
        self.seen.append(point)
        if point is self.hold_at:
            assert self.released.wait(30)
        if point in self.failures:
            raise self.failures[point]
        if point is PersistPoint.WRITTEN and self.transactions() in self.failing:
            raise sqlite3.OperationalError("database or disk is full")

    def transactions(self) -> int:
        return self.seen.count(PersistPoint.WRITTEN)


@pytest.fixture
def hook() -> Hook:
    return Hook()


@pytest.fixture
async def store(tmp_path: Path, nursery: trio.Nursery, hook: Hook) -> SqliteStorage:
    store = SqliteStorage(tmp_path, at=hook)
    await nursery.start(store.run)
    return store


async def test_the_persist_points_of_a_commit(store: SqliteStorage, hook: Hook) -> None:
    await ask(store.commit, batch_of(1, 0, b"a"))
    await ask(store.commit, batch_of(1, 0, path=b"value"))
    one = [PersistPoint.BEGUN, PersistPoint.WRITTEN, PersistPoint.COMMITTED, PersistPoint.ACKNOWLEDGED]
    assert hook.seen[:7] == [*one, *one][:7]


async def test_batches_that_wait_share_a_transaction_and_are_answered_in_order(
    store: SqliteStorage, hook: Hook
) -> None:
    hook.hold_at = PersistPoint.WRITTEN
    answered: list[int] = []
    for number in range(10):
        batch = batch_of(1, number, b"%d" % number, last=b"%d" % number)
        store.commit(batch, lambda error, number=number: answered.append(number))  # type: ignore[misc]
    hook.released.set()
    await ask(store.commit, batch_of(1, 10, b"10", own=b""))
    assert answered == list(range(10))
    assert hook.transactions() <= 3  # the first batch, those that waited for it, and the last one if it came too late
    assert store.load_metadata() == {"last": b"9", "own": b""}


async def test_a_transaction_is_bounded(store: SqliteStorage, hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committer, "GROUP_BYTES", 10)
    hook.hold_at = PersistPoint.WRITTEN
    for number in range(9):
        store.commit(batch_of(1, number, b"12345"), lambda error: None)
    hook.released.set()
    await ask(store.commit, batch_of(1, 9, b"12345"))
    assert hook.transactions() >= 5


async def test_an_empty_batch_waits_its_turn_and_writes_nothing(store: SqliteStorage, hook: Hook) -> None:
    answers: list[str] = []
    store.commit(batch_of(1, 0, b"a"), lambda error: answers.append("first"))
    await ask(store.commit, Batch())
    assert answers == ["first"]
    await ask(store.commit, Batch())
    assert hook.transactions() == 1


async def test_a_failed_transaction_fails_each_of_its_batches_and_nothing_else(
    store: SqliteStorage, hook: Hook, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "pulsarium.storage")
    await ask(store.commit, batch_of(1, 0, b"a", path=b"old"))
    hook.failures[PersistPoint.WRITTEN] = sqlite3.OperationalError("database or disk is full")
    answers: list[Exception | None] = []
    for number in range(1, 6):
        store.commit(batch_of(1, number, b"lost", path=b"new"), answers.append)
    with pytest.raises(StorageError, match="commit failed: database or disk is full"):
        await ask(store.commit, Batch({}, {"another": b"lost"}, [1]))
    assert len(answers) == 5
    assert all(isinstance(answer, StorageError) for answer in answers)
    assert caplog.text.count("disk is full") == 1
    assert store.load_metadata() == {"path": b"old"}
    assert store.stored_runs(1) == [(0, 1, 1)]
    assert await ask(store.read, 1, 0, 0) == [b"a"]

    hook.failures.clear()
    await ask(store.commit, batch_of(1, 1, b"b", era=1, path=b"new"))
    assert "works again" in caplog.text
    assert await ask(store.read, 1, 0, 1) == [b"a", b"b"]


@pytest.mark.parametrize(
    "batch",
    [batch_of(1, 0, b"there already"), batch_of(1 << 31, 0, b"no room in the key")],
    ids=["stored twice", "id too large"],
)
async def test_a_batch_that_cannot_be_stored_is_refused(store: SqliteStorage, batch: Batch) -> None:
    await ask(store.commit, batch_of(1, 0, b"a"))
    with pytest.raises(StorageError, match="commit failed"):
        await ask(store.commit, batch)
    await ask(store.commit, batch_of(1, 1, b"b", era=1))
    assert store.read_now(1, 0, 1) == [b"a", b"b"]


async def answers_of(store: SqliteStorage, hook: Hook, *batches: Batch) -> list[bool]:
    """Return whether the store kept each batch. All other batches wait while the first one is written."""
    kept: list[bool] = []
    hook.hold_at = PersistPoint.WRITTEN
    for batch in batches:
        store.commit(batch, lambda error: kept.append(error is None))
    hook.released.set()
    while len(kept) < len(batches):
        await trio.lowlevel.checkpoint()
    return kept


@pytest.mark.parametrize("group_bytes", [1, committer.GROUP_BYTES], ids=["one by one", "in a group"])
async def test_a_failure_in_the_middle_fails_what_waits_behind_it(
    store: SqliteStorage, hook: Hook, monkeypatch: pytest.MonkeyPatch, group_bytes: int
) -> None:
    """Batches that come when the store works again fail too, because they build on the failed batch."""
    monkeypatch.setattr(committer, "GROUP_BYTES", group_bytes)
    await ask(store.commit, batch_of(1, 0, b"0"))
    hook.failing = {2}
    batches = [batch_of(1 + number, 0, b"x", last=b"%d" % number) for number in range(1, 5)]
    assert await answers_of(store, hook, *batches, Batch()) == [False] * 5
    for batch in (batch_of(9, 0, b"x"), batch_of(9, 0, deleted=b"x"), Batch(deleted_ledgers=[1]), Batch()):
        with pytest.raises(StorageError, match="commit failed: database or disk is full"):
            await ask(store.commit, batch)
    assert hook.transactions() == 2  # no batch behind the failed one was tried
    assert store.load_metadata() == {}
    assert [len(store.stored_runs(ledger_id)) for ledger_id in range(1, 10)] == [1, *[0] * 8]


async def test_commits_before_a_failure_are_kept(
    store: SqliteStorage, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committer, "GROUP_BYTES", 1)
    hook.failing = {3}
    batches = [batch_of(1, number, b"%d" % number, last=b"%d" % number) for number in range(6)]
    assert await answers_of(store, hook, *batches) == [True, True, False, False, False, False]
    assert store.load_metadata() == {"last": b"1"}
    assert store.stored_runs(1) == [(0, 2, 2)]


async def test_the_next_era_works_until_it_fails_too(store: SqliteStorage, hook: Hook) -> None:
    hook.failing = {1, 3}
    kept: list[tuple[int, bool]] = []
    for era in (0, 0, 1, 1, 1, 2, 1, 0):  # a Turn never sends the last two
        number = len(kept)
        store.commit(
            batch_of(1, number, b"x", era=era, **{f"{number}": b""}),
            lambda error, era=era: kept.append((era, error is None)),  # type: ignore[misc]
        )
        while len(kept) == number:
            await trio.lowlevel.checkpoint()
    assert kept == [(0, False), (0, False), (1, True), (1, False), (1, False), (2, True), (1, False), (0, False)]
    assert sorted(store.load_metadata()) == ["2", "5"]


async def test_a_batch_of_the_next_era_behind_those_of_the_failed_one(store: SqliteStorage, hook: Hook) -> None:
    """The broker has learned of the failure before the commit thread reaches the later batches."""
    hook.failing = {1}
    turn_told = trio.Event()
    hook.hold_at = PersistPoint.ACKNOWLEDGED  # the answer to the first batch is on its way
    store.commit(batch_of(1, 0, b"lost"), lambda error: turn_told.set())
    await turn_told.wait()
    kept: list[bool] = []
    for batch in (batch_of(2, 0, b"lost", era=0), Batch(), batch_of(3, 0, b"kept", era=1), Batch(era=1)):
        store.commit(batch, lambda error: kept.append(error is None))
    hook.released.set()
    await ask(store.commit, Batch(era=1))
    assert kept == [False, False, True, True]
    assert [store.stored_runs(ledger_id) for ledger_id in (1, 2, 3)] == [[], [], [(0, 1, 4)]]


@pytest.mark.parametrize("durability", ["none", "os", "fsync"])
async def test_a_disk_without_room(tmp_path: Path, nursery: trio.Nursery, durability: Durability) -> None:
    store = SqliteStorage(tmp_path, durability)
    await nursery.start(store.run)
    kept: list[bytes] = []

    async def fill(era: int) -> None:
        for number in range(len(kept), 40):
            entry = bytes([number]) * 100_000
            await ask(store.commit, batch_of(1, number, entry, era=era, last=b"%d" % number))
            kept.append(entry)

    with no_file_grows_beyond(1 << 20):
        for era in range(3):
            with pytest.raises(StorageError, match="commit failed"):
                await fill(era)
        assert 0 < len(kept) < 11
        assert await ask(store.read, 1, 0, len(kept) - 1) == kept
    await fill(3)
    assert await ask(store.read, 1, 0, 39) == kept
    assert store.load_metadata() == {"last": b"39"}


async def test_commits_that_cannot_be_applied_are_not_lost(
    store: SqliteStorage, hook: Hook, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hook.failures[PersistPoint.APPLYING] = sqlite3.OperationalError("database or disk is full")
    await ask(store.commit, Batch({1: [EntryRun(0, [b"a"])]}, {"path": b"1"}, [7]))
    await until(lambda: "storage fails" in caplog.text)
    await ask(store.commit, batch_of(1, 1, b"b"))
    assert (store.read_now(1, 0, 1), store.load_metadata()) == ([b"a", b"b"], {"path": b"1"})
    shutil.copytree(tmp_path, tmp_path / "copy")
    again = SqliteStorage(tmp_path / "copy")
    assert (again.read_now(1, 0, 1), again.load_metadata()) == ([b"a", b"b"], {"path": b"1"})
    again.close()
    hook.failures.clear()
    await ask(store.commit, Batch(deleted_ledgers=[1]))
    await until(lambda: PersistPoint.REMOVING in hook.seen or store._unapplied.changes == 0)
    assert store.stored_runs(1) == []


async def test_too_many_commits_that_cannot_be_applied_are_refused(
    store: SqliteStorage, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise memory would grow, and the next start would take longer and longer."""
    monkeypatch.setattr(applier, "APPLY_CHANGES", 2)
    hook.failures[PersistPoint.APPLYING] = sqlite3.OperationalError("out of luck")
    answers: list[Exception | None] = []
    for number in range(20):
        store.commit(batch_of(1, number, b"x"), answers.append)
        await until(lambda number=number: len(answers) > number)  # type: ignore[misc]
    assert answers[0] is None
    assert str(answers[-1]) == "commit failed: out of luck"
    hook.failures.clear()
    await ask(store.commit, batch_of(2, 0, b"x", era=1))


async def test_commits_go_on_while_others_are_applied(
    store: SqliteStorage, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(applier, "APPLY_CHANGES", 3)
    hook.hold_at = PersistPoint.APPLYING
    for number in range(10):
        await ask(store.commit, batch_of(1, number, b"%d" % number))
    await until(lambda: PersistPoint.APPLYING in hook.seen)
    assert store.read_now(1, 0, 9) == [b"%d" % number for number in range(10)]
    assert not hook.released.is_set()
    hook.released.set()


async def test_a_start_after_a_kill_reads_no_more_than_a_bound(
    store: SqliteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(applier, "APPLY_CHANGES", 10)
    for number in range(200):
        await ask(store.commit, batch_of(1, number, b"x"))
        assert store._unapplied.changes <= 10 * applier.MOST + 1


async def file_is_begun(store: SqliteStorage) -> None:
    """Let the thread begin a file and look at the disk, and wait until it rests: then the event loop may write."""
    await ask(store.commit, batch_of(1, 0, BEGIN))
    store.settle()


async def test_the_event_loop_writes_while_the_device_is_fast(
    store: SqliteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[Exception | None] = []
    await file_is_begun(store)
    monkeypatch.setattr(pace, "FAST_BYTES", 100)
    monkeypatch.setattr(pace, "FAST_SECONDS", 60)
    monkeypatch.setattr(pace, "FAST_WRITES", 0)
    store.commit(batch_of(1, 1, b"now"), answers.append)
    assert answers == [None]
    store.commit(batch_of(1, 2, bytes(101)), answers.append)  # too large
    store.commit(batch_of(1, 3, b"behind another"), answers.append)
    assert answers == [None]
    await ask(store.commit, Batch())
    assert answers == [None] * 3
    assert store.read_now(1, 0, 3) == [BEGIN, b"now", bytes(101), b"behind another"]


@pytest.fixture
def slow_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every write take long, and wait."""
    monkeypatch.setattr(pace, "FAST_BYTES", 100)
    monkeypatch.setattr(pace, "FAST_WRITES", 1)
    monkeypatch.setattr(pace, "FAST_SECONDS", 0)
    monkeypatch.setattr(pace, "LONGEST_CONTEST", 60)
    monkeypatch.setattr(pace, "waits", count().__next__)


@pytest.mark.usefixtures("slow_device")
@pytest.mark.parametrize("longest", [60, 0])
async def test_one_slow_write_brings_the_thread_back(
    longest: int, store: SqliteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "LONGEST_CONTEST", longest)
    monkeypatch.setattr(pace.other_threads, "worked_since", lambda moment: longest == 0)
    await file_is_begun(store)
    answers: list[Exception | None] = []
    store.commit(batch_of(1, 1, b"slow"), answers.append)
    assert answers == [None]
    store.commit(batch_of(1, 2, b"by the thread"), answers.append)
    assert answers == [None]
    await ask(store.commit, Batch())
    assert answers == [None, None]


@pytest.mark.usefixtures("slow_device")
async def test_a_write_that_waited_for_another_thread_of_the_store_is_not_slow_unless_all_do(
    store: SqliteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "MOST_CONTESTS", 2)
    await file_is_begun(store)
    reads, has_read = threading.Event(), threading.Event()

    def read(_: sqlite3.Connection) -> None:
        reads.set()
        assert has_read.wait(30)

    store._reader.submit(Job(read, lambda _: None))
    await until(reads.is_set)
    answers: list[Exception | None] = []
    for number in range(1, 4):
        store.commit(batch_of(1, number, b"now"), answers.append)
        assert answers == [None] * number
    store.commit(batch_of(1, 4, b"by the thread"), answers.append)
    assert len(answers) == 3
    has_read.set()
    await until(lambda: len(answers) == 4)


async def test_a_write_that_took_long_without_a_wait_is_not_slow(
    store: SqliteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await file_is_begun(store)
    monkeypatch.setattr(pace, "FAST_BYTES", 100)
    monkeypatch.setattr(pace, "FAST_SECONDS", 0)
    monkeypatch.setattr(pace, "waits", lambda: 7)
    monkeypatch.setattr(pace.other_threads, "worked_since", lambda moment: False)
    answers: list[Exception | None] = []
    for number in range(1, 4):
        store.commit(batch_of(1, number, b"now"), answers.append)
        assert answers == [None] * number


async def test_a_store_that_syncs_never_writes_on_the_event_loop(
    tmp_path: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "FAST_BYTES", 100)
    monkeypatch.setattr(pace, "FAST_SECONDS", 60)
    store = SqliteStorage(tmp_path, "fsync")
    await nursery.start(store.run)
    answers: list[Exception | None] = []
    for number in range(3):
        store.commit(batch_of(1, number, b"x"), answers.append)
        assert len(answers) == number
        await until(lambda: len(answers) == number + 1)  # noqa: B023
