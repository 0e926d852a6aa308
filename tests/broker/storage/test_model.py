"""Random programs on stores: a store behaves like a dict of entries, whatever the order of requests."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsarium.broker.storage import applier, committer, entry_log, segments
from pulsarium.broker.storage.interface import Batch, EntryRun, Storage, StorageError
from pulsarium.broker.storage.lasting import LastingStorage
from pulsarium.broker.storage.memory import MemoryStorage
from pulsarium.broker.storage.sqlite import SqliteStorage
from tests.broker.storage.asking import ask

Step = tuple[Any, ...]  # the name of a request, and its arguments

SLOTS = 3  # ledgers at a time; a ledger with a new id takes the place of a deleted one

slots = st.integers(0, SLOTS - 1)
appends = st.tuples(slots, st.integers(0, 2), st.lists(st.binary(max_size=30), min_size=1, max_size=6))
steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.lists(appends, min_size=1, max_size=4)),
        st.tuples(st.just("delete"), slots),
        st.tuples(st.just("put"), st.sampled_from("abc"), st.none() | st.binary(max_size=5)),
        st.tuples(st.just("read"), slots, st.integers(0, 30), st.integers(0, 30)),
        st.tuples(st.just("restart")),
    ),
    max_size=25,
)


class Model:
    def __init__(self) -> None:
        self.entries: dict[int, dict[int, bytes]] = {}
        self.metadata: dict[str, bytes] = {}
        self.ledger_ids = list(range(1, SLOTS + 1))
        self.next_entry: dict[int, int] = {}

    def append(self, slot: int, gap: int, entries: list[bytes]) -> tuple[int, EntryRun]:
        ledger_id = self.ledger_ids[slot]
        first = self.next_entry.get(ledger_id, 0) + gap
        self.next_entry[ledger_id] = first + len(entries)
        self.entries.setdefault(ledger_id, {}).update(enumerate(entries, first))
        return ledger_id, EntryRun(first, entries)

    def delete(self, slot: int) -> int:
        ledger_id = self.ledger_ids[slot]
        self.entries.pop(ledger_id, None)
        self.ledger_ids[slot] += SLOTS
        return ledger_id

    def read(self, ledger_id: int, first: int, last: int) -> list[bytes] | None:
        stored = self.entries.get(ledger_id, {})
        wanted = range(first, last + 1)
        return [stored[entry] for entry in wanted] if all(entry in stored for entry in wanted) else None


async def check(store: Storage, model: Model, ledger_id: int, first: int, last: int) -> None:
    expected = model.read(ledger_id, first, last)
    if expected is None:
        with pytest.raises(StorageError):
            await ask(store.read, ledger_id, first, last)
        with pytest.raises(StorageError):
            store.read_now(ledger_id, first, last)
    else:
        assert await ask(store.read, ledger_id, first, last) == expected
        assert store.read_now(ledger_id, first, last) == expected


async def check_all(store: Storage, model: Model) -> None:
    for ledger_id in range(1, max(model.ledger_ids) + 1):
        runs = store.stored_runs(ledger_id)
        stored = [entry for first, count, _ in runs for entry in range(first, first + count)]
        assert stored == sorted(model.entries.get(ledger_id, {}))
        for first, count, size in runs:
            await check(store, model, ledger_id, first, first + count - 1)
            assert size == sum(len(entry) for entry in store.read_now(ledger_id, first, first + count - 1))
    if store.keeps_entries:
        assert store.load_metadata() == model.metadata


async def play(program: list[Step], make: Callable[[], Storage]) -> None:
    model = Model()
    failures: list[Exception] = []

    def done(error: Exception | None) -> None:
        if error is not None:
            failures.append(error)

    restarts: list[list[Step]] = [[]]
    for step in program:
        if step[0] == "restart":
            restarts.append([])
        else:
            restarts[-1].append(step)
    for steps_until_restart in restarts:
        store = make()
        async with trio.open_nursery() as nursery:
            await nursery.start(store.run)
            if store.keeps_entries:
                await check_all(store, model)
            for step in steps_until_restart:
                await take(step, store, model, done)
            await settle(store)
            await check_all(store, model)
            nursery.cancel_scope.cancel()
        if not store.keeps_entries:
            break
    assert failures == []


async def settle(store: Storage) -> None:
    """Wait until the store has done all earlier requests."""
    await ask(store.commit, Batch())
    if not store.keeps_entries:
        await ask(store.spill, 1_000_000, EntryRun(0, []))


async def take(step: Step, store: Storage, model: Model, done: Callable[[Exception | None], None]) -> None:
    match step:
        case ("append", appended):
            batch = Batch()
            for slot, gap, entries in appended:
                ledger_id, run = model.append(slot, gap, entries)
                if store.keeps_entries:
                    batch.entries.setdefault(ledger_id, []).append(run)
                else:
                    store.spill(ledger_id, run, done)
            store.commit(batch, done)
        case ("delete", slot):
            store.commit(Batch(deleted_ledgers=[model.delete(slot)]), done)
        case ("put", path, value):
            model.metadata.pop(path, None)
            if value is not None:
                model.metadata[path] = value
            store.commit(Batch(metadata={path: value}), done)
        case ("read", slot, first, last):
            await settle(store)
            await check(store, model, model.ledger_ids[slot], first, last)


@pytest.mark.parametrize("kind", ["sqlite", "memory", "lasting"])
@settings(max_examples=40)
@given(program=steps)
def test_a_store_is_a_dict(kind: str, program: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(segments, "ROW_BYTES", 50)
        patch.setattr(segments, "SLICE_ROWS", 2)
        patch.setattr(committer, "GROUP_BYTES", 100)
        patch.setattr(entry_log, "LOG_BYTES", 300)
        patch.setattr(applier, "APPLY_CHANGES", 4)
        patch.setattr(applier, "SOON_SECONDS", 0)
        path = Path(directory)
        makers: dict[str, Callable[[], Storage]] = {
            "sqlite": lambda: SqliteStorage(path, "none"),
            "memory": MemoryStorage,
            "lasting": cache(LastingStorage),  # a restart takes the same store
        }
        trio.run(play, program, makers[kind])
