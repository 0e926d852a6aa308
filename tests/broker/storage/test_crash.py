"""Crashes by kill -9: no acknowledged batch is lost, and no batch is kept in part."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from pulsarium.broker.config.options import Durability
from pulsarium.broker.storage.sqlite import SqliteStorage
from tests.broker.storage import crash_child


def start(*arguments: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", crash_child.__file__, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0)


def acknowledged(child: subprocess.Popen[bytes], kill_after: int | None = None) -> list[int]:
    """Return the numbers that the child acknowledged before its end. After `kill_after` numbers, kill the child."""
    assert child.stdout is not None
    output = b""
    with child:
        while data := child.stdout.read(65536):
            output += data
            if kill_after is not None and output.count(b"\n") >= kill_after:
                child.kill()
    assert child.returncode == -9
    return [int(line) for line in output[: output.rfind(b"\n") + 1].splitlines()]


def check(directory: Path, durability: Durability) -> int:
    """Check that the store has all of batches 0 to the last, and nothing more. Return the number of the last batch."""
    store = SqliteStorage(directory, durability)
    last = int(store.load_metadata()[crash_child.LAST])
    end = crash_child.first_entry(last + 1)
    assert sum(count for _, count, _ in store.stored_runs(crash_child.LEDGER)) == end
    expected = [entry for number in range(last + 1) for entry in crash_child.entries(number)]
    assert store.read_now(crash_child.LEDGER, 0, end - 1) == expected
    for number in range(last + 2):
        there = last - crash_child.LIFETIME < number <= last
        assert len(store.stored_runs(crash_child.own_ledger(number))) == (4 if there else 0)
    store.close()
    return last


@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_nothing_acknowledged_is_lost_to_kill(tmp_path: Path, durability: Durability) -> None:
    chance = random.Random(durability)
    last = -1
    for window in (1, 20, 100):
        numbers = acknowledged(start(tmp_path, durability, window), kill_after=chance.randrange(1, 150))
        assert numbers == list(range(last + 1, last + 1 + len(numbers)))
        last = check(tmp_path, durability)
        assert last >= numbers[-1]


@pytest.mark.parametrize(
    ("point", "occurrence", "last"),
    [
        ("BEGUN", 10, 8),  # nothing of the tenth batch is stored
        ("WRITTEN", 10, 9),  # all of it is stored, but not acknowledged
        ("COMMITTED", 10, 9),
        ("ACKNOWLEDGED", 10, 9),
        ("APPLYING", 3, None),
        ("DELETION", 4, None),
        ("MOVING", 1, None),
        ("REMOVING", 2, None),
    ],
)
def test_a_crash_at_each_persist_point(tmp_path: Path, point: str, occurrence: int, last: int | None) -> None:
    numbers = acknowledged(start(tmp_path, "os", 1, point, occurrence))
    stored = check(tmp_path, "os")
    assert stored >= max(numbers, default=-1)
    assert last is None or stored == last
