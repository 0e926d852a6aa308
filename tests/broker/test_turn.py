"""The end of a turn: one commit, then its callbacks and dispatches, then one flush for each connection."""

from __future__ import annotations

import pytest
from trio.testing import wait_all_tasks_blocked

from pulsarium.broker.storage.interface import Batch, Done, StorageError
from pulsarium.broker.turn import Turn
from tests.broker.held import HeldStorage


class Log:
    """A log of events in their order. The log stands for a subscription and a connection."""

    def __init__(self, turn: Turn) -> None:
        self.events: list[str] = []
        self.turn = turn

    def note(self, event: str) -> None:
        self.turn.after_commit(lambda error: self.events.append(event if error is None else f"{event}: {error}"))

    def dispatch(self) -> None:
        self.events.append("dispatch")

    def flush(self) -> None:
        self.events.append("flush")


@pytest.fixture
async def turn(store: HeldStorage) -> Turn:
    return Turn(store)


@pytest.fixture
async def log(turn: Turn) -> Log:
    return Log(turn)


async def test_a_turn_is_committed_until_something_is_noted_and_again_after_its_commit(
    turn: Turn, store: HeldStorage
) -> None:
    found = [turn.is_committed]
    store.holding = True
    turn.store("/path", b"1")
    found.append(turn.is_committed)
    turn.finish()
    found.append(turn.is_committed)
    store.release()
    found.append(turn.is_committed)
    assert found == [True, False, False, True]


async def test_everything_happens_once_and_in_order(turn: Turn, log: Log, store: HeldStorage) -> None:
    for number in range(3):
        turn.flush(log)
        turn.dispatch(log)
        turn.store("/path", b"%d" % number)
        turn.store_entries(1, number, [b"x"])
        log.note(f"kept {number}")
    assert log.events == []
    turn.finish()
    assert log.events == ["kept 0", "kept 1", "kept 2", "dispatch", "flush"]
    assert store.metadata == {"/path": b"2"}
    assert store.entries == {1: {0: b"x", 1: b"x", 2: b"x"}}
    turn.finish()
    assert len(log.events) == 5


async def test_a_turn_that_nobody_ends_ends_by_itself(turn: Turn, log: Log) -> None:
    turn.flush(log)
    log.note("kept")
    await wait_all_tasks_blocked()
    assert log.events == ["kept", "flush"]


async def test_a_turn_that_was_begun_is_ended_by_who_began_it(turn: Turn, log: Log) -> None:
    turn.begin()
    turn.flush(log)
    await wait_all_tasks_blocked()
    assert log.events == []
    turn.finish()
    assert log.events == ["flush"]


async def test_callbacks_wait_for_their_commit(turn: Turn, log: Log, store: HeldStorage) -> None:
    store.holding = True
    turn.store("/a", b"1")
    log.note("first")
    turn.dispatch(log)
    turn.flush(log)
    turn.finish()
    assert log.events == ["dispatch", "flush"]  # dispatch and flush do not wait for the commit
    log.note("nothing to keep, but behind it")
    turn.finish()
    assert log.events == ["dispatch", "flush"]
    store.release(1)
    assert log.events == ["dispatch", "flush", "first"]
    store.release()
    assert log.events[3:] == ["nothing to keep, but behind it"]
    log.note("nothing to wait for")
    turn.finish()
    assert log.events[4:] == ["nothing to wait for"]


async def test_dispatch_and_flush_due_to_a_commit_happen_when_it_ends(turn: Turn, log: Log, store: HeldStorage) -> None:
    store.holding = True
    turn.store("/a", b"1")

    def committed(error: Exception | None) -> None:
        log.events.append("committed")
        turn.dispatch(log)
        turn.flush(log)

    turn.after_commit(committed)
    turn.finish()
    assert log.events == []
    store.release()
    assert log.events == ["committed", "dispatch", "flush"]


# a commit that fails

FAILED = "commit failed: the disk is full"


async def test_a_failed_commit_is_told_to_all_who_waited_for_it(turn: Turn, log: Log, store: HeldStorage) -> None:
    store.holding = True
    turn.store("/a", b"1")
    log.note("first")
    log.note("second")
    turn.finish()
    store.fail()
    assert log.events == [f"first: {FAILED}", f"second: {FAILED}"]
    assert store.metadata == {}


async def test_batches_and_callbacks_behind_a_failed_commit_fail_too(turn: Turn, log: Log, store: HeldStorage) -> None:
    """The failure is reported at once, so that no later change relies on a change that was not stored."""
    store.holding = True
    for number in range(4):
        turn.store(f"/{number}", b"1")
        log.note(f"{number}")
        turn.finish()
    log.note("empty")
    turn.finish()
    store.release(1)
    turn.store("/open", b"1")  # in a turn that has not ended
    log.note("open")
    store.fail()
    assert log.events == ["0", *(f"{each}: {FAILED}" for each in ("1", "2", "3", "empty", "open"))]
    store.release()
    turn.finish()
    assert len(log.events) == 6  # no callback is called twice
    assert store.metadata == {"/0": b"1"}
    assert not store.waiting


