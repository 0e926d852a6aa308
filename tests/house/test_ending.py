"""A process of a test ends with its test, whatever happens to either."""

from __future__ import annotations

import subprocess
import sys

import pytest

import yardsticks.servers
from yardsticks.servers import ending


def waiting() -> subprocess.Popen[bytes]:
    """Start a process that ends with its standard input."""
    return subprocess.Popen([sys.executable, "-S", "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)


def test_a_process_is_killed_when_the_test_fails() -> None:
    process = waiting()
    with pytest.raises(AssertionError, match="the test failed"), ending(process):
        raise AssertionError("the test failed")
    assert process.returncode == -9


def test_a_process_that_does_not_end_fails_its_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yardsticks.servers, "PATIENCE", 0)
    process = waiting()
    with pytest.raises(subprocess.TimeoutExpired), ending(process):
        pass
    assert process.returncode == -9


def test_a_process_that_ends_keeps_its_exit_code() -> None:
    with ending(waiting()) as process:
        assert process.stdin is not None
        process.stdin.close()
    assert process.returncode == 0
