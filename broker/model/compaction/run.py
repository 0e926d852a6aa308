"""One run of a compaction, in slices: it never holds the loop."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING

import trio

from pulsarium.broker.logs import Log
from pulsarium.broker.model.compaction.compacted import CompactedWriter

if TYPE_CHECKING:
    from pulsarium.broker.model.compaction.compactor import Compactable, Compactor, Steps
    from pulsarium.broker.model.compaction.record import CompactionRecord

log = Log("compaction")

SLICE = 0.005  # seconds of work; the rest of the broker runs after it
PAUSE = 0.001  # seconds for that; more where the work waits for a commit

RunDone = Callable[["CompactionRun", Exception | None], None]


class CompactionRun:
    """Lets an engine write a new compacted ledger, commit by commit, and names it once all of it is kept."""

    def __init__(self, topic: Compactable, record: CompactionRecord, done: RunDone) -> None:
        self.began_ms = topic.now_ms()
        self._topic = topic
        self._stores = topic.stores
        self._record = record
        self._done = done
        self._stopped = False
        self._adopting = False  # the new ledger's name is on its way to the store
        self._scheduled = False
        self._writer: CompactedWriter | None = None
        self._steps: Steps | None = None
        self._token = trio.lowlevel.current_trio_token()

    @property
    def wrote(self) -> bool:
        """Whether there was something new."""
        return self._writer is not None

    @property
    def removed(self) -> int:
        return self._writer.removed if self._writer is not None else 0

    def begin(self, engine: Compactor) -> None:
        """Up to the last entry that is confirmed now. Whatever the engine raises has to be told to `fail`."""
        reader, horizon = engine.create_raw_reader(self._topic), self._record.compacted.horizon
        self._horizon = reader.last
        if reader.last.entry_id < 0 or (horizon is not None and reader.last <= horizon):
            self._stores.turn.after_commit(self._end)  # nothing is new
            return
        self._writer = CompactedWriter(self._record.begin(), self._stores)
        retain = self._stores.config.topicCompactionRetainNullKey
        self._steps = engine.compact(reader, self._writer, self._ready, retain_null_key=retain)
        self._commit(finished=False)

    def stop(self) -> None:
        """Leave it: what was written is deleted, unless its name is being stored already."""
        self._stopped = True
        if not self._adopting:
            self._discard()

    def _ready(self) -> None:
        """The engine can go on. From any thread: one that works elsewhere waits in one of its own."""
        with suppress(trio.RunFinishedError):  # the broker has stopped, and the run with it
            self._token.run_sync_soon(self._soon)

    def _soon(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._stores.clock.machine.call_later(PAUSE, self._slice)

    def _slice(self) -> None:
        self._scheduled = False
        if self._stopped or self._writer is None:
            return
        try:
            goes_on = self._work()
        except Exception as error:  # whatever an engine does, or what it read
            self.fail(error)
            return
        if not self._writer.is_committed or goes_on is False:
            self._commit(finished=goes_on is False)
        elif goes_on:
            self._soon()

    def _work(self) -> bool | None:
        """Whether there is more to do; None: it waits for the reader."""
        assert self._steps is not None
        until = perf_counter() + SLICE
        for waits in self._steps:
            if waits:
                return None
            if perf_counter() >= until:
                return True
        return False

    def _commit(self, *, finished: bool) -> None:
        """Go on when what was written is kept, so that no more than a slice waits for it."""
        writer = self._writer
        assert writer is not None
        count = writer.ledger.count

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
            self._discard()  # also when it was stopped
        self._end(error)

    def fail(self, error: Exception) -> None:
        """It ends: what was written is deleted."""
        self._discard()
        self._end(error)

    def _discard(self) -> None:
        if isinstance(self._steps, Generator):
            try:
                self._steps.close()  # its `finally` ends what it runs elsewhere
            except Exception as error:  # whatever an engine does
                log.error("an engine of compaction did not end well", exception=error, topic=self._topic.name)
        if self._writer is not None:
            self._record.discard(self._writer.ledger)

    def _end(self, error: Exception | None) -> None:
        if not self._stopped:
            self._stopped = True
            self._done(self, error)
