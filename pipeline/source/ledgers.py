"""What the ledgers of a topic say about a range of it: how much is there, and whether something is gone."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pulsarium.client import Client
from pulsarium.pipeline.source.places import Position
from pulsarium.rest.stats import TopicInternalStats


class Ledger(NamedTuple):
    id: int
    entries: int
    size: int
    """Bytes."""


class Run(NamedTuple):
    """Entries of one ledger, from `start` up to `end` without that."""

    ledger: int
    start: int
    end: int
    entry_size: float
    """Bytes of one, about; 0: unknown."""

    @property
    def entries(self) -> int:
        return self.end - self.start


@dataclass(frozen=True)
class Ledgers:
    """Those of a topic without partitions, or of a partition, the oldest first."""

    all: Sequence[Ledger]
    marks: dict[str, Position]
    """Up to where each subscription is done: the first position that is not."""

    @staticmethod
    def of(stats: TopicInternalStats) -> Ledgers:
        """The open ledger has its numbers elsewhere."""
        found = sorted(
            Ledger(one["ledgerId"], max(one.get("entries", 0), 0), max(one.get("size", 0), 0))
            for one in stats.get("ledgers", [])
        )
        if found and not found[-1].entries:
            counted = stats.get("currentLedgerEntries", 0), stats.get("currentLedgerSize", 0)
            found[-1] = Ledger(found[-1].id, *counted)
        marks: dict[str, Position] = {}
        for name, cursor in stats.get("cursors", {}).items():
            ledger, _, entry = cursor.get("markDeletePosition", "").partition(":")
            if ledger.lstrip("-").isdecimal() and entry.lstrip("-").isdecimal():
                marks[name] = Position(int(ledger), int(entry) + 1)
        return Ledgers(found, marks)

    @staticmethod
    async def ask(client: Client, topic: str) -> Ledgers:
        return Ledgers.of(await client.admin.topics.get_internal_stats(topic))

    def runs(self, start: Position, end: Position) -> list[Run]:
        """The entries between two positions."""
        found: list[Run] = []
        for ledger in self.all:
            first = start.entry if ledger.id == start.ledger else 0
            # `end` may be ahead of what the stats counted
            last = max(end.entry, 0) + bool(end.batch_index) if ledger.id == end.ledger else ledger.entries
            if start.ledger <= ledger.id <= end.ledger and first < last:
                found.append(Run(ledger.id, first, last, ledger.size / ledger.entries if ledger.entries else 0.0))
        return found

    def before(self, at: Position, *, held: int = 0) -> Position | None:
        """The entry that is `held` + 1 entries before a position, or the last of the ledger before; None: none is."""
        if at.entry - 1 - held >= 0:
            return Position(at.ledger, at.entry - 1 - held)
        earlier = [ledger for ledger in self.all if ledger.id < at.ledger and ledger.entries]
        return Position(earlier[-1].id, earlier[-1].entries - 1) if earlier else None

    def lost_from(self, start: Position, subscription: str | None = None) -> Position | None:
        """The first position that is kept if entries from `start` on are gone, else None.

        A ledger that is gone says nothing about what was in it. The subscription keeps one entry back of what was read
        (`before`), so its ledger goes only when somebody else moved the subscription: then there is no telling.
        """
        if not self.all or start.ledger < 0 or start.ledger >= self.all[0].id:
            return None
        first = Position(self.all[0].id, 0)
        if start.entry == 0 and start.batch_index == 0:
            # perhaps it never had an entry: brokers drop such a ledger; the subscription was not moved behind it, then
            mark = self.marks.get(subscription or "")
            if mark is not None and (mark <= start or mark == first):
                return None
        return first


def runs_within(start: Position, end: Position) -> list[Run]:
    """What is known without asking: the entries of one ledger."""
    if start.ledger != end.ledger or start.ledger < 0:
        return []
    last = end.entry + bool(end.batch_index)
    return [Run(start.ledger, max(start.entry, 0), last, 0.0)] if start.entry < last else []


def count(runs: Sequence[Run]) -> int:
    return sum(run.entries for run in runs)


def size(runs: Sequence[Run]) -> float:
    """Bytes, about."""
    return sum(run.entries * run.entry_size for run in runs)


def entry_at(runs: Sequence[Run], number: int) -> Position:
    """The entry with this number among all, from 0; behind the last one for a greater number."""
    for run in runs:
        if number < run.entries:
            return Position(run.ledger, run.start + number)
        number -= run.entries
    return Position(runs[-1].ledger, runs[-1].end)


def within_bytes(runs: Sequence[Run], most: float) -> Position:
    """Where the entries end that have `most` bytes together; at least one."""
    taken = 0
    for run in runs:
        fitting = run.entries if run.entry_size <= 0 else min(run.entries, int(most / run.entry_size))
        taken += fitting
        if fitting < run.entries:
            break
        most -= fitting * run.entry_size
    return entry_at(runs, max(taken, 1))


_logger = logging.getLogger(__name__)

_HINT = (
    "Retention, TTL, a backlog quota or somebody's skip took it, or the topic was deleted. "
    '.option("failOnDataLoss", "false") goes on without it'
)


class DataLoss(RuntimeError):
    """Messages that were to be read are gone."""


class LossCheck:
    """Says it, by an error or in the log."""

    def __init__(self, *, fail: bool) -> None:
        self._fail = fail

    def ledgers(
        self, starts: Mapping[str, Position], found: Mapping[str, Ledgers], subscription: str | None = None
    ) -> None:
        """DataLoss, or a warning, for topics whose ledgers do not reach back to the start any more."""
        lost = [
            f"{topic} from {starts[topic]} on, of which {first} is the first that is left"
            for topic, ledgers in found.items()
            if (first := ledgers.lost_from(starts[topic], subscription)) is not None
        ]
        self._say(lost)

    def topics(self, gone: Iterable[str], starts: Mapping[str, Position]) -> None:
        """DataLoss, or a warning, for topics that are not there any more."""
        self._say([f"all of {topic} from {starts[topic]} on: there is no such topic any more" for topic in gone])

    def _say(self, lost: list[str]) -> None:
        if not lost:
            return
        text = f"data was lost: {'; '.join(lost)}. {_HINT}"
        if self._fail:
            raise DataLoss(text)
        _logger.warning("%s", text)