async def test_the_next_era_works(turn: Turn, log: Log, store: HeldStorage) -> None:
    store.holding = True
    for path in ("/a", "/b"):
        turn.store(path, b"1")
        log.note(path)
        turn.finish()
    store.fail()
    turn.store("/c", b"1")
    log.note("/c")
    turn.finish()
    assert log.events[2:] == []  # waits for a commit that the store has not answered yet
    store.release()
    assert log.events[2:] == ["/c"]
    assert store.metadata == {"/c": b"1"}


async def test_changes_after_a_failure_belong_to_the_next_era(turn: Turn, log: Log, store: HeldStorage) -> None:
    store.holding = True

    def failed(error: Exception | None) -> None:
        turn.store("/undone", b"1")
        log.note("undone")

    turn.store("/a", b"1")
    turn.after_commit(failed)
    turn.finish()
    store.fail()
    store.release()
    assert log.events == ["undone"]
    assert store.metadata == {"/undone": b"1"}


async def test_a_failure_is_counted_once_for_each_era(turn: Turn, log: Log, store: HeldStorage) -> None:
    eras: list[int] = []
    commit = store.commit

    def noting(batch: Batch, done: Done) -> None:
        eras.append(batch.era)
        commit(batch, done)

    store.commit = noting  # type: ignore[method-assign]
    store.holding = True
    for _ in range(3):
        for path in ("/a", "/b", "/c"):
            turn.store(path, b"1")
            turn.finish()
        store.fail(3)
    assert eras == [0, 0, 0, 1, 1, 1, 2, 2, 2]


async def test_a_store_that_always_fails(turn: Turn, log: Log, store: HeldStorage) -> None:
    """The store fails within the turn, and the turn neither loops nor recurses."""
    store.commit = lambda batch, done: done(StorageError("the store is closed"))  # type: ignore[method-assign]
    for number in range(3):
        turn.store("/a", b"1")
        log.note(f"{number}")
        turn.finish()
    assert log.events == [f"{number}: the store is closed" for number in range(3)]


# faults, housekeeping and later work


async def test_a_fault_in_one_place_stops_nothing_else(turn: Turn, log: Log, caplog: pytest.LogCaptureFixture) -> None:
    class Faulty:
        def dispatch(self) -> None:
            raise ValueError("dispatch is broken")

    def faulty(error: Exception | None) -> None:
        raise ValueError("callback is broken")

    turn.after_commit(faulty)
    log.note("kept")
    turn.dispatch(Faulty())
    turn.dispatch(log)
    turn.flush(log)
    turn.finish()
    assert log.events == ["kept", "dispatch", "flush"]
    assert "dispatch is broken" in caplog.text
    assert "callback is broken" in caplog.text


async def test_dispatch_may_note_more(turn: Turn, log: Log, store: HeldStorage) -> None:
    class Acknowledging:
        def dispatch(self) -> None:
            log.events.append("acknowledged")
            turn.store("/cursor", b"1")
            log.note("kept")

    turn.dispatch(Acknowledging())
    turn.finish()
    assert log.events == ["acknowledged", "kept"]
    assert store.metadata == {"/cursor": b"1"}


async def test_a_ledger_is_deleted_with_the_rest(turn: Turn, store: HeldStorage) -> None:
    turn.store_entries(1, 0, [b"x"])
    turn.store("/a", b"1")
    turn.finish()
    turn.delete_ledger(1)
    turn.store("/a", None)
    await wait_all_tasks_blocked()
    assert (store.entries, store.metadata) == ({}, {})


async def test_housekeeping_is_done_every_turn_before_the_flush(turn: Turn, log: Log) -> None:
    turn.every_turn(lambda: log.events.append("kept house"))
    turn.flush(log)
    turn.finish()
    assert log.events == ["kept house", "flush"]
    turn.finish()
    assert log.events == ["kept house", "flush", "kept house"]


async def test_one_run_of_entries_a_ledger(turn: Turn, store: HeldStorage) -> None:
    batches: list[Batch] = []
    store.commit = lambda batch, done: batches.append(batch)  # type: ignore[method-assign]
    for ledger_id, entry_id in ((1, 7), (2, 0), (1, 8), (2, 1), (1, 9)):
        turn.store_entries(ledger_id, entry_id, [b"%d" % entry_id])
    turn.finish()
    (batch,) = batches
    assert batch.entries == {1: [(7, [b"7", b"8", b"9"])], 2: [(0, [b"0", b"1"])]}


async def test_work_for_a_turn_of_its_own_is_done_after_this_one(turn: Turn, log: Log) -> None:
    turn.later(lambda: log.note("later"))
    turn.finish()
    assert (log.events, turn.is_settled) == ([], False)
    await wait_all_tasks_blocked()
    assert (log.events, turn.is_settled) == (["later"], True)


async def test_work_that_fails_in_a_turn_of_its_own_stops_nothing_else(
    turn: Turn, log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        log.note("before the fault")
        raise ValueError("a fault")

    turn.later(fail)
    turn.later(lambda: log.note("later"))
    await wait_all_tasks_blocked()
    assert log.events == ["before the fault", "later"]
    assert "work in a turn of its own failed" in caplog.text
