"""Measure a range of a topic by the topic's ledgers, and find out whether its start still exists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pulsarium.client import Client
from pulsarium.pipeline.source.places import Position
from pulsarium.rest.stats import TopicInternalStats


class Ledger(NamedTuple):
    """A ledger of a topic, with its number of entries."""

    id: int
    entries: int
    size: int
    """In bytes."""


class Run(NamedTuple):
    """Entries of one ledger, from `start` up to and excluding `end`."""

    ledger: int
    start: int
    end: int
    entry_size: float
    """Mean size of an entry in bytes, or 0 when it is unknown."""

    @property
    def entries(self) -> int:
        return self.end - self.start


@dataclass(frozen=True)
class Ledgers:
    """Ledgers of a topic without partitions, or of one partition, the oldest first."""

    all: Sequence[Ledger]
    marks: dict[str, Position]
    """For each subscription, the first position after its mark-delete position."""

    @staticmethod
    def of(stats: TopicInternalStats) -> Ledgers:
        """Return the ledgers from internal stats, which count the open ledger elsewhere."""
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
        """Return the entries between two positions."""
        found: list[Run] = []
        for ledger in self.all:
            first = start.entry if ledger.id == start.ledger else 0
            # `end` may be newer than the stats
            last = max(end.entry, 0) + bool(end.batch_index) if ledger.id == end.ledger else ledger.entries
            if start.ledger <= ledger.id <= end.ledger and first < last:
                found.append(Run(ledger.id, first, last, ledger.size / ledger.entries if ledger.entries else 0.0))
        return found

    def before(self, at: Position, *, held: int = 0) -> Position | None:
        """Return the entry that is `held` + 1 entries before a position, the last one of the ledger before, or None."""
        if at.entry - 1 - held >= 0:
            return Position(at.ledger, at.entry - 1 - held)
        earlier = [ledger for ledger in self.all if ledger.id < at.ledger and ledger.entries]
        return Position(earlier[-1].id, earlier[-1].entries - 1) if earlier else None

    def lost_from(self, start: Position, subscription: str | None = None) -> Position | None:
        """Return the first position that still exists when entries from `start` on are gone, otherwise None.

        Nothing tells what a deleted ledger held. The subscription stays one entry behind the processed entries
        (`before`), so that its ledger is only deleted when another program moved the subscription. Then it is
        unknown whether entries were lost, and the check reports a loss.
        """
        if not self.all or start.ledger < 0 or start.ledger >= self.all[0].id:
            return None
        first = Position(self.all[0].id, 0)
        if start.entry == 0 and start.batch_index == 0:
            # perhaps the broker dropped an empty ledger: then the subscription was not moved past it
            mark = self.marks.get(subscription or "")
            if mark is not None and (mark <= start or mark == first):
                return None
        return first


def runs_within(start: Position, end: Position) -> list[Run]:
    """Return the entries of a range inside one ledger, which are known without asking the broker."""
    if start.ledger != end.ledger or start.ledger < 0:
        return []
    last = end.entry + bool(end.batch_index)
    return [Run(start.ledger, max(start.entry, 0), last, 0.0)] if start.entry < last else []


def count(runs: Sequence[Run]) -> int:
    return sum(run.entries for run in runs)


def size(runs: Sequence[Run]) -> float:
    """Return the approximate number of bytes."""
    return sum(run.entries * run.entry_size for run in runs)


def entry_at(runs: Sequence[Run], number: int) -> Position:
    """Return the position of the entry with this number among all, from 0, or the end for a greater number."""
    for run in runs:
        if number < run.entries:
            return Position(run.ledger, run.start + number)
        number -= run.entries
    return Position(runs[-1].ledger, runs[-1].end)


def within_bytes(runs: Sequence[Run], most: float) -> Position:
    """Return the end of the first entries that have `most` bytes together. At least one entry is included."""
    taken = 0
    for run in runs:
        fitting = run.entries if run.entry_size <= 0 else min(run.entries, int(most / run.entry_size))
        taken += fitting
        if fitting < run.entries:
            break
        most -= fitting * run.entry_size
    return entry_at(runs, max(taken, 1))
