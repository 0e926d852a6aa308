from __future__ import annotations

import itertools
import sqlite3
import threading
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest
import trio

from pulsarium.broker.storage import checkpoints, committer
from pulsarium.broker.storage.database import DATABASE_NAME
from pulsarium.broker.storage.interface import Batch, Durability, StorageError
from pulsarium.broker.storage.persist import PersistPoint
from pulsarium.broker.storage.sqlite import SqliteStorage
from tests.broker.damaged import until
from tests.broker.storage.asking import ask, batch_of, no_file_grows_beyond


class Hook:
    """Notes the persist points; can hold the commit thread at one, or make one fail."""

    def __init__(self) -> None:
        self.seen: list[PersistPoint] = []
        self.hold_at: PersistPoint | None = None
        self.released = threading.Event()
        self.failures: dict[PersistPoint, Exception] = {}
        self.failing: set[int] = set()  # transactions by number, from 1

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


def log_size(directory: Path) -> int:
    return (directory / f"{DATABASE_NAME}-wal").stat().st_size


async def test_the_persist_points_of_a_commit(store: SqliteStorage, hook: Hook) -> None:
    await ask(store.commit, batch_of(1, 0, b"a"))
    await ask(store.commit, batch_of(1, 0, path=b"value"))
    one = [PersistPoint.WRITTEN, PersistPoint.COMMITTED, PersistPoint.ACKNOWLEDGED]
    assert hook.seen[:5] == [*one, *one][:5]


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
    assert hook.transactions() <= 3  # the first alone, the rest when it is released, the last if it came too late
    assert store.load_metadata() == {"last": b"9", "own": b""}
    assert len(store.stored_runs(1)) == hook.transactions()  # joined, too


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
    """Whether each was kept. All of them wait while the first is written."""
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
    """Also what comes when the store works again: it was built on what is not there."""
    monkeypatch.setattr(committer, "GROUP_BYTES", group_bytes)
    await ask(store.commit, batch_of(1, 0, b"0"))
    hook.failing = {2}
    batches = [batch_of(1 + number, 0, b"x", last=b"%d" % number) for number in range(1, 5)]
    assert await answers_of(store, hook, *batches, Batch()) == [False] * 5
    for batch in (batch_of(9, 0, b"x"), batch_of(9, 0, deleted=b"x"), Batch(deleted_ledgers=[1]), Batch()):
        with pytest.raises(StorageError, match="commit failed: database or disk is full"):
            await ask(store.commit, batch)
    assert hook.transactions() == 2  # none of those behind it was tried
    assert store.load_metadata() == {}
    assert [len(store.stored_runs(ledger_id)) for ledger_id in range(1, 10)] == [1, *[0] * 8]


async def test_what_is_before_a_failure_is_kept(
    store: SqliteStorage, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committer, "GROUP_BYTES", 1)
    hook.failing = {3}
    batches = [batch_of(1, number, b"%d" % number, last=b"%d" % number) for number in range(6)]
    assert await answers_of(store, hook, *batches) == [True, True, False, False, False, False]
    assert store.load_metadata() == {"last": b"1"}
    assert store.stored_runs(1) == [(0, 1, 1), (1, 1, 1)]


async def test_the_next_era_works_until_it_fails_too(store: SqliteStorage, hook: Hook) -> None:
    hook.failing = {1, 3}
    kept: list[tuple[int, bool]] = []
    for era in (0, 0, 1, 1, 1, 2, 1, 0):  # the last two never come from a Turn
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
    """The broker was told of the failure before the commit thread came to them."""
    hook.failing = {1}
    turn_told = trio.Event()
    hook.hold_at = PersistPoint.ACKNOWLEDGED  # the answer of the first is on its way
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


async def test_a_checkpoint_that_fails_loses_nothing(
    store: SqliteStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(checkpoints, "COPY_BYTES", 200_000)
    await ask(store.commit, batch_of(1, 0, bytes(600_000)))
    with no_file_grows_beyond(2 << 20):  # the log starts afresh each time; the database cannot hold all of it
        number = 0
        with suppress(StorageError):
            while "storage fails" not in caplog.text:  # a copy's failure is noticed by a later commit
                number += 1
                await ask(store.commit, batch_of(1, number, bytes(600_000)))
        await until(lambda: "storage fails" in caplog.text)  # said after the commit was handed back
    stored = [first for first, _, _ in store.stored_runs(1)]
    assert len(await ask(store.read, 1, 0, stored[-1])) == len(stored) >= 3
    await ask(store.commit, batch_of(1, len(stored), b"goes on", era=1))


async def test_commits_go_on_while_the_log_is_copied(
    store: SqliteStorage, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "COPY_BYTES", 200_000)
    hook.hold_at = PersistPoint.CHECKPOINT
    with trio.fail_after(20):
        for number in range(8):
            await ask(store.commit, batch_of(1, number, bytes(60_000)))
    assert hook.seen.count(PersistPoint.CHECKPOINT) == 1
    assert not hook.released.is_set()
    hook.released.set()


async def test_the_log_does_not_grow_under_steady_writing_and_reading(
    store: SqliteStorage, hook: Hook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "COPY_BYTES", 100_000)
    monkeypatch.setattr(
        checkpoints, "RESTART_WAIT_MS", 500
    )  # readers let go far sooner, and one that does not costs another copy
    await ask(store.commit, batch_of(1, 0, bytes(50_000)))
    written = 1
    all_written = trio.Event()

    def write_on(error: Exception | None) -> None:
        nonlocal written
        assert error is None
        if written == 400:
            all_written.set()
            return
        store.commit(batch_of(1, written, bytes(50_000)), write_on)
        written += 1

    largest = 0
    write_on(None)
    with ExitStack() as stack:
        readers = [stack.enter_context(closing(outside_reader(tmp_path))) for _ in range(2)]
        for reader in itertools.cycle(readers):  # one of them is looking at any time
            if reader.in_transaction:
                reader.execute("COMMIT")
            look(reader)
            largest = max(largest, log_size(tmp_path))
            await trio.lowlevel.checkpoint()
            if all_written.is_set():
                break
    assert hook.seen.count(PersistPoint.CHECKPOINT) > 10
    assert largest < 3_000_000  # of 20 MB written


def outside_reader(directory: Path) -> sqlite3.Connection:
    return sqlite3.connect(directory / DATABASE_NAME, isolation_level=None)


def look(reader: sqlite3.Connection) -> None:
    """From here to its COMMIT, the log cannot be started afresh."""
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM deleted_ledger").fetchall()


async def test_somebody_who_keeps_looking_at_the_file_holds_up_nothing(
    store: SqliteStorage, hook: Hook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "COPY_BYTES", 100_000)
    monkeypatch.setattr(checkpoints, "RESTART_WAIT_MS", 1)
    await ask(store.commit, batch_of(1, 0, b"a"))
    with closing(outside_reader(tmp_path)) as outsider:
        look(outsider)
        for number in range(1, 30):
            await ask(store.commit, batch_of(1, number, bytes(50_000)))
        grown = log_size(tmp_path)
        assert grown > 1_000_000
        outsider.execute("COMMIT")
    for number in range(30, 60):
        await ask(store.commit, batch_of(1, number, bytes(50_000)))
    assert log_size(tmp_path) < 2 * grown  # used again from its start
    assert PersistPoint.CHECKPOINT in hook.seen
