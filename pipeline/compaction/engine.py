"""The engine that a broker runs: `pulsarium serve --compaction-engine spark`.

It spools the topic to files, lets a child process run the Spark job over them, and writes what that leaves. The
broker's loop reads and writes in slices and otherwise waits. It is a `Compactor` of the broker without importing it.
"""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from pulsarium.pipeline.compaction.child import Child
from pulsarium.pipeline.compaction.chunks import IN, KEY, OUT, Spool, Work, positioned, read
from pulsarium.pipeline.compaction.folder import remove_abandoned, work_folder
from pulsarium.pipeline.compaction.formats import PULSAR, format_of
from pulsarium.pipeline.spark import require_java

log = logging.getLogger("pulsarium.compaction")


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
    format: pulsar, values, or module:object (`formats.py`).
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
