"""A compaction engine without `compacted_batch_indexes`, as older versions of Pulsar have it.

A broker of `compacted.older_broker` loads this module, which must not import the bench.
"""

from __future__ import annotations

from collections.abc import Callable

from pulsarium.broker.model.compaction.compactor import Steps, TwoPhaseCompactor, Writer
from pulsarium.broker.model.compaction.raw import RawReader
from pulsarium.broker.model.ledger.position import Position
from pulsarium.proto.entry import build, parse_metadata, payload_of


class OlderCompactor(TwoPhaseCompactor):
    """The two phases of compaction, without field 31 in the output."""

    def compact(self, reader: RawReader, writer: Writer, ready: Callable[[], None], *, retain_null_key: bool) -> Steps:
        return super().compact(reader, Unlisted(writer), ready, retain_null_key=retain_null_key)


class Unlisted:
    """Remove the list of retained messages from every batch."""

    def __init__(self, writer: Writer) -> None:
        self.removed = 0
        self._writer = writer

    def write(self, position: Position, entry: bytes) -> None:
        metadata = parse_metadata(entry)
        del metadata.compacted_batch_indexes[:]
        self._writer.write(position, build(metadata, payload_of(entry)))
