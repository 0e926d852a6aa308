"""A task of the sink, run without Spark."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StringType, StructType

from pulsarium.pipeline.sink import task
from pulsarium.pipeline.sink.once import MOST_BATCHES, OutOfNumbers
from pulsarium.pipeline.sink.options import SinkOptions
from pulsarium.pipeline.sink.sending import WriteFailed
from pulsarium.pipeline.sink.written import Written, figures
from tests.foreign.broker_process import Address

SCHEMA = StructType().add("value", BinaryType()).add("__Topic", StringType())


def batch(*topics: str | None) -> pa.RecordBatch:
    values = pa.array([b"%d" % n for n in range(len(topics))], pa.binary())
    return pa.record_batch([values, pa.array(topics, pa.string())], names=["value", "__Topic"])


def write(address: Address, batches: Iterator[pa.RecordBatch], batch_id: int = 0, **options: str) -> Written:
    made = SinkOptions.of({"service.url": address.service_url, **options})
    return task.write(batches, made, SCHEMA, name="p-7", partition=7, batch_id=batch_id, required=False)


def test_nothing_to_write() -> None:
    """The task needs no broker when it has no rows."""
    assert write(Address("pulsar://127.0.0.1:1", ""), iter([batch(), batch()])) == Written(7)


def test_topics_by_row_or_by_option(broker: Address, topic: str) -> None:
    """The option overrides the column, as in the JVM connector. So rows do not return to the topic they came from."""
    a, b = f"{topic}-a", f"{topic}-b"
    assert write(broker, iter([batch(a, b), batch(), batch(b, b)])) == Written(7, 4, 0, {a: 1, b: 3})
    assert write(broker, iter([batch(a, b), batch(None)]), topic=topic) == Written(7, 3, 0, {topic: 3})
    short = a.removeprefix("persistent://public/default/")  # both names mean one topic, which gets one producer
    assert write(broker, iter([batch(a, short)]), batch_id=1) == Written(7, 2, 0, {a: 2})


def test_a_row_without_topic_fails_the_task_with_its_number(broker: Address, topic: str) -> None:
    with pytest.raises(WriteFailed, match="row 3 of a Spark partition has no __topic"):
        write(broker, iter([batch(topic, topic), batch(topic, None)]))


def test_a_batch_without_number(broker: Address, topic: str) -> None:
    with pytest.raises(OutOfNumbers):
        write(broker, iter([batch(topic)]), MOST_BATCHES)


def test_a_failure_sends_nothing_more(broker: Address, topic: str) -> None:
    """The task raises the error of Spark's rows at once, and frees the name of its producer."""

    def failing() -> Iterator[pa.RecordBatch]:
        yield batch(topic)
        raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            write(broker, failing(), producerBusyTimeoutMs="0")


def test_the_figures_of_a_batch_are_summed_over_tasks() -> None:
    messages = [Written(0, 3, 1, {"a": 3}), None, Written(1, 2, 0, {"a": 1, "b": 1})]
    assert figures(messages) == "5 rows of 2 tasks, 1 of them written by earlier attempts (a 4, b 1)"
