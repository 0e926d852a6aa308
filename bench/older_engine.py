"""A compaction engine as Pulsar had it before `compacted_batch_indexes`, for a broker that `older_engine` launches.

This module is loaded by that broker, and needs nothing of the bench there.
"""

from __future__ import annotations

from collections.abc import Callable

from pulsarium.broker.model.compaction.compactor import Steps, TwoPhaseCompactor, Writer
from pulsarium.broker.model.compaction.raw import RawReader
from pulsarium.broker.model.ledger.position import Position
from pulsarium.proto.entry import build, parse_metadata, payload_of


class OlderCompactor(TwoPhaseCompactor):
    """The two phases, without field 31 in what they write."""

    def compact(self, reader: RawReader, writer: Writer, ready: Callable[[], None], *, retain_null_key: bool) -> Steps:
        return super().compact(reader, Unlisted(writer), ready, retain_null_key=retain_null_key)


class Unlisted:
    """Takes the list of retained messages out of every batch."""

    def __init__(self, writer: Writer) -> None:
        self.removed = 0
        self._writer = writer

    def write(self, position: Position, entry: bytes) -> None:
        metadata = parse_metadata(entry)
        del metadata.compacted_batch_indexes[:]
        self._writer.write(position, build(metadata, payload_of(entry)))
