"""`writeStream`."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from pulsarium.pipeline.options import BadOption
from pulsarium.pipeline.sink import task
from pulsarium.pipeline.sink.options import SinkOptions
from pulsarium.pipeline.sink.sending import Written
from pulsarium.pipeline.sink.writer import figures

log = logging.getLogger(__name__)

# What Spark's MicroBatchExecution tells the tasks of a batch; both survive a restart from the checkpoint.
QUERY_ID, BATCH_ID = "sql.streaming.queryId", "streaming.sql.batchId"


class PulsarStreamWriter(DataSourceStreamArrowWriter):
    """Spark makes one for each batch and another to commit it: nothing is kept in it."""

    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        """BadOption, NoDeduplication."""
        self._options = made = SinkOptions.of(options)
        self._schema = schema
        task.check(made, schema, overwrite=overwrite)
        if made.batch_id is not None:
            raise BadOption("batchId is for df.write: a stream has its own")
        self._required = made.required is not False
        if self._required:
            task.require_deduplication(made)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        context = TaskContext.get()
        assert context is not None
        query, batch = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
        if query is None or batch is None:
            raise RuntimeError(f"Spark did not tell this task {QUERY_ID} and {BATCH_ID}: triggers have micro-batches")
        return task.write(
            iterator,
            self._options,
            self._schema,
            name=f"{self._options.producer_name or f'spark-{query}'}-{context.partitionId()}",
            partition=context.partitionId(),
            batch_id=int(batch),
            required=self._required,
        )

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  # Spark's
        log.info("batch %d: %s", batchId, figures(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        log.warning("batch %d failed, and this stays in the topics: %s", batchId, figures(messages))
