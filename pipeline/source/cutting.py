"""Cut ranges of topics into pieces, so that several tasks read one big partition."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pulsarium.client import Client
from pulsarium.client.admin.errors import AdminError
from pulsarium.pipeline.source import ledgers as in_ledgers
from pulsarium.pipeline.source.ledgers import LedgerRange, Ledgers
from pulsarium.pipeline.source.options import SourceOptions
from pulsarium.pipeline.source.places import ReadPosition
from pulsarium.pipeline.source.topics import each

SMALL = 4 * 2**20
"""Bytes below which a range is not measured, unless the options ask for more partitions."""


@dataclass(frozen=True)
class Range:
    """A range of one topic."""

    start: ReadPosition
    end: ReadPosition
    runs: Sequence[LedgerRange]
    """Entries of the range, as far as they are known."""
    indexes: tuple[int, int] | None = None
    """Index of the first message, and the index after the last, when the broker assigns indexes (PIP-70)."""
    in_entry: int = 1
    """Number of messages of the first entry."""

    @property
    def records(self) -> int:
        """Return the number of messages, or of entries without indexes."""
        return self.indexes[1] - self.indexes[0] if self.indexes else in_ledgers.count(self.runs)


class _Entry(NamedTuple):
    """An entry of a topic."""

    messages: int
    last: int | None
    """Index of its last message, or None when the broker assigns no indexes."""


class Cutting:
    """Cut ranges by index where the broker assigns indexes, otherwise by entries."""

    def __init__(self, client: Client, options: SourceOptions) -> None:
        self._client = client
        self._has_admin = options.has_admin
        self._min = options.min_partitions
        self._max = options.max_records

    async def cuts(
        self, ranges: Mapping[str, tuple[ReadPosition, ReadPosition]], ledgers: Mapping[str, Ledgers]
    ) -> dict[str, tuple[ReadPosition, ...]]:
        """Return the positions between the pieces of each topic, in order."""
        measured = await each(ranges, lambda topic: self._measure(topic, *ranges[topic], ledgers.get(topic)))
        total = sum(one.records for one in measured.values())
        return await each(measured, lambda topic: self._cut(topic, measured[topic], total))

    async def limited(
        self, ranges: Mapping[str, tuple[ReadPosition, ReadPosition]], ledgers: Mapping[str, Ledgers], most: int
    ) -> dict[str, tuple[ReadPosition, ReadPosition]]:
        """Return ranges of about `most` messages together. Each topic has a share by its size, at least one entry."""
        found = await each(
            ranges, lambda topic: self._measure(topic, *ranges[topic], ledgers.get(topic), small_too=True)
        )
        messages = {
            topic: one.records * (1 if one.indexes else one.in_entry) for topic, one in found.items() if one.runs
        }
        total = sum(messages.values())
        if total <= most:
            return dict(ranges)

        async def end(topic: str) -> ReadPosition:
            one = found[topic]
            if not one.runs:
                return one.end
            share = most * messages[topic] // total
            least = in_ledgers.entry_at(one.runs, 1)
            if one.indexes is not None:
                return min(one.end, max(least, await self._entry_of(topic, one.indexes[0] + share)))
            return min(one.end, max(least, in_ledgers.entry_at(one.runs, share // one.in_entry)))

        ends = await each(ranges, end)
        return {topic: (start, ends[topic]) for topic, (start, _) in ranges.items()}

    async def _measure(
        self, topic: str, start: ReadPosition, end: ReadPosition, ledgers: Ledgers | None, *, small_too: bool = False
    ) -> Range:
        runs = ledgers.runs(start, end) if ledgers else in_ledgers.runs_within(start, end)
        found = Range(start, end, runs)
        is_small = in_ledgers.size(runs) <= SMALL and not self._min and not small_too
        if not self._has_admin or not runs or is_small:
            return found
        try:
            first = await self._index(topic, runs[0].ledger, runs[0].start)
            last = await self._index(topic, runs[-1].ledger, runs[-1].end - 1)
        except AdminError:
            return found
        if first.last is None or last.last is None:
            return Range(start, end, runs, in_entry=first.messages)
        return Range(start, end, runs, (first.last - first.messages + 1, last.last + 1), first.messages)

    async def _index(self, topic: str, ledger: int, entry: int) -> _Entry:
        messages = await self._client.admin.topics.get_messages_by_id(topic, ledger, entry)
        if not messages:
            return _Entry(1, None)
        stamp, count = messages[0].broker_metadata(), max(messages[0].entry_metadata().num_messages_in_batch, 1)
        return _Entry(count, None if stamp is None or not stamp.HasField("index") else stamp.index)

    def _pieces(self, records: int, total: int) -> int:
        """Return the number of pieces of a topic.

        As in Kafka's source, topics share the pieces by size, and no piece is above the limit.
        """
        wanted = round(records / total * self._min) if total and self._min else 1
        if self._max:
            wanted = max(wanted, math.ceil(records / self._max))
        return max(1, min(wanted, records))

    async def _cut(self, topic: str, found: Range, total: int) -> tuple[ReadPosition, ...]:
        pieces = self._pieces(found.records, total)
        steps = [found.records * piece // pieces for piece in range(1, pieces)]
        if found.indexes is not None:
            first = found.indexes[0]
            try:
                numbered = await each(steps, lambda step: self._entry_of(topic, first + step))
                return _in_order(found, numbered.values())
            except AdminError:
                entries = in_ledgers.count(found.runs)
                steps = [entries * piece // pieces for piece in range(1, pieces)]
        return _in_order(found, [in_ledgers.entry_at(found.runs, step) for step in steps])

    async def _entry_of(self, topic: str, index: int) -> ReadPosition:
        message_id = await self._client.admin.topics.get_message_id_by_index(topic, index)
        return ReadPosition(*message_id.entry)


def _in_order(found: Range, cuts: Iterable[ReadPosition]) -> tuple[ReadPosition, ...]:
    """Return the positions sorted, each once, without those outside the range."""
    return tuple(sorted({cut for cut in cuts if found.start < cut < found.end}))
