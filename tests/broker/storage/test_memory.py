from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
import trio

from pulsarium.broker.storage.interface import Batch, EntryRun, Storage, StorageError
from pulsarium.broker.storage.memory import MemoryStorage
from tests.broker.storage.asking import ask, batch_of, no_file_grows_beyond
from tests.workers import unmeasured


@pytest.fixture
async def store(nursery: trio.Nursery) -> Storage:
    store = MemoryStorage()
    await nursery.start(store.run)
    return store


def storage_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("storage")]


def megabytes(first: int, count: int) -> EntryRun:
    return EntryRun(first, [bytes([number % 256]) * (1 << 20) for number in range(first, first + count)])


async def test_a_commit_is_done_at_once_and_keeps_no_entries(store: Storage) -> None:
    assert not store.keeps_entries
    answers: list[Exception | None] = []
    store.commit(batch_of(1, 0, b"a", path=b"value"), answers.append)
    assert answers == [None]
    assert store.load_metadata() == {"path": b"value"}
    store.commit(Batch(metadata={"path": None}), answers.append)
    assert store.load_metadata() == {}
    assert store.stored_runs(1) == []
    with pytest.raises(StorageError, match="nothing was spilled"):
        await ask(store.read, 1, 0, 0)
    with pytest.raises(StorageError, match="nothing was spilled"):
        store.read_now(1, 0, 0)


async def test_spilled_entries_can_be_read(store: Storage) -> None:
    await ask(store.spill, 1, EntryRun(0, [b"a", b"b"]))
    await ask(store.spill, 1, EntryRun(2, [b"c"]))
    await ask(store.spill, 2, EntryRun(0, [b"x"]))
    assert await ask(store.read, 1, 1, 2) == [b"b", b"c"]
    assert store.read_now(1, 0, 2) == [b"a", b"b", b"c"]
    assert store.stored_runs(1) == [(0, 2, 2), (2, 1, 1)]
    for failed in (1, 3):
        with pytest.raises(StorageError, match="not stored"):
            store.read_now(failed, 3, 3)


def test_there_is_no_thread_and_no_sqlite_before_the_first_spill() -> None:
    script = (
        "import sys, threading, trio\n"
        "from pulsarium.broker.storage.memory import MemoryStorage\n"
        "async def main():\n"
        "    async with trio.open_nursery() as nursery:\n"
        "        await nursery.start(MemoryStorage().run)\n"
        "        print(threading.active_count(), 'sqlite3' in sys.modules)\n"
        "        nursery.cancel_scope.cancel()\n"
        "trio.run(main)\n"
    )
    command = [sys.executable, "-P", "-c", script]
    child = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30, env=unmeasured())
    assert child.stdout == "1 False\n"


async def test_the_thread_ends_with_the_store() -> None:
    store = MemoryStorage()
    before = storage_threads()
    answers: list[Exception | None] = []
    async with trio.open_nursery() as nursery:
        store.spill(1, EntryRun(0, [b"early"]), answers.append)
        await nursery.start(store.run)
        await ask(store.spill, 1, EntryRun(1, [b"a"]))
        assert "storage spill" in storage_threads()
        nursery.cancel_scope.cancel()
    assert answers == [None]
    assert storage_threads() == before
    with pytest.raises(StorageError, match="closed"):
        await ask(store.spill, 1, EntryRun(2, [b"a"]))
    with pytest.raises(StorageError, match="closed"):
        store.read_now(1, 0, 0)


async def test_a_run_that_cannot_be_spilled_is_refused(store: Storage) -> None:
    await ask(store.spill, 1, EntryRun(0, [b"a"]))
    with pytest.raises(StorageError, match="UNIQUE"):
        await ask(store.spill, 1, EntryRun(0, [b"again"]))
    with pytest.raises(StorageError, match="too large for the store"):
        await ask(store.spill, 1 << 31, EntryRun(0, [b"a"]))
    assert store.read_now(1, 0, 0) == [b"a"]


async def test_a_temporary_disk_without_room(store: Storage) -> None:
    await ask(store.spill, 1, megabytes(0, 2))
    with no_file_grows_beyond(4 << 20):
        for _ in range(3):
            with pytest.raises(StorageError, match="disk"):
                await ask(store.spill, 1, megabytes(2, 12))
        assert await ask(store.read, 1, 0, 1) == megabytes(0, 2).entries
    await ask(store.spill, 1, megabytes(2, 12))
    assert await ask(store.read, 1, 0, 13) == megabytes(0, 14).entries


async def test_the_space_of_a_deleted_ledger_is_used_again(store: Storage) -> None:
    def temporary_files() -> int:
        size = 0
        for descriptor in os.listdir("/proc/self/fd"):
            with suppress(FileNotFoundError):  # the descriptor of this listing itself
                if "etilqs" in os.readlink(f"/proc/self/fd/{descriptor}"):
                    size += os.fstat(int(descriptor)).st_size
        return size

    before = temporary_files()
    sizes = []
    for ledger_id in range(1, 5):
        await ask(store.spill, ledger_id, megabytes(0, 12))
        store.commit(Batch(deleted_ledgers=[ledger_id, 100]), lambda error: None)
        with pytest.raises(StorageError, match="not stored"):
            await ask(store.read, ledger_id, 0, 0)
        sizes.append(temporary_files() - before)
    assert sizes[0] > 8 << 20
    assert sizes[-1] <= sizes[0] + (1 << 20)


@pytest.mark.parametrize("era", [0, 1, 7])
async def test_a_commit_in_memory_succeeds_in_any_era(store: Storage, era: int) -> None:
    for each in (era, 0):
        await ask(store.commit, batch_of(1, 0, b"x", era=each, path=b"value"))


def test_nothing_is_left_in_the_temporary_directory(tmp_path: Path) -> None:
    """The store deletes its file in TMPDIR while the file is open."""
    script = (
        "import os, trio\n"
        "from pulsarium.broker.storage.interface import EntryRun\n"
        "from pulsarium.broker.storage.memory import MemoryStorage\n"
        "async def main():\n"
        "    store = MemoryStorage()\n"
        "    async with trio.open_nursery() as nursery:\n"
        "        await nursery.start(store.run)\n"
        "        spilled = trio.Event()\n"
        "        store.spill(1, EntryRun(0, [bytes(1 << 20)] * 8), lambda error: spilled.set())\n"
        "        await spilled.wait()\n"
        "        for name in os.listdir('/proc/self/fd'):\n"
        "            try:\n"
        "                print(os.readlink('/proc/self/fd/' + name))\n"
        "            except FileNotFoundError:\n"
        "                pass\n"
        "        print(os.listdir(os.environ['TMPDIR']))\n"
        "        nursery.cancel_scope.cancel()\n"
        "trio.run(main)\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "SQLITE_TMPDIR"}
    child = subprocess.run(
        [sys.executable, "-P", "-c", script],
        env={**environment, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    *links, listing = child.stdout.splitlines()
    assert listing == "[]"
    (link,) = (link for link in links if link.startswith(str(tmp_path)))
    assert link.endswith(" (deleted)")
    assert list(tmp_path.iterdir()) == []
