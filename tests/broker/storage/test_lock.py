from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pulsarium.broker.storage.interface import StorageError
from pulsarium.broker.storage.place import LOCK_NAME, DirectoryLock, permission_advice


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


def test_only_its_owner_may_enter_a_directory_that_was_made(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir(mode=0o755)
    for name in ("there", "new"):
        DirectoryLock(tmp_path / name).release()
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("there", "new")] == [0o755, 0o700]


def test_the_line_that_lets_a_user_write_gives_away_no_other_folder(tmp_path: Path) -> None:
    user = os.getuid()
    (tmp_path / "empty").mkdir()
    (tmp_path / "the data").mkdir()
    (tmp_path / "the data" / "file").touch()
    for path, line in (
        (tmp_path / "the data", f"chown -R {user} '{tmp_path}/the data'"),
        (tmp_path / "the data" / "file", f"chown -R {user} '{tmp_path}/the data'"),
        (tmp_path / "empty" / "standalone", f"chown -R {user} {tmp_path}/empty"),
        (tmp_path / "a" / "new", f"install -d -o {user} {tmp_path}/a/new"),
    ):
        assert permission_advice(path) == f"let this user write it: sudo {line}"


def test_the_line_for_a_mounted_folder_says_whose_path_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.path.ismount", lambda path: path == tmp_path)
    line = permission_advice(tmp_path / "standalone")
    assert line.endswith(f" {tmp_path} (for a container: on the host, with the path that is mounted at {tmp_path})")


def test_a_folder_that_this_user_cannot_even_search_is_refused_with_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = os.stat

    def refuse(path: Any, *given: Any, **options: Any) -> os.stat_result:  # root may search everywhere
        if str(path).startswith(f"{tmp_path}/"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return look(path, *given, **options)

    monkeypatch.setattr(os, "stat", refuse)
    monkeypatch.setattr(os, "listdir", lambda path: refuse(tmp_path / "it"))
    assert permission_advice(tmp_path / "it") == (
        f"let this user write it: sudo install -d -o {os.getuid()} {tmp_path}/it"
    )


def test_a_path_that_is_no_directory_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match=r"cannot use .*file for data"):
        DirectoryLock(tmp_path / "file")
