"""A test that fails by chance is found and named, and orders of files follow from a seed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

ROOT = Path(__file__).parents[2]
CONFTEST = "from tests.conftest import pytest_addoption, pytest_collection_modifyitems"
CHANCE = """
from pathlib import Path

def test_every_second_time():
    before = Path("before")
    if before.exists():
        before.unlink()
        raise AssertionError("by chance")
    before.touch()

def test_always():
    pass
"""
NOTING = """
def test_it():
    with open("order", "a") as order:
        print(__name__, file=order)
"""

# Each test starts pytest several times, which a busy machine makes long.
pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]

Flaky: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def flaky(tmp_path: Path) -> Flaky:
    """Return a function that runs the script on the tests in `tmp_path`."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "conftest.py").write_text(CONFTEST)

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-m", "tests.flaky", *options, "-n", "0", "-p", "no:cacheprovider"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    return run


def test_a_test_that_fails_in_some_runs_is_named(flaky: Flaky, tmp_path: Path) -> None:
    (tmp_path / "test_chance.py").write_text(CHANCE)
    found = flaky("--loaded", "2", "--shuffled", "0")
    *runs, last = found.stdout.splitlines()
    assert [line.rpartition(",")[0] for line in runs] == [
        "run 1 of 2, under load: 0 failed",
        "run 2 of 2, under load: 1 failed",
    ]
    assert last == "test_chance.py::test_every_second_time failed in 1 of 2 runs: 2"
    assert found.returncode == 1
    assert "by chance" in (tmp_path / "build" / "flaky" / "2.txt").read_text()


def test_files_are_shuffled_by_the_seed_and_all_that_pass_is_well(flaky: Flaky, tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"test_{number}.py").write_text(NOTING)
    found = flaky("--loaded", "0", "--shuffled", "2", "--seed", "3")
    assert found.returncode == 0, found.stdout
    flaky("--loaded", "0", "--shuffled", "1", "--seed", "4")
    order = (tmp_path / "order").read_text().split()
    first, second, again = (order[begin : begin + 6] for begin in range(0, 18, 6))
    assert sorted(first) == sorted(second) == [f"test_{number}" for number in range(6)]
    assert sorted(first) != first != second == again


def test_a_run_without_any_test_is_no_success(flaky: Flaky) -> None:
    found = flaky("--loaded", "0", "--shuffled", "1")
    assert found.returncode == 1
    assert "pytest ended with 5: build/flaky/1.txt failed in 1 of 1 runs: 1" in found.stdout
