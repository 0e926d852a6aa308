"""Notice messages that are gone: in the driver before a read, and in a task since the read was planned."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pulsarium.client import Message
from pulsarium.client.bulk import first_entry
from pulsarium.client.errors import TopicNotFound
from pulsarium.pipeline.pulsar import Pulsar
from pulsarium.pipeline.source.ledgers import LedgerRange, Ledgers, count
from pulsarium.pipeline.source.offsets import TopicRange
from pulsarium.pipeline.source.places import FIRST, ReadPosition
from pulsarium.proto.numbers import LONG_MAX

_logger = logging.getLogger(__name__)

_HINT = (
    "Retention, TTL, a backlog quota or a skip removed it, or the topic was deleted. "
    '.option("failOnDataLoss", "false") continues without it'
)
_END = ReadPosition(LONG_MAX, 0)
"""Behind every ledger."""


class DataLoss(RuntimeError):
    """Messages to read that are gone."""


class LossCheck:
    """Report lost data, by an error or in the log."""

    def __init__(self, *, fail: bool) -> None:
        self.reports: dict[str, int] = {}
        """Number of warnings of each topic, for the progress of a query."""
        self._fail = fail

    def ledgers(self, starts: Mapping[str, ReadPosition], found: Mapping[str, Ledgers]) -> None:
        """Report topics whose oldest ledgers are newer than the start. Raise `DataLoss`, or log a warning."""
        firsts = {topic: ledgers.lost_from(starts[topic]) for topic, ledgers in found.items()}
        self.positions(starts, {topic: first for topic, first in firsts.items() if first is not None})

    def positions(self, starts: Mapping[str, ReadPosition], firsts: Mapping[str, ReadPosition]) -> None:
        """Report that topics have nothing before these positions any more. Raise `DataLoss`, or log a warning."""
        self._say(
            {
                topic: f"{topic} from {starts[topic]} on; the first position that still exists is {first}"
                for topic, first in firsts.items()
            }
        )

    def replaced(self, starts: Mapping[str, ReadPosition], signs: Mapping[str, str]) -> None:
        """Report topics that are others of the same name, with the sign of it. Raise `DataLoss`, or log a warning."""
        self._say(
            {
                topic: f"{topic} from {starts[topic]} on; {sign}, so it is not the same topic"
                for topic, sign in signs.items()
            }
        )

    def topics(self, gone: Iterable[str], starts: Mapping[str, ReadPosition]) -> None:
        """Report topics that do not exist any more. Raise `DataLoss`, or log a warning."""
        self._say(
            {topic: f"all of {topic} from {starts[topic]} on: the topic does not exist any more" for topic in gone}
        )

    def runs(self, topic: str, gone: Sequence[LedgerRange]) -> None:
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


def expecting(splits: Iterable[TopicRange], ledgers: Mapping[str, Ledgers]) -> list[TopicRange]:
    """Return the splits with the entries that they have at planning time, as far as these ledgers tell."""
    return [
        replace(split, runs=tuple(ledgers[split.topic].runs(split.start, split.end)))
        if split.topic in ledgers
        else split
        for split in splits
    ]


class Watch:
    """Compare the entries that arrive in a task with those of the plan, as far as the plan knows them.

    An entry may be absent for another reason, such as an aborted transaction. So an entry counts as lost when its
    ledger is gone, too. The watch asks the broker for its first ledger only when entries are absent, or may be: without
    the admin API nothing tells how many entries a ledger had.
    """

    def __init__(self, pulsar: Pulsar, split: TopicRange, *, fail: bool) -> None:
        self._pulsar = pulsar
        self._split = split
        self._at = split.start
        self._loss = LossCheck(fail=fail)

    def arrived(self, entries: Sequence[Message[bytes]]) -> None:
        """Note the next entries. Raise `DataLoss`, or log a warning."""
        if entries[-1].message_id().ledger_id == self._at.ledger:
            entries = entries[-1:]  # ledgers change seldom
        for entry in entries:
            self.reached(ReadPosition(*entry.message_id().entry).next_entry)

    def reached(self, at: ReadPosition) -> None:
        """Note that no more entries before `at` arrive. Raise `DataLoss`, or log a warning."""
        if at.ledger > self._at.ledger:
            self._check_runs(at)
            is_known = any(run.ledger == self._at.ledger for run in self._split.runs)
            if not is_known and FIRST < self._at < self._split.end:
                self._check_ledger()
        self._at = max(self._at, at)

    def _check_runs(self, at: ReadPosition) -> None:
        absent = [
            run._replace(start=max(run.start, self._at.entry)) if run.ledger == self._at.ledger else run
            for run in self._split.runs
            if self._at.ledger <= run.ledger < at.ledger
        ]
        absent = [run for run in absent if run.entries > 0]
        if absent:
            first = self._pulsar.call(self._first)
            self._loss.runs(self._split.topic, [run for run in absent if run.ledger < first.ledger])

    def _check_ledger(self) -> None:
        first = self._pulsar.call(self._first)
        if self._at.ledger < first.ledger:
            self._loss.positions({self._split.topic: self._at}, {self._split.topic: first})

    def end(self) -> None:
        """Note that no more entries arrive. Raise `DataLoss`, or log a warning."""
        self.reached(_END)

    def no_topic(self) -> None:
        """Note that the topic does not exist any more. Raise `DataLoss`, or log a warning."""
        self._loss.topics([self._split.topic], {self._split.topic: self._at})

    async def _first(self) -> ReadPosition:
        """Return the first position that still exists, because the broker deletes the oldest ledgers first."""
        try:
            found = await first_entry(self._pulsar.client, self._split.topic)
        except TopicNotFound:
            return _END
        return ReadPosition(*found) if found else FIRST
