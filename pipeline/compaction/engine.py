"""The engine that a broker runs: `pulsarium serve --compaction-engine spark`.

It spools the topic to files, lets a child process run the Spark job over them, and writes what that leaves. The
broker's loop reads and writes in slices and otherwise waits. It is a `Compactor` of the broker without importing it.
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
    Spool,
    Work,
    format_of,
    positioned,
    read,
    remove_abandoned,
    work_folder,
)
from pulsarium.pipeline.compaction.job import Result
from pulsarium.pipeline.spark import require_java

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


class Reader(Protocol):
    """The broker's RawReader."""

    def read(self, ready: Callable[[], None]) -> list[Any] | None: ...
    def rewind(self) -> None: ...


class Writer(Protocol):
    """The broker's Writer."""

    removed: int

    def write(self, position: Any, entry: bytes) -> None: ...


class SparkCompactor:
    """What the entry point `spark` names; its arguments are the options of `--compaction-option`.

    master: of Spark: local[*], local[2], spark://host:port.
    work_dir: where topics are spooled, in folders that go with their compaction; all workers have to see it at the same
        path, and have pulsarium[spark] installed.
    format: pulsar, values, or module:object (`chunks.py`).
    chunk_bytes: how much of a topic is one task.
    spark.*: any setting of Spark's.

    One job runs at a time; others wait. ValueError for an option that is none, NoJava where Spark has no Java.
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
            known = "master, work-dir, format, chunk-bytes, and spark.* of Spark's own"
            raise ValueError(f"no such option: {', '.join(strange)}; there are {known}")
        if not str(chunk_bytes).isdigit() or int(chunk_bytes) < 1:
            raise ValueError(f"chunk-bytes is a number from 1 on, not {chunk_bytes}")
        self._work_dir = Path(work_dir or tempfile.gettempdir()).absolute()
        if not self._work_dir.is_dir():
            raise ValueError(f"work-dir: {self._work_dir} is no folder")
        format_of(format)
        require_java()
        self._master = master
        self._format = format
        self._chunk_bytes = int(chunk_bytes)
        self._config = tuple(config.items())
        self._turns: dict[object, Callable[[], None]] = {}  # in the order in which they came: the first one works
        self._work: Work | None = None
        self._ended = False  # its job is, and its files go

    @property
    def finished(self) -> float:
        """How much of the job that was begun last is done, from 0 to 1."""
        if self._ended or self._work is None:
            return float(self._ended)
        try:
            return self._work.finished
        except FileNotFoundError:  # its folder is gone
            return 1.0

    def create_raw_reader(self, topic: Any) -> Any:
        """The topic's own: a format of ours is turned back in Spark, not on the broker's loop."""
        return topic.compaction.raw_reader()

    def compact(
        self, reader: Reader, writer: Writer, ready: Callable[[], None], *, retain_null_key: bool
    ) -> Generator[bool, None, None]:
        """True: it waits for `ready`. RuntimeError when the job fails; whatever happens, nothing is left behind."""
        turn = object()
        self._turns[turn] = ready
        try:
            while turn is not self._first:
                yield True
            for folder in remove_abandoned(self._work_dir):
                log.warning("compaction on Spark: a broker that was killed left %s, which is removed", folder)
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
        """Whose turn it is."""
        return next(iter(self._turns))

    def _compact(
        self, folder: Path, reader: Reader, writer: Writer, ready: Callable[[], None], retain_null_key: bool
    ) -> Iterator[bool]:
        spool = Spool(folder, chunk_bytes=self._chunk_bytes)
        child: Child | None = None
        self._work, self._ended = None, False
        try:
            begun = time.monotonic()
            yield from spooled(reader, spool, ready)
            work = self._work = Work(
                str(folder), spool.chunks, retain_null_key, self._format, self._master, self._config
            )
            work.save()
            log.info("compaction on Spark: %d entries read in %.1f s", spool.entries, time.monotonic() - begun)
            begun = time.monotonic()
            child = Child(work, ready)
            while not child.ended:
                yield True
            result = child.result()
            self._ended = True
            log.info("compaction on Spark: %d entries stay, found in %.1f s", result.entries, time.monotonic() - begun)
            writer.removed = result.removed
            yield from written(work, writer)
        finally:
            with suppress(OSError):  # the disk is full: whoever wrote last was told
                spool.close_file()
            if child is not None:
                child.stop()


def spooled(reader: Reader, spool: Spool, ready: Callable[[], None]) -> Iterator[bool]:
    """All entries to files."""
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


def written(work: Work, writer: Writer) -> Iterator[bool]:
    """What stays, in order. A chunk's files go with it: all at once they would hold the broker's loop."""
    for chunk in range(work.chunks):
        for batch in read(work.path(OUT, chunk)):
            for position, entry in positioned(batch):
                writer.write(position, entry)
                yield False
        for kind in (IN, KEY, OUT):
            work.path(kind, chunk).unlink()
        yield False
