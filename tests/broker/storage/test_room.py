"""A disk that is almost full: the store refuses messages, takes all other commits, and finds room after deletions."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import trio

from pulsarium.broker.storage import place, snapshot
from pulsarium.broker.storage.interface import Batch, EntryRun, StorageError
from pulsarium.broker.storage.snapshot import Snapshot
from pulsarium.broker.storage.sqlite import SqliteStorage
from tests.broker.loopback import until
from tests.broker.storage.asking import ask, batch_of

MB = 1 << 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Create a disk of 64 MB, and yield its path. Only root can mount such a disk."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(place)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("needs a file system of its own")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


async def no_longer_full(store: SqliteStorage) -> None:
    """Wait until the store finds room. Each read of `refusal` makes the store look again."""
    await until(lambda: not store.refusal)


async def test_deleted_ledgers_make_room_on_a_full_disk(small_disk: Path, nursery: trio.Nursery) -> None:
    store = SqliteStorage(small_disk / "data")
    await nursery.start(store.run)
    entries = 0
    while not store.refusal:
        await ask(store.commit, batch_of(1, entries, bytes([entries % 256]) * MB))
        entries += 1
    assert entries > 30
    await ask(store.commit, Batch({}, {"/acknowledged": bytes(100_000)}))  # metadata is still stored
    assert await ask(store.read, 1, 0, 0) == [bytes(MB)]
    assert len(await ask(store.read, 1, 0, entries - 1)) == entries
    for ledger in (2, 3):  # more than fits: the store uses the space of deleted ledgers
        await ask(store.commit, Batch({}, {}, [ledger - 1]))
        for number in range(25):
            await no_longer_full(store)  # the broker sends no message to a store that refuses
            await ask(store.commit, batch_of(ledger, number, bytes(MB)))


async def test_a_disk_that_others_fill(small_disk: Path, nursery: trio.Nursery) -> None:
    store = SqliteStorage(small_disk / "data")
    await nursery.start(store.run)
    await ask(store.commit, batch_of(1, 0, b"kept"))
    filler = small_disk / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(bytes(MB)):
            pass
    refused = batch_of(1, 1, bytes(8 * MB))
    with pytest.raises(StorageError, match=r"full|disk I/O error"):
        await ask(store.commit, refused)
    assert await ask(store.read, 1, 0, 0) == [b"kept"]
    filler.unlink()
    await no_longer_full(store)
    await ask(store.commit, batch_of(2, 0, b"again", era=1))
    assert await ask(store.read, 2, 0, 0) == [b"again"]


def test_a_snapshot_that_has_no_room_leaves_the_old_one(small_disk: Path) -> None:
    path = small_disk / "snapshot"
    snapshot.write(path, {"a": b"old"}, [], {})
    with pytest.raises(StorageError, match="cannot write"):
        snapshot.write(path, {"a": b"new"}, ((1, EntryRun(number, [bytes(MB)])) for number in range(100)), {})
    assert list(small_disk.iterdir()) == [path]
    with Snapshot(path) as found:
        assert found.metadata == {"a": b"old"}


async def test_the_reserve_is_kept_wherever_the_disk_is(
    tmp_path: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, "RESERVE_SHARE", 1)
    monkeypatch.setattr(place, "RESERVE_BYTES", 1 << 62)
    store = SqliteStorage(tmp_path)
    await nursery.start(store.run)
    await ask(store.commit, batch_of(1, 0, b"one look comes at the start"))
    await ask(store.commit, Batch({}, {"/tick": b""}))
    assert store.refusal
    monkeypatch.setattr(place, "RESERVE_BYTES", 0)
    await no_longer_full(store)
