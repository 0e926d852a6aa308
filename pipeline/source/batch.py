"""`spark.read`: topics from a start to an end that are decided once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pulsarium.client import Client
from pulsarium.pipeline.pulsar import Pulsar
from pulsarium.pipeline.source.cutting import Cutting
from pulsarium.pipeline.source.ledgers import Ledgers
from pulsarium.pipeline.source.loss import LossCheck
from pulsarium.pipeline.source.many import each
from pulsarium.pipeline.source.offsets import Split, TopicOffset, splits_of
from pulsarium.pipeline.source.options import SourceOptions
from pulsarium.pipeline.source.position import Position
from pulsarium.pipeline.source.reading import reading
from pulsarium.pipeline.source.resolving import position_of


class PulsarReader(DataSourceReader):
    """Made anew for each query: the end `latest` is that of its planning."""

    def __init__(self, options: SourceOptions, wanted: StructType) -> None:
        """`wanted`: the columns, all or some. Asks the registry; raises as `columns_of`."""
        self._options = options
        self._reading = reading(options, wanted)

    def partitions(self) -> Sequence[InputPartition]:
        """NoSuchTopic, BadOption, DataLoss, and what brokers refuse."""
        with Pulsar(self._options.connection) as pulsar:
            return pulsar.call(plan, pulsar.client, self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, Split):  # Spark's own, where there is nothing to read
            return iter(())
        return self._reading.read(partition)


async def plan(client: Client, options: SourceOptions) -> list[Split]:
    """The splits of all that is to be read, by topic, each topic's in order."""
    topics = await options.topics.find(client)
    options.start.check(topics, "startingOffsets")
    options.end.check(topics, "endingOffsets")
    starts = await each(topics, lambda topic: position_of(client, topic, options.start.of(topic)))
    ends = await each(topics, lambda topic: position_of(client, topic, options.end.of(topic), is_end=True))
    ranges: dict[str, tuple[Position, Position]] = {
        topic: (starts[topic], ends[topic]) for topic in topics if starts[topic] < ends[topic]
    }
    ledgers = await each(ranges, lambda topic: Ledgers.ask(client, topic)) if options.has_admin else {}
    LossCheck(fail=options.fail_on_data_loss).ledgers(starts, ledgers)
    cuts = await Cutting(client, options).cuts(ranges, ledgers)
    return [
        split
        for topic, (start, end) in ranges.items()
        for split in splits_of(topic, start, TopicOffset(end, cuts[topic]))
    ]
