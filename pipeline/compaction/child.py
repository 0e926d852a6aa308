"""The process in which a compaction's Spark job runs: the broker has no JVM, and none outlives its work."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread

from pulsarium.pipeline.compaction.chunks import Work
from pulsarium.pipeline.compaction.folder import SHORTLY
from pulsarium.pipeline.compaction.job import Result

log = logging.getLogger("pulsarium.compaction")

MODULE = "pulsarium.pipeline.compaction.job"
LOG = "job.log"
PROGRESS = 10.0  # seconds between two lines of the log
KILLED = 0.5  # seconds until killed processes are gone, at most: the broker's loop may wait for that


class Child:
    """Runs the job; `done()` is called at its end, from a thread. RuntimeError when it cannot be started."""

    def __init__(self, work: Work, done: Callable[[], None]) -> None:
        self.ended = False
        self._work = work
        self._done = done
        self._lock = Lock()  # of the next field
        self._gone = False
        self._code: int | None = None
        try:
            with (Path(work.folder) / LOG).open("wb") as output:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", MODULE, work.folder],
                    stdin=subprocess.PIPE,  # its end tells the child that this process has ended
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        except OSError as error:
            raise RuntimeError(f"the Spark job could not be started: {error}") from error
        Thread(target=self._run, name="compaction", daemon=True).start()

    def _run(self) -> None:
        try:
            self._code = self._wait()
            self.stop()
        finally:
            self.ended = True
            self._done()

    def _wait(self) -> int:
        while True:
            try:
                return self._process.wait(PROGRESS)
            except subprocess.TimeoutExpired:
                with suppress(OSError):  # the folder is being removed
                    log.info("compaction on Spark: %.0f %%", 100 * self._work.finished)

    def result(self) -> Result:
        """What came of it. RuntimeError with the job's last word when it failed."""
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
        """End it, with the JVM: that outlives its Python by a moment, or by more when that was killed; both are one
        process group. May be called again."""
        process, until = self._process, time.monotonic() + KILLED
        with self._lock:
            if self._gone:
                return
            self._gone = True
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                process.wait(KILLED)
            wait_for_group(process.pid, until)
            assert process.stdin is not None
            process.stdin.close()


def wait_for_group(group: int, until: float) -> None:
    """Until all processes of a killed group are gone, or time.monotonic() is `until`."""
    with suppress(ProcessLookupError, PermissionError):
        while time.monotonic() < until:
            with suppress(ChildProcessError):  # there are orphans here where the broker is process 1 of a container
                os.waitpid(-group, os.WNOHANG)
            os.killpg(group, 0)
            time.sleep(SHORTLY)
