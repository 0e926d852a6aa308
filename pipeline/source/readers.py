"""Read topics: `spark.read`, whose range is decided once, and `spark.readStream`, whose offsets Spark checkpoints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, Filter, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType
from typing_extensions import override

from pulsarium.client import Client
from pulsarium.pipeline.columns.columns import Columns
from pulsarium.pipeline.errors import reason_first
from pulsarium.pipeline.options import BadOption
from pulsarium.pipeline.pulsar import Pulsar
from pulsarium.pipeline.source.cutting import Cutting
from pulsarium.pipeline.source.filters import MOST, Selection
from pulsarium.pipeline.source.ledgers import Ledgers
from pulsarium.pipeline.source.losses import LossCheck, expecting
from pulsarium.pipeline.source.offsets import Offset, TopicOffset, TopicRange, splits_of
from pulsarium.pipeline.source.options import SourceOptions
from pulsarium.pipeline.source.places import FIRST, LAST, AtIndex, ReadPosition, position_of
from pulsarium.pipeline.source.planning import Planner
from pulsarium.pipeline.source.reading import reading
from pulsarium.pipeline.source.task import read
from pulsarium.pipeline.source.topics import each


class PulsarReader(DataSourceReader):
    """Reader of one query. The end `latest` is that at planning time."""

    def __init__(self, options: SourceOptions, wanted: StructType, columns: Columns | None = None) -> None:
        """Prepare the columns `wanted` of `columns`, which `SourceOptions.columns` looks up unless they are given."""
        self._options = options
        self._reading = reading(options, wanted, columns or options.columns())

    @reason_first()
    def partitions(self) -> Sequence[InputPartition]:
        """Return the splits of all topics.

        Raise `NoSuchTopic`, `BadOption`, `DataLoss`, and the broker's own errors.
        """
        with Pulsar(self._options.connection) as pulsar:
            return pulsar.call(plan, pulsar.client, self._options, self._reading.selection)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, TopicRange):  # Spark's own partition, for an empty range
            return
        with reason_first():
            yield from read(self._reading, partition)


class FilteringReader(PulsarReader):
    """Reader that skips topics and entries of which a query needs no message.

    Spark refuses readers with `pushFilters` unless spark.sql.python.filterPushdown.enabled is true.
    """

    @override
    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        self._reading = replace(self._reading, selection=Selection.of(filters))
        return filters  # Spark applies all of them to the rows, too


async def plan(client: Client, options: SourceOptions, selection: Selection) -> list[TopicRange]:
    """Return the splits of everything to read, by topic, each topic's in order."""
    found = await options.topics.find(client)
    options.start.check(found, "startingOffsets")
    options.end.check(found, "endingOffsets")
    topics = [topic for topic in found if selection.has_topic(topic)]
    starts = await each(topics, lambda topic: position_of(client, topic, options.start.of(topic)))
    ends = await each(topics, lambda topic: position_of(client, topic, options.end.of(topic), is_end=True))
    bounds = await each(topics, lambda topic: _bounds(client, topic, options, selection))
    ranges: dict[str, tuple[ReadPosition, ReadPosition]] = {}
    for topic in topics:
        start, end = max(starts[topic], bounds[topic][0]), min(ends[topic], bounds[topic][1])
        if start < end:
            ranges[topic] = start, end
    ledgers = await each(ranges, lambda topic: Ledgers.ask(client, topic)) if options.has_admin else {}
    LossCheck(fail=options.fail_on_data_loss).ledgers(starts, ledgers)
    cuts = await Cutting(client, options).cuts(ranges, ledgers)
    planned = [
        split
        for topic, (start, end) in ranges.items()
        for split in splits_of(topic, start, TopicOffset(end, cuts[topic]))
    ]
    return expecting(planned, ledgers)


async def _bounds(
    client: Client, topic: str, options: SourceOptions, selection: Selection
) -> tuple[ReadPosition, ReadPosition]:
    """Return the range of a topic that has all messages with a selected index, as far as the broker tells it."""
    first, last = FIRST, LAST
    if options.has_admin:
        with suppress(BadOption):  # the broker assigns no indexes
            if selection.first_index:
                first = await position_of(client, topic, AtIndex(selection.first_index))
            if selection.last_index < MOST:
                last = await position_of(client, topic, AtIndex(max(0, selection.last_index + 1)), is_end=True)
    return first, last


class PulsarStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reader of a stream that gives each message to exactly one micro-batch.

    `partitions` depends on its offsets alone, and the subscription follows the offsets that Spark has committed.
    Neither `commit` nor `stop` is needed for that, because Spark does not always call them.
    """

    def __init__(self, options: SourceOptions, wanted: StructType, columns: Columns | None = None) -> None:
        """Prepare the columns, as `PulsarReader` does."""
        self._options = options
        self._reading = reading(options, wanted, columns or options.columns())
        self._pulsar: Pulsar | None = None
        self._planner: Planner

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for the workers, which only read."""
        return {"_options": self._options, "_reading": self._reading, "_pulsar": None}

    @override
    @reason_first()
    def initialOffset(self) -> Offset:
        return self._driver().call(self._planner.initial)

    @override
    def getDefaultReadLimit(self) -> ReadLimit:
        options = self._options
        if options.max_bytes:
            return ReadMaxBytes(options.max_bytes)
        return ReadMaxRows(options.max_messages) if options.max_messages else ReadAllAvailable()

    @override
    def prepareForTriggerAvailableNow(self) -> None:
        self._driver().call(self._planner.stop_at_present)

    @override
    @reason_first()
    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """Return where the next micro-batch ends. Raise `DataLoss`, and the broker's own errors."""
        most_bytes = limit.max_bytes if isinstance(limit, ReadMaxBytes) else 0
        most_messages = 0 if isinstance(limit, ReadAllAvailable) else self._options.max_messages
        return self._driver().call(self._planner.latest, start, most_bytes, most_messages)

    @override
    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return the ends of the topics and the lag behind them, which the progress of the query shows."""
        return self._driver().call(self._planner.report)

    @reason_first()
    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Return the splits between two offsets.

        Raise `DataLoss` when messages of a batch of the previous run are gone.
        """
        self._driver().call(self._planner.check, start, end)
        return self._planner.splits(start, end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, TopicRange)
        with reason_first():
            yield from read(self._reading, partition)

    def stop(self) -> None:
        pulsar, self._pulsar = self._pulsar, None
        if pulsar is not None:
            try:
                pulsar.call(self._planner.aclose)
            finally:
                pulsar.__exit__(None, None, None)

    def _driver(self) -> Pulsar:
        """Return the driver's client, which is open from the first call until `stop`."""
        if self._pulsar is None:
            self._pulsar = Pulsar(self._options.connection).__enter__()
            self._planner = Planner(self._pulsar.client, self._options)
        return self._pulsar
