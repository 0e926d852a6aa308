"""Notice messages that are gone: in the driver before a read, and in a task since the read was planned."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pulsarium.client import Message
from pulsarium.client.admin.errors import NotFound
from pulsarium.pipeline.pulsar import Pulsar
from pulsarium.pipeline.source.ledgers import Ledgers, Run, count
from pulsarium.pipeline.source.offsets import Split
from pulsarium.pipeline.source.places import Position

_logger = logging.getLogger(__name__)

_HINT = (
    "Retention, TTL, a backlog quota or a skip removed it, or the topic was deleted. "
    '.option("failOnDataLoss", "false") continues without it'
)
_END = Position(2**63 - 1, 0)
"""Behind every ledger."""


class DataLoss(RuntimeError):
    """Messages to read that are gone."""


class LossCheck:
    """Report lost data, by an error or in the log."""

    def __init__(self, *, fail: bool) -> None:
        self.reports: dict[str, int] = {}
        """Number of warnings of each topic, for the progress of a query."""
        self._fail = fail

    def ledgers(
        self, starts: Mapping[str, Position], found: Mapping[str, Ledgers], subscription: str | None = None
    ) -> None:
        """Report topics whose oldest ledgers are newer than the start. Raise `DataLoss`, or log a warning."""
        self._say(
            {
                topic: f"{topic} from {starts[topic]} on; the first position that still exists is {first}"
                for topic, ledgers in found.items()
                if (first := ledgers.lost_from(starts[topic], subscription)) is not None
            }
        )

    def topics(self, gone: Iterable[str], starts: Mapping[str, Position]) -> None:
        """Report topics that do not exist any more. Raise `DataLoss`, or log a warning."""
        self._say(
            {topic: f"all of {topic} from {starts[topic]} on: the topic does not exist any more" for topic in gone}
        )

    def runs(self, topic: str, gone: Sequence[Run]) -> None:
        """Report entries that a task planned to read. Raise `DataLoss`, or log a warning."""
        where = ", ".join(f"{run.ledger}:{run.start} to {run.ledger}:{run.end - 1}" for run in gone)
        self._say({topic: f"{topic}: {where} ({count(gone)} entries), after the read was planned"} if gone else {})

    def _say(self, lost: Mapping[str, str]) -> None:
        if not lost:
            return
        text = f"data was lost: {'; '.join(lost.values())}. {_HINT}"
        if self._fail:
            raise DataLoss(text)
        for topic in lost:
            self.reports[topic] = self.reports.get(topic, 0) + 1
        _logger.warning("%s", text)


def expecting(splits: Iterable[Split], ledgers: Mapping[str, Ledgers]) -> list[Split]:
    """Return the splits with the entries that they have at planning time, as far as these ledgers tell."""
    return [
        replace(split, runs=tuple(ledgers[split.topic].runs(split.start, split.end)))
        if split.topic in ledgers
        else split
        for split in splits
    ]


class Watch:
    """Compare the entries that arrive in a task with those that the split had at planning time.

    An entry may be absent for another reason, such as an aborted transaction. So an entry counts as lost when its
    ledger is gone, too. The watch asks the admin API only when entries are absent.
    """

    def __init__(self, pulsar: Pulsar, split: Split, *, fail: bool) -> None:
        self._pulsar = pulsar
        self._topic = split.topic
        self._runs = split.runs
        self._at = split.start
        self._loss = LossCheck(fail=fail)

    def arrived(self, entries: Sequence[Message[bytes]]) -> None:
        """Note the next entries. Raise `DataLoss`, or log a warning."""
        if entries[-1].message_id().ledger_id == self._at.ledger:
            entries = entries[-1:]  # ledgers change seldom
        for entry in entries:
            self.reached(Position(*entry.message_id().entry).next_entry)

    def reached(self, at: Position) -> None:
        """Note that no more entries before `at` arrive. Raise `DataLoss`, or log a warning."""
        if at.ledger > self._at.ledger:
            absent = [
                run._replace(start=max(run.start, self._at.entry)) if run.ledger == self._at.ledger else run
                for run in self._runs
                if self._at.ledger <= run.ledger < at.ledger
            ]
            absent = [run for run in absent if run.entries > 0]
            if absent:
                there = self._pulsar.call(self._ledgers)
                self._loss.runs(self._topic, [run for run in absent if run.ledger not in there])
        self._at = max(self._at, at)

    def end(self) -> None:
        """Note that no more entries arrive. Raise `DataLoss`, or log a warning."""
        self.reached(_END)

    def no_topic(self) -> None:
        """Note that the topic does not exist any more. Raise `DataLoss`, or log a warning."""
        self._loss.topics([self._topic], {self._topic: self._at})

    async def _ledgers(self) -> set[int]:
        try:
            found = await Ledgers.ask(self._pulsar.client, self._topic)
        except NotFound:
            return set()
        return {ledger.id for ledger in found.all}
