"""Tests that failed in a crowded run of .ci/run run once more, alone, and no others are excused."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

AGAIN = Path(__file__).parents[2] / ".ci" / "again"
FAILED = [f"tests/test_it.py::test_{number}" for number in range(4)]


class Checkout:
    """A checkout in which tests failed. Its scripts/test writes down its options, and ends as it is told."""

    def __init__(self, folder: Path) -> None:
        self._asked = folder / "asked"
        self._again = folder / ".ci" / "again"
        self._failed = folder / "build" / "pytest-cache" / "v" / "cache" / "lastfailed"
        self.without_test = folder / "build" / "requirements-without-test.txt"
        for path in (self._again, self._failed, folder / "scripts" / "test", folder / ".venv" / "bin" / "python"):
            path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(AGAIN, self._again)
        (folder / ".venv" / "bin" / "python").symlink_to(sys.executable)
        script = folder / "scripts" / "test"
        script.write_text(f'#!/usr/bin/env bash\necho "$@" >{self._asked}\nexit "${{STATUS}}"\n')
        script.chmod(0o755)

    def again(self, *failed: str, passes: bool) -> subprocess.CompletedProcess[str]:
        self._failed.write_text(json.dumps(dict.fromkeys(failed, True)))
        environment = {"STATUS": "0" if passes else "1", "PATH": "/usr/bin:/bin"}
        return subprocess.run([self._again], env=environment, capture_output=True, text=True, check=False)

    @property
    def options(self) -> str | None:
        """The options of the run of tests, if there was one."""
        return self._asked.read_text().strip() if self._asked.exists() else None


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_three_tests_that_pass_alone_are_named_and_excused(checkout: Checkout) -> None:
    done = checkout.again(*FAILED[:3], passes=True)
    assert checkout.options == "--last-failed -n 0"
    assert done.returncode == 0
    assert done.stdout.splitlines()[-4:] == [
        "These tests passed alone. They failed beside others, and the cause is to be found:",
        *(f"  {test}" for test in FAILED[:3]),
    ]


def test_a_test_that_fails_again_fails_the_run(checkout: Checkout) -> None:
    assert checkout.again(FAILED[0], passes=False).returncode == 1


@pytest.mark.parametrize("failed", [FAILED, []], ids=["four tests", "no test, but something else"])
def test_more_than_chance_is_not_excused(failed: list[str], checkout: Checkout) -> None:
    assert checkout.again(*failed, passes=True).returncode == 1
    assert checkout.options is None


def test_a_test_that_proves_a_requirement_is_not_excused(checkout: Checkout) -> None:
    checkout.without_test.write_text("S54-03\tparts of batches\n")
    assert checkout.again(FAILED[0], passes=True).returncode == 1
    assert checkout.options is None
