"""`pulsarium` where Python lacks what only POSIX systems have, as on Windows: it serves, or refuses in one line."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# Other packages are imported first, with the POSIX modules. The test is about our own imports.
PROGRAM = """
import os, sys
import anyio, asyncio, multiprocessing, sqlite3, ssl, trio
for module in ("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty"):
    sys.modules[module] = None
for name in ("O_CLOEXEC", "O_NONBLOCK", "fork", "getpgrp", "getuid", "killpg", "setsid", "statvfs", "sysconf", "uname"):
    delattr(os, name)
from pulsarium.cli.main import main
main()
"""
COMMAND = (sys.executable, "-P", "-c", PROGRAM)
SERVE = ("serve", "--port", "0", "--http-port", "0", "--log-level", "warning")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], check=False, capture_output=True, text=True)


@pytest.fixture
def service_url() -> Iterator[str]:
    """Yield the service URL of a broker without POSIX."""
    with subprocess.Popen([*COMMAND, *SERVE], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[2]
        finally:
            process.terminate()
    assert process.returncode == 0


def test_a_broker_serves_a_client(service_url: str) -> None:
    sent = run("client", "--url", service_url, "produce", "-m", "hello", "t")
    assert sent.returncode == 0, sent.stderr
    got = run("client", "--url", service_url, "consume", "-s", "s", "-p", "Earliest", "t")
    assert (got.returncode, "content:hello" in got.stdout) == (0, True), got.stdout + got.stderr


@pytest.mark.parametrize(
    ("option", "refusal"),
    [("--data", "cannot lock {path}/pulsarium.lock"), ("--capture", "--capture: {path}")],
)
def test_a_file_that_cannot_be_locked_is_refused_in_one_line(option: str, refusal: str, tmp_path: Path) -> None:
    path = tmp_path / "kept"
    refused = run(*SERVE, option, str(path))
    assert (refused.returncode > 0, refused.stdout) == (True, "")
    reason = refusal.format(path=path)
    assert refused.stderr == f"pulsarium: {reason}: this system has no file locks; use Linux, macOS or WSL\n"
