"""A task of the sink, run without Spark.

The order of rows in each attempt. Sequence ids of rows. Micro-batches of a stream, written without Spark.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import BinaryType, StringType, StructType

from pulsarium.pipeline.sink import task, writers
from pulsarium.pipeline.sink.once import (
    MOST_BATCHES,
    MOST_ROWS,
    OutOfNumbers,
    batch_of,
    by_content,
    row_of,
    sequence_id,
)
from pulsarium.pipeline.sink.options import SinkOptions
from pulsarium.pipeline.sink.sending import WriteFailed
from pulsarium.pipeline.sink.writers import BATCH_ID, QUERY_ID, PulsarStreamWriter
from pulsarium.pipeline.sink.written import WrittenRows, figures
from tests.foreign.broker_process import Address
from tests.pipeline.source.topics import flat, values

SCHEMA = StructType().add("value", BinaryType()).add("__Topic", StringType())


def batch(*topics: str | None) -> pa.RecordBatch:
    values = pa.array([b"%d" % n for n in range(len(topics))], pa.binary())
    return pa.record_batch([values, pa.array(topics, pa.string())], names=["value", "__Topic"])


def write(address: Address, batches: Iterator[pa.RecordBatch], batch_id: int = 0, **options: str) -> WrittenRows:
    made = SinkOptions.of({"service.url": address.service_url, **options})
    return task.write(batches, made, SCHEMA, name="p-7", partition=7, batch_id=batch_id, required=False)


def test_nothing_to_write() -> None:
    """The task needs no broker when it has no rows."""
    assert write(Address("pulsar://127.0.0.1:1", ""), iter([batch(), batch()])) == WrittenRows(7)


def test_topics_by_row_or_by_option(broker: Address, topic: str) -> None:
    """The option overrides the column, as in the JVM connector. So rows do not return to the topic they came from."""
    a, b = f"{topic}-a", f"{topic}-b"
    assert write(broker, iter([batch(a, b), batch(), batch(b, b)])) == WrittenRows(7, 4, 0, {a: 1, b: 3})
    assert write(broker, iter([batch(a, b), batch(None)]), topic=topic) == WrittenRows(7, 3, 0, {topic: 3})
    short = a.removeprefix("persistent://public/default/")  # both names mean one topic, which gets one producer
    assert write(broker, iter([batch(a, short)]), batch_id=1) == WrittenRows(7, 2, 0, {a: 2})


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
    messages = [WrittenRows(0, 3, 1, {"a": 3}), None, WrittenRows(1, 2, 0, {"a": 1, "b": 1})]
    assert figures(messages) == "5 rows of 2 tasks, 1 of them written by earlier attempts (a 4, b 1)"


ORDERED = pa.schema(
    [
        ("number", pa.int64()),
        ("text", pa.string()),
        ("real", pa.float64()),
        ("bytes", pa.binary()),
        ("map", pa.map_(pa.string(), pa.string())),
        ("list", pa.list_(pa.int32())),
        ("struct", pa.struct([("inner", pa.int32())])),
    ]
)
ROWS = st.fixed_dictionaries(
    {
        "number": st.none() | st.integers(0, 3),
        "text": st.none() | st.sampled_from("ab"),
        "real": st.none() | st.sampled_from([0.0, 1.5, float("inf")]),
        "bytes": st.none() | st.binary(max_size=1),
        "map": st.none() | st.lists(st.tuples(st.sampled_from("ab"), st.none()), max_size=1),
        "list": st.none() | st.lists(st.integers(0, 1), max_size=2),
        "struct": st.none() | st.fixed_dictionaries({"inner": st.integers(0, 1)}),
    }
)


def batches(rows: list[dict[str, Any]], size: int) -> list[pa.RecordBatch]:
    return list(pa.Table.from_pylist(rows, ORDERED).to_batches(max_chunksize=size))


def rows_of(found: list[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in found for row in batch.to_pylist()]


@settings(max_examples=50)
@given(st.lists(ROWS, min_size=1, max_size=20), st.randoms(use_true_random=False), st.integers(1, 5))
def test_rows_are_sorted_alike_in_any_order_of_arrival(
    rows: list[dict[str, Any]], chance: random.Random, size: int
) -> None:
    shuffled = chance.sample(rows, len(rows))
    one, other = (rows_of(list(by_content(iter(batches(each, size))))) for each in (rows, shuffled))
    assert one == other
    assert sorted(map(repr, one)) == sorted(map(repr, rows_of(batches(rows, size))))


PLACES = st.tuples(st.integers(0, MOST_BATCHES - 1), st.integers(0, MOST_ROWS - 1))


@given(PLACES, PLACES)
def test_later_rows_have_higher_numbers(one: tuple[int, int], other: tuple[int, int]) -> None:
    assert (one < other) == (sequence_id(*one) < sequence_id(*other))


@given(PLACES)
def test_a_sequence_id_names_its_place(place: tuple[int, int]) -> None:
    number = sequence_id(*place)
    assert 0 <= number < 2**63
    assert (batch_of(number), row_of(number)) == place


def test_no_number_is_of_no_batch() -> None:
    assert batch_of(-1) == -1


@pytest.mark.parametrize("place", [(-1, 0), (MOST_BATCHES, 0), (0, -1), (0, MOST_ROWS)])
def test_a_row_beyond_the_range_of_sequence_ids_is_refused(place: tuple[int, int]) -> None:
    with pytest.raises(OutOfNumbers):
        sequence_id(*place)


STREAMED = StructType().add("value", BinaryType())


@pytest.mark.parametrize("more", [{}, {"producerName": "orders"}])
def test_queries_of_one_producer_name_do_not_drop_each_others_rows(
    broker: Address, deduplicated: str, more: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repeated batch of a query adds nothing, and the same batch of another query has other rows."""
    given = {"service.url": broker.service_url, "admin.url": broker.admin_url, "topic": deduplicated, **more}
    for query, value in (("one", b"1"), ("one", b"1"), ("other", b"2")):
        task = SimpleNamespace(partitionId=lambda: 0, getLocalProperty={QUERY_ID: query, BATCH_ID: "0"}.get)
        monkeypatch.setattr(writers, "TaskContext", SimpleNamespace(get=lambda task=task: task))
        rows = pa.record_batch([pa.array([value], pa.binary())], names=["value"])
        PulsarStreamWriter(given, STREAMED, False).write(iter([rows]))
    assert flat(values(broker, deduplicated)) == [b"1", b"2"]
