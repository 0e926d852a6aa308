"""The compaction of one topic: when it runs, what came of it, and what readers see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pulsarium.broker.logs import Log
from pulsarium.broker.model.compaction.raw import RawReader, TopicReader
from pulsarium.broker.model.compaction.run import CompactionRun
from pulsarium.broker.model.compaction.service import compactor
from pulsarium.broker.model.errors import NotAllowedError

if TYPE_CHECKING:
    from pulsarium.broker.model.compaction.compacted import CompactedTopic
    from pulsarium.broker.model.compaction.compactor import Compactable, Compactor
    from pulsarium.broker.model.compaction.record import CompactionRecord

log = Log("compaction")

Status = Literal["NOT_RUN", "RUNNING", "SUCCESS", "ERROR"]


@dataclass(slots=True)
class LastRun:
    """Figures of the last compaction, for stats: milliseconds and instants in them, 0 for none."""

    removed: int = 0
    succeeded_ms: int = 0
    failed_ms: int = 0
    duration_ms: int = 0


class Compaction:
    """Compacts a topic while it is loaded, one time after the other."""

    def __init__(self, topic: Compactable, record: CompactionRecord) -> None:
        self.status: Status = "NOT_RUN"
        self.error = ""
        self.last_run = LastRun()
        self.compactor: Compactor | None = None  # None: the one of this run, or of this process
        self._topic = topic
        self._record = record
        self._run: CompactionRun | None = None

    @property
    def compacted(self) -> CompactedTopic:
        """What readers see."""
        return self._record.compacted

    def raw_reader(self) -> RawReader:
        """What an engine reads the topic with, unless it has a reader of its own."""
        return TopicReader(self._topic)

    def trigger(self) -> None:
        """Begin, up to the entry that is the last one now. NotAllowedError when it runs already."""
        if self._run is not None:
            raise NotAllowedError("Compaction already in progress")
        self.status, self.error = "RUNNING", ""
        self._record.open_cursor()
        self._run = run = CompactionRun(self._topic, self._record, self._done)
        try:
            run.begin(self.compactor or self._topic.compactor or compactor())
        except Exception as error:  # one that cannot be loaded, say
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
        """The topic is unloaded, or the broker stops: what was not finished is begun anew some time."""
        if self._run is not None:
            self._run.stop()
            self._run, self.status = None, "NOT_RUN"

    # when

    def policies_changed(self) -> None:
        """A topic with a threshold keeps its entries until they are compacted."""
        if self._topic.policies.compaction_threshold > 0:
            self._record.open_cursor()

    def trigger_when_due(self) -> None:
        """A periodic check: as much is new as the policy says."""
        threshold = self._topic.policies.compaction_threshold
        if threshold > 0 and self._run is None and self._backlog_bytes() > threshold:
            self.trigger()

    def _backlog_bytes(self) -> int:
        """Bytes behind the horizon, estimated from the mean entry of each ledger."""
        cursor, total = self._record.cursor, 0
        for ledger in self._topic.ledger.ledgers.values():
            count = ledger.confirmed
            if cursor is not None and ledger.id < cursor.mark_delete.ledger_id:
                continue
            if cursor is not None and ledger.id == cursor.mark_delete.ledger_id:
                count -= cursor.mark_delete.entry_id + 1
            total += ledger.size * count // max(ledger.count, 1)
        return total
