"""Write the rows of a Spark partition into their topics."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructType

from pulsarium.client.topics import full_name
from pulsarium.pipeline.columns.names import TOPIC
from pulsarium.pipeline.columns.ragged import Numbers
from pulsarium.pipeline.pulsar import Pulsar
from pulsarium.pipeline.sink import once
from pulsarium.pipeline.sink.once import by_content, sequence_ids
from pulsarium.pipeline.sink.options import SinkOptions, topic_column
from pulsarium.pipeline.sink.sending import Sender, WriteFailed
from pulsarium.pipeline.sink.written import WrittenRows


def write(
    batches: Iterator[pa.RecordBatch],
    options: SinkOptions,
    schema: StructType,
    *,
    name: str,
    partition: int,
    batch_id: int,
    required: bool,
) -> WrittenRows:
    """Write the rows of a task as the producer `name`, and wait until they are stored.

    With `required`, topics that rows name must deduplicate. Raise `WriteFailed` or `NoDeduplication`.
    """
    full = (batch for batch in batches if batch.num_rows)
    first = next(full, None)
    if first is None:
        return WrittenRows(partition)
    rows = chain([first], full)
    column = None if options.topic else topic_column(schema)
    with Pulsar(options.connection) as pulsar:
        sender = pulsar.enter(lambda: Sender(pulsar.client, options, schema, name, partition))
        try:
            row = 0
            for batch in by_content(rows) if options.is_sorted else rows:
                numbers = sequence_ids(batch_id, row, batch.num_rows)
                if options.topic:
                    pulsar.call(sender.send, options.topic, batch, numbers)
                else:
                    for topic, members in by_topic(batch.column(column), row).items():
                        if required:
                            once.require_deduplication(options.connection, topic)
                        pulsar.call(sender.send, topic, batch.take(pa.array(members)), numbers[members])
                if options.dead_letter_topic:
                    pulsar.call(sender.send_letters)
                row += batch.num_rows
            return pulsar.call(sender.finish)
        except BaseException:
            pulsar.call(sender.abandon)
            raise


def by_topic(topics: pa.Array, row: int) -> dict[str, Numbers]:
    """Return the numbers of a batch's rows by topic.

    `row` is the number of the batch's first row. Raise `WriteFailed` for a row without a topic.
    """
    encoded = topics.dictionary_encode()
    indices = encoded.indices.fill_null(-1).to_numpy()
    found: dict[str, list[int]] = {}
    for index, topic in [*enumerate(encoded.dictionary.to_pylist()), (-1, None)]:
        if topic:
            found.setdefault(full_name(topic), []).append(index)
        elif len(without := np.flatnonzero(indices == index)):
            raise WriteFailed(
                f'row {row + without[0]} of a Spark partition has no {TOPIC}, and there is no .option("topic", ...)'
            )
    return {topic: np.flatnonzero(np.isin(indices, several)) for topic, several in found.items()}
