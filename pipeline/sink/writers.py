"""Write a DataFrame (`df.write`) or a stream (`writeStream`)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from pulsarium.pipeline.errors import reason_first
from pulsarium.pipeline.options import BadOption
from pulsarium.pipeline.sink.options import SinkOptions
from pulsarium.pipeline.sink.written import WrittenRows, figures

if TYPE_CHECKING:  # only tasks need Arrow and a client, and their imports take long
    import pyarrow as pa

log = logging.getLogger(__name__)


class PulsarWriter(DataSourceArrowWriter):
    """Writer of one job, which Spark copies to the tasks. Its name is the same in each attempt of a task."""

    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        """Validate the options.

        Raise `BadOption`, and `NoDeduplication` when the options require deduplication.
        """
        self._options = made = SinkOptions.of(options)
        self._schema = schema
        made.check(schema, overwrite=overwrite)
        if (made.producer_name is None) != (made.batch_id is None):
            raise BadOption(
                "df.write needs both producerName and batchId, or neither: one alone does not prevent duplicates"
            )
        self._required = bool(made.required)
        if self._required:
            _require_deduplication(made)
        # a name of this job's own, so that the broker deduplicates its attempts, and not other jobs
        self._name = made.producer_name or f"spark-{uuid4()}"

    @reason_first()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenRows:
        context = TaskContext.get()
        assert context is not None
        from pulsarium.pipeline.sink import task

        return task.write(
            iterator,
            self._options,
            self._schema,
            name=f"{self._name}-{context.partitionId()}",
            partition=context.partitionId(),
            batch_id=self._options.batch_id or 0,
            required=self._required,
        )

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        log.info("%s: %s", self._name, figures(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        log.warning("%s: failed; the topics keep %s", self._name, figures(messages))


# Spark's MicroBatchExecution passes these to the tasks of a batch. Both survive a restart from the checkpoint.
QUERY_ID, BATCH_ID = "sql.streaming.queryId", "streaming.sql.batchId"


class PulsarStreamWriter(DataSourceStreamArrowWriter):
    """Writer of one micro-batch.

    It keeps no state, because Spark makes one writer for a batch and another to commit it.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        """Validate the options. Raise `BadOption` or `NoDeduplication`."""
        self._options = made = SinkOptions.of(options)
        self._schema = schema
        made.check(schema, overwrite=overwrite)
        if made.batch_id is not None:
            raise BadOption("batchId is an option of df.write: a stream numbers its batches itself")
        self._required = made.required is not False
        if self._required:
            _require_deduplication(made)

    @reason_first()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenRows:
        context = TaskContext.get()
        assert context is not None
        query, batch = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
        if query is None or batch is None:
            raise RuntimeError(
                f"Spark passed no {QUERY_ID} and {BATCH_ID} to this task: use a trigger of micro-batches"
            )
        from pulsarium.pipeline.sink import task

        return task.write(
            iterator,
            self._options,
            self._schema,
            # with the query's id, because two queries of one name would drop each other's rows as repetitions
            name=f"{self._options.producer_name or 'spark'}-{query}-{context.partitionId()}",
            partition=context.partitionId(),
            batch_id=int(batch),
            required=self._required,
        )

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  # Spark's
        log.info("batch %d: %s", batchId, figures(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        log.warning("batch %d failed; the topics keep %s", batchId, figures(messages))


def _require_deduplication(options: SinkOptions) -> None:
    """Raise `NoDeduplication` when the topic does not deduplicate.

    Topics that rows name are checked at their first row.
    """
    for topic in (options.topic, options.dead_letter_topic):
        if topic is not None:
            from pulsarium.pipeline.sink import once

            once.require_deduplication(options.connection, topic)
