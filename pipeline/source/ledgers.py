"""Measure a range of a topic by the topic's ledgers, and find out whether its start still exists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pulsarium.client import Client
from pulsarium.pipeline.source.places import ReadPosition
from pulsarium.rest.stats import TopicInternalStats
from pulsarium.rest.topics import SHADOW_SOURCE


class SourceLedger(NamedTuple):
    """A ledger of a topic, with its number of entries."""

    id: int
    entries: int
    size: int
    """In bytes."""


class LedgerRange(NamedTuple):
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

    all: Sequence[SourceLedger]
    opened: str = ""
    """When the broker opened the newest ledger, as it says, or "" when it does not tell."""

    @staticmethod
    def of(stats: TopicInternalStats) -> Ledgers:
        """Return the ledgers from internal stats, which count the open ledger elsewhere."""
        found = sorted(
            SourceLedger(one["ledgerId"], max(one.get("entries", 0), 0), max(one.get("size", 0), 0))
            for one in stats.get("ledgers", [])
        )
        if found and not found[-1].entries:
            counted = stats.get("currentLedgerEntries", 0), stats.get("currentLedgerSize", 0)
            found[-1] = SourceLedger(found[-1].id, *counted)
        # terminated topics and shadow topics open no ledger, and tell another time when they are loaded again
        opens = stats.get("state") != "Terminated" and SHADOW_SOURCE not in stats.get("properties", {})
        return Ledgers(found, stats.get("lastLedgerCreatedTimestamp", "") if opens else "")

    @staticmethod
    async def ask(client: Client, topic: str) -> Ledgers:
        return Ledgers.of(await client.admin.topics.get_internal_stats(topic))

    def runs(self, start: ReadPosition, end: ReadPosition) -> list[LedgerRange]:
        """Return the entries between two positions."""
        found: list[LedgerRange] = []
        for ledger in self.all:
            first = start.entry if ledger.id == start.ledger else 0
            # `end` may be newer than the stats
            last = max(end.entry, 0) + bool(end.batch_index) if ledger.id == end.ledger else ledger.entries
            if start.ledger <= ledger.id <= end.ledger and first < last:
                found.append(
                    LedgerRange(ledger.id, first, last, ledger.size / ledger.entries if ledger.entries else 0.0)
                )
        return found

    def before(self, at: ReadPosition, *, held: int = 0) -> ReadPosition | None:
        """Return the entry that is `held` + 1 entries before a position, the last one of the ledger before, or None."""
        if at.entry - 1 - held >= 0:
            return ReadPosition(at.ledger, at.entry - 1 - held)
        earlier = [ledger for ledger in self.all if ledger.id < at.ledger and ledger.entries]
        return ReadPosition(earlier[-1].id, earlier[-1].entries - 1) if earlier else None

    def opening_of(self, ledger: int) -> str:
        """Return when the broker opened a ledger, as it says, or "" when it does not tell."""
        return self.opened if self.all and self.all[-1].id == ledger else ""

    def lost_from(self, start: ReadPosition) -> ReadPosition | None:
        """Return the first position that still exists when the ledger of `start` is gone, otherwise None.

        Nothing tells what a deleted ledger held.
        """
        if not self.all or start.ledger < 0 or start.ledger >= self.all[0].id:
            return None
        return ReadPosition(self.all[0].id, 0)


def runs_within(start: ReadPosition, end: ReadPosition) -> list[LedgerRange]:
    """Return the entries of a range inside one ledger, which are known without asking the broker."""
    if start.ledger != end.ledger or start.ledger < 0:
        return []
    last = end.entry + bool(end.batch_index)
    return [LedgerRange(start.ledger, max(start.entry, 0), last, 0.0)] if start.entry < last else []


def count(runs: Sequence[LedgerRange]) -> int:
    return sum(run.entries for run in runs)


def size(runs: Sequence[LedgerRange]) -> float:
    """Return the approximate number of bytes."""
    return sum(run.entries * run.entry_size for run in runs)


def entry_at(runs: Sequence[LedgerRange], number: int) -> ReadPosition:
    """Return the position of the entry with this number among all, from 0, or the end for a greater number."""
    for run in runs:
        if number < run.entries:
            return ReadPosition(run.ledger, run.start + number)
        number -= run.entries
    return ReadPosition(runs[-1].ledger, runs[-1].end)


def within_bytes(runs: Sequence[LedgerRange], most: float) -> ReadPosition:
    """Return the end of the first entries that have `most` bytes together. At least one entry is included."""
    taken = 0
    for run in runs:
        fitting = run.entries if run.entry_size <= 0 else min(run.entries, int(most / run.entry_size))
        taken += fitting
        if fitting < run.entries:
            break
        most -= fitting * run.entry_size
    return entry_at(runs, max(taken, 1))
