"""Compact topics of a broker on Spark: `pulsarium serve --compaction-engine spark`.

The engine spools the topic to files, runs the Spark job in a child process, and writes the job's result. The broker's
loop reads and writes in slices, and waits without blocking. The engine is a `Compactor` of the broker, and does not
import the broker.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Protocol

from pulsarium.pipeline.compaction.chunks import (
    IN,
    KEY,
    OUT,
    PULSAR,
    SHORTLY,
    CompactionTask,
    Spool,
    format_of,
    positioned,
    read,
    remove_abandoned,
    work_folder,
)
from pulsarium.pipeline.compaction.job import JobResult
from pulsarium.pipeline.spark import require_java

log = logging.getLogger("pulsarium.compaction")

MODULE = "pulsarium.pipeline.compaction.job"
LOG = "job.log"
PROGRESS = 10.0  # seconds between two log lines about progress
KILLED = 0.5  # longest wait for killed processes, in seconds, because the broker's loop waits


class Child:
    """A process that runs the job.

    It calls `done()` from a thread when it ends. Raises `RuntimeError` when it cannot start.
    """

    def __init__(self, work: CompactionTask, done: Callable[[], None]) -> None:
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
                    stdin=subprocess.PIPE,  # the child ends when this pipe closes
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        except OSError as error:
            raise RuntimeError(f"cannot start the Spark job: {error}") from error
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

    def result(self) -> JobResult:
        """Return the job's result. Raise `RuntimeError` with the last line of its output when it failed."""
        result = JobResult.load(self._work.folder)
        if result is None:
            raise RuntimeError(f"the Spark job ended with exit code {self._code} and no result: {self._last_line()}")
        if result.error is not None:
            raise RuntimeError(f"the Spark job failed: {result.error}")
        return result

    def _last_line(self) -> str:
        text = (Path(self._work.folder) / LOG).read_text(errors="replace").strip()
        return text.splitlines()[-1] if text else "no output"

    def stop(self) -> None:
        """Kill the process and its JVM, which are one process group.

        The JVM outlives a killed Python. Further calls do nothing.
        """
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
    """Wait until all processes of a killed group have ended, or until time.monotonic() is `until`."""
    with suppress(ProcessLookupError, PermissionError):
        while time.monotonic() < until:
            with suppress(ChildProcessError):  # the broker reaps orphans where it is process 1 of a container
                os.waitpid(-group, os.WNOHANG)
            os.killpg(group, 0)
            time.sleep(SHORTLY)


class EngineReader(Protocol):
    """Protocol of the broker's RawReader."""

    def read(self, ready: Callable[[], None]) -> list[Any] | None: ...
    def rewind(self) -> None: ...


class EngineWriter(Protocol):
    """Protocol of the broker's Writer."""

    removed: int

    def write(self, position: Any, entry: bytes) -> None: ...


