"""Read a split in a task: whole entries as far as possible, and the rest message by message."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pulsarium.client import PulsarError
from pulsarium.client.errors import TopicNotFound
from pulsarium.pipeline.columns.names import KEY
from pulsarium.pipeline.columns.ragged import of_bytes
from pulsarium.pipeline.entries.builder import EntryBuilder
from pulsarium.pipeline.entries.fields import Unusual
from pulsarium.pipeline.entries.rows import EntryPart, TakenEntry
from pulsarium.pipeline.pulsar import Pulsar
from pulsarium.pipeline.source import reading
from pulsarium.pipeline.source.entries import SplitEntries
from pulsarium.pipeline.source.losses import Watch
from pulsarium.pipeline.source.offsets import TopicRange
from pulsarium.pipeline.source.places import ReadPosition
from pulsarium.pipeline.source.reading import ReadError, Reading, SplitReader


def read(settings: Reading, split: TopicRange) -> Iterator[pa.RecordBatch]:
    """Yield each selected message of a split once, in order.

    Raise `ReadError`, `DataLoss`, or `BadMessage` for a message that does not fit its schema.
    """
    keys, batches = settings.selection.keys, _all(settings, split)
    yield from batches if keys is None else _of_keys(batches, keys)


def _of_keys(batches: Iterator[pa.RecordBatch], keys: Collection[bytes | str | None]) -> Iterator[pa.RecordBatch]:
    """Yield the rows with these keys. Spark needs more CPU for a row than the task, so it gets no others.

    No condition holds for a null.
    """
    values = [each.encode() if isinstance(each, str) else each for each in keys if each is not None]
    wanted = of_bytes(b"".join(values), np.array([*map(len, values)], np.int64))
    for batch in batches:
        column = batch.column(KEY)
        found = batch.filter(pc.is_in(column, value_set=wanted.cast(column.type)))
        if found.num_rows:
            yield found


def _all(settings: Reading, split: TopicRange) -> Iterator[pa.RecordBatch]:
    with Pulsar(settings.connection) as pulsar:
        watch = Watch(pulsar, split, fail=settings.fail_on_data_loss)
        entries = _Entries(pulsar, split, settings, watch)
        try:
            yield from entries.batches()
        except TopicNotFound:
            watch.no_topic()
            return
        except PulsarError as error:
            raise ReadError(f"{split}: at {entries.at}: {type(error).__name__}: {error}") from error
        if not entries.is_done:
            yield from _messages(pulsar, replace(split, start=entries.at), settings, watch)
        watch.end()


class _Entries:
    """The entries of a split, up to the first that is a chunk, encrypted, damaged or otherwise unusual."""

    def __init__(self, pulsar: Pulsar, split: TopicRange, settings: Reading, watch: Watch) -> None:
        self.at = split.start
        """Position behind the last message of the batches."""
        self.is_done = False
        self._pulsar = pulsar
        self._split = split
        self._watch = watch
        self._entries = SplitEntries(pulsar.client, split, settings)
        self._builder = EntryBuilder(settings.columns, settings.wanted)
        self._taken: list[TakenEntry] = []

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield batches until the end of the split, or until an unusual entry."""
        try:
            rows = size = 0
            while not self.is_done:
                found = self._pulsar.call(self._entries.more, self.at)
                self.is_done = not found
                if found:
                    self._watch.arrived(found)
                for entry in found:
                    taken = self._entries.part(entry)
                    if taken is None:
                        self.is_done = True
                        break
                    self._taken.append(taken)
                    self.is_done = behind(taken.part) >= self._split.end
                    rows, size = rows + taken.part.rows, size + len(taken.data)
                    if rows >= reading.ROWS or size >= reading.SIZE:
                        yield from self._batch()
                        rows = size = 0
            yield from self._batch()
        except Unusual:
            self.is_done = False
            try:
                yield from self._batch()
            except Unusual:  # the consumer judges the messages of the batch, too
                return
        finally:
            self._pulsar.call(self._entries.aclose)

    def _batch(self) -> Iterator[pa.RecordBatch]:
        taken, self._taken = self._taken, []
        if taken and (made := self._builder.batch(taken)).num_rows:
            yield made
        if taken:
            self.at = behind(taken[-1].part)


def behind(part: EntryPart) -> ReadPosition:
    """Return the position after the messages of an entry."""
    at = ReadPosition(*part.entry.message_id().entry)
    return at._replace(batch_index=part.last) if part.last < part.size else at.next_entry


def _messages(pulsar: Pulsar, split: TopicRange, settings: Reading, watch: Watch) -> Iterator[pa.RecordBatch]:
    messages = SplitReader(pulsar.client, split, settings)
    try:
        builder = settings.columns.for_reading(settings.wanted)
        is_done = False
        while not is_done:
            is_done = pulsar.call(messages.fill, builder)
            watch.reached(messages.at)
            if builder.rows:
                yield builder.take()
    except PulsarError as error:
        raise ReadError(f"{split}: at {messages.at}: {type(error).__name__}: {error}") from error
    finally:
        pulsar.call(messages.aclose)
