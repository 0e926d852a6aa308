from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pulsarium.broker.storage.interface import StorageError
from pulsarium.broker.storage.place import LOCK_NAME, DirectoryLock


def test_a_directory_is_locked_once(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    with pytest.raises(StorageError, match=rf"{tmp_path} is in use by another pulsarium \(pid {os.getpid()}\)"):
        DirectoryLock(tmp_path)
    lock.release()
    lock.release()
    DirectoryLock(tmp_path).release()


def test_another_process_is_told_who_has_it(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    script = (
        "import sys, pathlib\n"
        "from pulsarium.broker.storage.place import DirectoryLock\n"
        "DirectoryLock(pathlib.Path(sys.argv[1]))\n"
    )
    child = subprocess.run(
        [sys.executable, "-P", "-c", script, tmp_path], capture_output=True, text=True, check=False, timeout=30
    )
    assert child.returncode == 1
    assert f"is in use by another pulsarium (pid {os.getpid()})" in child.stderr
    lock.release()


def test_the_directory_is_made(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b" / LOCK_NAME).read_text() == f"{os.getpid()}\n"
    lock.release()


def test_a_path_that_is_no_directory_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match=r"cannot use .*file for data"):
        DirectoryLock(tmp_path / "file")