class SparkCompactor:
    """The engine of the entry point `spark`. Its arguments are the options of `--compaction-option`.

    master: master URL of Spark, such as local[*], local[2] or spark://host:port.
    work_dir: parent of the folders to which topics are spooled. All workers need it at the same path, and need
        pulsarium[spark] installed.
    format: pulsar, values, or module:object (`chunks.py`).
    chunk_bytes: size of the part of a topic that is one task, in bytes.
    spark.*: any setting of Spark.

    One job runs at a time, and others wait. Raises `ValueError` for an unknown or invalid option, and `NoJava` where
    Spark has no Java.
    """

    def __init__(
        self,
        *,
        master: str = "local[*]",
        work_dir: str | None = None,
        format: str = PULSAR,
        chunk_bytes: str | int = "33554432",
        **config: str,
    ) -> None:
        strange = [key for key in config if not key.startswith("spark.")]
        if strange:
            known = "master, work-dir, format, chunk-bytes, and Spark's own spark.*"
            raise ValueError(f"unknown option: {', '.join(strange)}; the options are {known}")
        if not str(chunk_bytes).isdigit() or int(chunk_bytes) < 1:
            raise ValueError(f"chunk-bytes must be a number of at least 1, not {chunk_bytes}")
        self._work_dir = Path(work_dir or tempfile.gettempdir()).absolute()
        if not self._work_dir.is_dir():
            raise ValueError(f"work-dir: {self._work_dir} is not a folder")
        format_of(format)
        require_java()
        self._master = master
        self._format = format
        self._chunk_bytes = int(chunk_bytes)
        self._config = tuple(config.items())
        self._turns: dict[object, Callable[[], None]] = {}  # in order of arrival: the first one works
        self._work: CompactionTask | None = None
        self._ended = False  # whether the job has ended and its files are being deleted

    @property
    def finished(self) -> float:
        """Return the finished share of the latest job, from 0 to 1."""
        if self._ended or self._work is None:
            return float(self._ended)
        try:
            return self._work.finished
        except FileNotFoundError:  # its folder is deleted
            return 1.0

    def create_raw_reader(self, topic: Any) -> Any:
        """Return the topic's own reader. Spark converts other formats back, and not the broker's loop."""
        return topic.compaction.raw_reader()

    def compact(
        self, reader: EngineReader, writer: EngineWriter, ready: Callable[[], None], *, retain_null_key: bool
    ) -> Generator[bool, None, None]:
        """Compact a topic in steps; a step yields True while it waits for `ready`.

        Raise `RuntimeError` when the job fails. All files and processes are removed in any case.
        """
        turn = object()
        self._turns[turn] = ready
        try:
            while turn is not self._first:
                yield True
            for folder in remove_abandoned(self._work_dir):
                log.warning("compaction on Spark: removed %s of a broker that was killed", folder)
                yield False
            with work_folder(self._work_dir) as folder:
                yield from self._compact(folder, reader, writer, ready, retain_null_key)
        finally:
            comes_next = turn is self._first
            del self._turns[turn]
            if comes_next and self._turns:
                self._turns[self._first]()

    @property
    def _first(self) -> object:
        """Return the compaction whose turn is now."""
        return next(iter(self._turns))

    def _compact(
        self, folder: Path, reader: EngineReader, writer: EngineWriter, ready: Callable[[], None], retain_null_key: bool
    ) -> Iterator[bool]:
        spool = Spool(folder, chunk_bytes=self._chunk_bytes)
        child: Child | None = None
        self._work, self._ended = None, False
        try:
            begun = time.monotonic()
            yield from spooled(reader, spool, ready)
            work = self._work = CompactionTask(
                str(folder), spool.chunks, retain_null_key, self._format, self._master, self._config
            )
            work.save()
            log.info("compaction on Spark: read %d entries in %.1f s", spool.entries, time.monotonic() - begun)
            begun = time.monotonic()
            child = Child(work, ready)
            while not child.ended:
                yield True
            result = child.result()
            self._ended = True
            log.info(
                "compaction on Spark: %d entries remain, computed in %.1f s", result.entries, time.monotonic() - begun
            )
            writer.removed = result.removed
            yield from written(work, writer)
        finally:
            with suppress(OSError):  # the disk is full: the last write has already reported that
                spool.close_file()
            if child is not None:
                child.stop()


def spooled(reader: EngineReader, spool: Spool, ready: Callable[[], None]) -> Iterator[bool]:
    """Write all entries of the topic to files, in steps."""
    reader.rewind()
    while True:
        found = reader.read(ready)
        if found is None:
            yield True
            continue
        if not found:
            break
        spool.add(found)
        yield False
    spool.close()
    yield False


def written(work: CompactionTask, writer: EngineWriter) -> Iterator[bool]:
    """Write the remaining entries in order, in steps.

    The files of a chunk are deleted after it. Deleting all at once would block the broker's loop.
    """
    for chunk in range(work.chunks):
        for batch in read(work.path(OUT, chunk)):
            for position, entry in positioned(batch):
                writer.write(position, entry)
                yield False
        for kind in (IN, KEY, OUT):
            work.path(kind, chunk).unlink()
        yield False
