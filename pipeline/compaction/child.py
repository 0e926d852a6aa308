"""The process in which a compaction's Spark job runs: the broker has no JVM, and none outlives its work."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread

from pulsarium.pipeline.compaction.chunks import Work
from pulsarium.pipeline.compaction.job import Result

log = logging.getLogger("pulsarium.compaction")

MODULE = "pulsarium.pipeline.compaction.job"
LOG = "job.log"
PROGRESS = 10.0  # seconds between two lines of the log
KILLED = 5.0  # seconds until killed processes are gone, at most
SHORTLY = 0.01


class Child:
    """Runs the job once `turn` is free; `done()` is called at its end, from a thread."""

    def __init__(self, work: Work, turn: Lock, done: Callable[[], None]) -> None:
        self.ended = False
        self._work = work
        self._turn = turn
        self._done = done
        self._lock = Lock()  # of the three fields below
        self._stopped = False
        self._gone = False
        self._process: subprocess.Popen[bytes] | None = None
        self._code: int | None = None
        self._trouble: OSError | None = None
        Thread(target=self._run, name="compaction", daemon=True).start()

    def _run(self) -> None:
        try:
            with self._turn:
                self._start()
                if self._process is not None:
                    self._code = self._wait(self._process)
                    self._end_all(self._process)
        except OSError as error:
            self._trouble = error
        finally:
            self.ended = True
            self._done()

    def _start(self) -> None:
        with self._lock:
            if self._stopped:
                return
            with (Path(self._work.folder) / LOG).open("wb") as output:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", MODULE, self._work.folder],
                    stdin=subprocess.PIPE,  # its end tells the child that this process has ended
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )

    def _wait(self, process: subprocess.Popen[bytes]) -> int:
        while True:
            try:
                return process.wait(PROGRESS)
            except subprocess.TimeoutExpired:
                with suppress(OSError):  # the folder is being removed
                    log.info("compaction on Spark: %.0f %%", 100 * self._work.finished)

    def result(self) -> Result:
        """What came of it. RuntimeError with the job's last word when it failed."""
        if self._trouble is not None:
            raise RuntimeError(f"the Spark job could not be started: {self._trouble}")
        result = Result.load(self._work.folder)
        if result is None:
            raise RuntimeError(f"the Spark job ended with {self._code}: {self._last_line()}")
        if result.error is not None:
            raise RuntimeError(f"the Spark job failed: {result.error}")
        return result

    def _last_line(self) -> str:
        text = (Path(self._work.folder) / LOG).read_text(errors="replace").strip()
        return text.splitlines()[-1] if text else "it said nothing"

    def stop(self) -> None:
        """End it, with the JVM; nothing of it runs any more afterwards. May be called again."""
        with self._lock:
            self._stopped = True
            process = self._process
        if process is not None:
            self._end_all(process)

    def _end_all(self, process: subprocess.Popen[bytes]) -> None:
        """The JVM outlives its Python by a moment, or by more when that was killed; both are one process group."""
        with self._lock:
            if self._gone:
                return
            self._gone = True
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                process.wait(KILLED)
            _wait_for_group(process.pid)
            assert process.stdin is not None
            process.stdin.close()


def _wait_for_group(group: int) -> None:
    until = time.monotonic() + KILLED
    with suppress(ProcessLookupError, PermissionError):
        while time.monotonic() < until:
            os.killpg(group, 0)
            time.sleep(SHORTLY)


def remove(folder: Path) -> None:
    """Remove a folder in which somebody who is about to end may still write."""
    for _ in range(20):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(SHORTLY)
    log.warning("compaction on Spark: %s could not be removed", folder)
