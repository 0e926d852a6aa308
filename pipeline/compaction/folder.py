"""The folder in which one compaction works. It goes with that; a killed broker's goes with the next compaction."""

from __future__ import annotations

import fcntl
import logging
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

log = logging.getLogger("pulsarium.compaction")

PREFIX = "pulsarium-compaction-"
LOCK = "lock"
SHORTLY = 0.01


@contextmanager
def work_folder(parent: Path) -> Iterator[Path]:
    """A new folder for this user only, locked as long as it is worked in."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    try:
        unlocked = folder / f"{LOCK}.new"
        with unlocked.open("wb") as lock:
            with suppress(OSError):  # a file system without locks: then nobody else may remove the folder
                fcntl.flock(lock, fcntl.LOCK_EX)
                unlocked.rename(folder / LOCK)  # whoever finds it finds it locked
            yield folder
    finally:
        remove(folder)


def remove_abandoned(parent: Path) -> Iterator[Path]:
    """Remove the folders of brokers that were killed, one by one: those whose lock can be had."""
    for lock in parent.glob(f"{PREFIX}*/{LOCK}"):
        with suppress(OSError), lock.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove(lock.parent)
            yield lock.parent


def remove(folder: Path) -> None:
    """Remove a folder in which somebody who is about to end may still write; the lock last, so that it is found."""
    for _ in range(20):
        for each in _inside(folder):
            if each.is_dir():
                shutil.rmtree(each, ignore_errors=True)
            elif each.name != LOCK:
                with suppress(OSError):
                    each.unlink()
        if all(each.name == LOCK for each in _inside(folder)):
            shutil.rmtree(folder, ignore_errors=True)
            return
        time.sleep(SHORTLY)
    log.warning("compaction on Spark: %s could not be removed", folder)


def _inside(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []
