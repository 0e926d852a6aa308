"""Run the compaction of a topic: choose the engine, keep the result, and report status and stats.

Engines are entry points of the group `pulsarium.compaction`: a class or function that returns an engine. Its options
are keyword arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from time import perf_counter
from typing import Literal

import trio

from pulsarium.broker.config.meaning import ConfigError
from pulsarium.broker.logs import PartLog
from pulsarium.broker.model.compaction.compacted import CompactedTopic, CompactedWriter
from pulsarium.broker.model.compaction.compactor import Compactable, Compactor, Steps, TopicReader, TwoPhaseCompactor
from pulsarium.broker.model.compaction.raw import RawReader
from pulsarium.broker.model.compaction.record import CompactionRecord
from pulsarium.broker.model.errors import NotAllowedError

TURN = 0.001  # seconds after which other turns run, also when the machine did other work meanwhile
TURNS = 5  # until a pause, and a commit
PAUSE = 0.001  # seconds of pause; a wait for a commit takes longer

RunDone = Callable[["CompactionRun", Exception | None], None]


class CompactionRun:
    """Let an engine write a new compacted ledger, one commit at a time, and adopt the ledger once it is committed."""

    def __init__(self, topic: Compactable, record: CompactionRecord, done: RunDone) -> None:
        self.began_ms = topic.now_ms()
        self._topic = topic
        self._stores = topic.stores
        self._record = record
        self._done = done
        self._stopped = False
        self._finished = False  # the engine has no more work
        self._adopting = False  # the name of the new ledger is being stored
        self._scheduled = False
        self._turns = 0  # since the last pause
        self._writer: CompactedWriter | None = None
        self._steps: Steps | None = None
        self._token = trio.lowlevel.current_trio_token()

    @property
    def wrote(self) -> bool:
        """Return whether the topic had new entries to compact."""
        return self._writer is not None

    @property
    def removed(self) -> int:
        return self._writer.removed if self._writer is not None else 0

    def begin(self, engine: Compactor) -> None:
        """Begin to compact up to the last readable entry. The caller passes any exception to `fail`."""
        reader, horizon = engine.create_raw_reader(self._topic), self._record.compacted.horizon
        self._horizon = reader.last
        if reader.last.entry_id < 0 or (horizon is not None and reader.last <= horizon):
            self._stores.turn.after_commit(self._end)  # no new entries
            return
        self._writer = CompactedWriter(self._record.begin(), self._stores)
        retain = self._stores.config.topicCompactionRetainNullKey
        self._steps = engine.compact(reader, self._writer, self._ready, retain_null_key=retain)
        self._commit()

    def stop(self) -> None:
        """Stop the run. Delete the written entries, unless the name of their ledger is being stored."""
        self._stopped = True
        if not self._adopting:
            self._discard()

    def _ready(self) -> None:
        """Continue the engine. Engines may call this from any thread, such as one that waits for work elsewhere."""
        with suppress(trio.RunFinishedError):  # the broker has stopped, and the run with it
            self._token.run_sync_soon(self._soon)

    def _soon(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            if self._turns:
                self._token.run_sync_soon(self._slice)
            else:
                self._stores.clock.machine.call_later(PAUSE, self._slice)

    def _slice(self) -> None:
        self._scheduled = False
        if self._stopped or self._finished or self._writer is None:
            return
        try:
            has_more = self._work()
        except Exception as error:  # an engine may raise any exception
            self.fail(error)
            return
        self._turns = (self._turns + 1) % TURNS if has_more else 0
        if self._turns:
            self._soon()
        elif not self._writer.is_committed or has_more is False:
            self._finished = has_more is False
            self._commit()
        elif has_more:
            self._soon()

    def _work(self) -> bool | None:
        """Return whether the engine has more work, or None while it waits for the reader."""
        assert self._steps is not None
        until = perf_counter() + TURN
        for waits in self._steps:
            if waits:
                return None
            if perf_counter() >= until:
                return True
        return False

    def _commit(self) -> None:
        """Continue after the commit of the written entries, so that at most `TURNS` turns are uncommitted."""
        writer = self._writer
        assert writer is not None
        count, finished = writer.ledger.count, self._finished  # an earlier commit may still be pending

        def committed(error: Exception | None) -> None:
            if self._stopped:
                return
            if error is not None:
                self.fail(error)
                return
            writer.committed(count)
            if finished:
                self._adopting = True
                self._record.adopt(writer.ledger, self._horizon, self._adopted)
            else:
                self._soon()

        self._stores.turn.after_commit(committed)

    def _adopted(self, error: Exception | None) -> None:
        if error is not None:
            self._discard()  # also after `stop`
        self._end(error)

    def fail(self, error: Exception) -> None:
        """Delete the written entries, and report the error."""
        self._discard()
        self._end(error)

    def _discard(self) -> None:
        if isinstance(self._steps, Generator):
            try:
                self._steps.close()  # an engine's `finally` ends its work elsewhere
            except Exception as error:  # an engine may raise any exception
                log.error("a compaction engine failed while it was stopped", exception=error, topic=self._topic.name)
        if self._writer is not None:
            self._record.discard(self._writer.ledger)

    def _end(self, error: Exception | None) -> None:
        if not self._stopped:
            self._stopped = True
            self._done(self, error)


GROUP = "pulsarium.compaction"
TWO_PHASE = "two-phase"
_OURS = "pulsarium."


@cache
def compactor() -> Compactor:
    """Return the default engine of this process: an installed one of another package, or the two-phase compactor."""
    for found in entry_points(group=GROUP):
        if not found.value.startswith(_OURS):  # Pulsarium's own engines are used by name only
            made: Compactor = found.load()()
            return made
    return TwoPhaseCompactor()


def make_engine(name: str, options: Iterable[tuple[str, str]] = ()) -> Compactor:
    """Return a new engine with this name. Raise `ConfigError` when it is not installed, or refuses its options."""
    what = f"compaction engine {name}"
    engines: dict[str, EntryPoint] = {each.name: each for each in entry_points(group=GROUP)}
    if name == TWO_PHASE:
        maker = TwoPhaseCompactor
    elif name in engines:
        try:
            maker = engines[name].load()
        except ImportError as error:
            raise ConfigError("", what, str(error)) from error
    else:
        there = ", ".join(sorted({TWO_PHASE, *engines}))
        raise ConfigError("", what, f"no such engine is installed; use one of: {there}")
    try:
        made: Compactor = maker(**{_argument(key): value for key, value in options})
    except (TypeError, ValueError, RuntimeError, OSError) as error:  # an engine may refuse options with any of these
        raise ConfigError("", what, str(error)) from error
    return made


def _argument(key: str) -> str:
    """Return the keyword argument of an option: work-dir is work_dir. A name with dots, such as Spark's, stays."""
    return key if "." in key else key.replace("-", "_")


log = PartLog("compaction")

Status = Literal["NOT_RUN", "RUNNING", "SUCCESS", "ERROR"]


@dataclass(slots=True)
class LastRun:
    """Figures of the last compaction, for stats. Durations and times are in milliseconds, or 0."""

    removed: int = 0
    succeeded_ms: int = 0
    failed_ms: int = 0
    duration_ms: int = 0


class Compaction:
    """Compact a loaded topic, one run at a time."""

    def __init__(self, topic: Compactable, record: CompactionRecord) -> None:
        self.status: Status = "NOT_RUN"
        self.error = ""
        self.last_run = LastRun()
        self.compactor: Compactor | None = None  # None: the engine of the topic, or of this process
        self._topic = topic
        self._record = record
        self._run: CompactionRun | None = None

    @property
    def compacted(self) -> CompactedTopic:
        """Return the compacted topic that readers see."""
        return self._record.compacted

    def raw_reader(self) -> RawReader:
        """Return the reader of the topic for engines without a reader of their own."""
        return TopicReader(self._topic)

    def trigger(self) -> None:
        """Start a compaction up to the last readable entry. Raise `NotAllowedError` while one runs."""
        if self._run is not None:
            raise NotAllowedError("Compaction already in progress")
        self.status, self.error = "RUNNING", ""
        self._record.open_cursor()
        self._run = run = CompactionRun(self._topic, self._record, self._done)
        try:
            run.begin(self.compactor or self._topic.compactor or compactor())
        except Exception as error:  # such as an engine that cannot be loaded
            run.fail(error)

    def _done(self, run: CompactionRun, error: Exception | None) -> None:
        self._run = None
        self.status = "SUCCESS" if error is None else "ERROR"
        figures, now = self.last_run, self._topic.now_ms()
        if run.wrote:
            figures.removed, figures.duration_ms = run.removed, now - run.began_ms
        if error is not None:
            self.error, figures.failed_ms = str(error), now
            log.error("compaction failed", exception=error, topic=self._topic.name)
        elif run.wrote:
            figures.succeeded_ms = now
        self._topic.trim_soon()

    def close(self) -> None:
        """Stop the run when the topic is unloaded or the broker stops. A later run starts from the beginning."""
        if self._run is not None:
            self._run.stop()
            self._run, self.status = None, "NOT_RUN"

    # when to run

    def policies_changed(self) -> None:
        """Open the compaction cursor for a threshold, so that entries stay until they are compacted."""
        if self._topic.policies.compaction_threshold > 0:
            self._record.open_cursor()

    def trigger_when_due(self) -> None:
        """Start a compaction when more bytes are new than the policy's threshold."""
        threshold = self._topic.policies.compaction_threshold
        if threshold > 0 and self._run is None and self._backlog_bytes() > threshold:
            self.trigger()

    def _backlog_bytes(self) -> int:
        """Estimate the bytes behind the horizon from the mean entry size of each ledger."""
        cursor, total = self._record.cursor, 0
        for ledger in self._topic.ledger.ledgers.values():
            count = ledger.confirmed
            if cursor is not None and ledger.id < cursor.mark_delete.ledger_id:
                continue
            if cursor is not None and ledger.id == cursor.mark_delete.ledger_id:
                count -= cursor.mark_delete.entry_id + 1
            total += ledger.size * count // max(ledger.count, 1)
        return total
