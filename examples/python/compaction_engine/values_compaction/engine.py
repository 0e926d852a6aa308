"""The engine: Pulsarium's own two phases, with another format for what they keep."""

from __future__ import annotations

from collections.abc import Callable

from pulsarium.broker.model.compaction.compactor import Compactable, Steps, TwoPhaseCompactor, Writer
from pulsarium.broker.model.compaction.raw import RawMessage, RawReader
from pulsarium.broker.model.ledger.position import Position
from pulsarium.proto.compacted_values import to_batch, to_values


class ValuesCompactor(TwoPhaseCompactor):
    """The engine that the entry point names. It writes retained messages in the format of `proto.compacted_values`."""

    with_field_31 = True
    """Clients up to v21 ask the broker for the last message's id. It cannot read these payloads, but it need not:
    `compacted_batch_indexes` tells it. Without the field they get an error, and only v22 works."""

    def create_raw_reader(self, topic: Compactable) -> RawReader:
        """Return a reader that also reads what this engine wrote."""
        return _Reader(super().create_raw_reader(topic))

    def compact(self, reader: RawReader, writer: Writer, ready: Callable[[], None], *, retain_null_key: bool) -> Steps:
        own = _Writer(writer, with_field_31=self.with_field_31)
        return super().compact(reader, own, ready, retain_null_key=retain_null_key)


class _Reader:
    """Shows every entry in Pulsar's format."""

    def __init__(self, reader: RawReader) -> None:
        self._reader = reader
        self.rewind = reader.rewind

    @property
    def last(self) -> Position:
        return self._reader.last

    def read(self, ready: Callable[[], None]) -> list[RawMessage] | None:
        found = self._reader.read(ready)
        return found and [RawMessage(position, to_batch(entry)) for position, entry in found]


class _Writer:
    """Keeps every entry in this engine's format."""

    def __init__(self, writer: Writer, *, with_field_31: bool) -> None:
        self._writer = writer
        self._with_field_31 = with_field_31

    @property
    def removed(self) -> int:
        return self._writer.removed

    @removed.setter
    def removed(self, count: int) -> None:
        self._writer.removed = count

    def write(self, position: Position, entry: bytes) -> None:
        self._writer.write(position, to_values(entry, with_field_31=self._with_field_31))
