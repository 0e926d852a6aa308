from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, GreaterThanOrEqual, In, IsNotNull, LessThan
from pyspark.sql.types import BinaryType, StructType

from pulsarium.pipeline.source.filters import Selection
from pulsarium.pipeline.source.options import SourceOptions
from pulsarium.pipeline.source.readers import FilteringReader
from tests.foreign.broker_process import Address
from tests.pipeline.source.topics import VALUES, numbers, options, publish, read

TIME, INDEX, KEY = ("__publishTime",), ("__index",), ("__key",)
KEYED = StructType().add("value", BinaryType()).add("__key", BinaryType())
SECOND = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)


def test_times_that_a_condition_excludes() -> None:
    later = Selection.of([IsNotNull(TIME), GreaterThan(TIME, SECOND)])
    assert [later.has_time(each) for each in (999, 1000, 1001)] == [False, True, True]
    both = Selection.of([GreaterThan(TIME, SECOND), LessThan(TIME, SECOND.replace(second=2))])
    assert [both.has_time(each) for each in (999, 1500, 2002)] == [False, True, False]


def test_topics_that_a_condition_excludes() -> None:
    made = Selection.of([In(("__topic",), ("a", "b")), EqualTo(("__topic",), "b")])
    assert [made.has_topic(each) for each in "abc"] == [False, True, False]


@pytest.mark.parametrize(
    ("conditions", "wanted"),
    [
        ([GreaterThanOrEqual(INDEX, 13), LessThan(INDEX, 38)], numbers(26, 13)),
        ([EqualTo(INDEX, 7)], numbers(1, 7)),
        ([GreaterThan(INDEX, 60)], []),
        ([LessThan(INDEX, -1)], []),
    ],
)
def test_only_selected_indexes_are_read(
    conditions: list[Filter], wanted: list[bytes], broker: Address, topic: str
) -> None:
    publish(broker, topic, numbers(50))
    reader = FilteringReader(SourceOptions.of(options(broker, topic)), VALUES)
    reader.pushFilters(conditions)
    assert [value for split in read(reader, reader.partitions()) for value in split] == wanted


@pytest.mark.parametrize(
    ("conditions", "wanted"),
    [
        ([EqualTo(KEY, b"k3")], [3, 13]),
        ([In(KEY, (b"k3", b"k4", None)), IsNotNull(KEY)], [3, 4, 13, 14]),
        ([In(KEY, (b"k3", b"k4")), EqualTo(KEY, b"k4")], [4, 14]),
        ([EqualTo(KEY, b"k3"), EqualTo(KEY, b"k4")], []),
        ([GreaterThan(KEY, b"k7")], range(20)),
    ],
)
def test_a_task_returns_only_rows_with_a_selected_key(
    conditions: list[Filter], wanted: Sequence[int], broker: Address, topic: str
) -> None:
    publish(broker, topic, numbers(20), keys=10)
    reader = FilteringReader(SourceOptions.of(options(broker, topic)), KEYED)
    reader.pushFilters(conditions)
    found = [int(value) for split in read(reader, reader.partitions()) for value in split]
    assert found == list(wanted)


@pytest.mark.parametrize("condition", [EqualTo(("value",), b"a"), EqualTo(("record", "__topic"), "a")])
def test_other_conditions_exclude_nothing(condition: Filter) -> None:
    assert Selection.of([condition]) == Selection()


def test_spark_reads_what_conditions_leave(spark: SparkSession, broker: Address, topic: str) -> None:
    for part in range(2):
        publish(broker, f"{topic}-{part}", numbers(20, 20 * part))
    given = options(broker, None, topics=f"{topic}-0,{topic}-1", pushFilters="true")
    rows = spark.read.format("pulsar").options(**given).load()
    chosen = rows.where(f"__topic = '{topic}-1' AND value > '25'")
    assert sorted(bytes(row["value"]) for row in chosen.collect()) == numbers(14, 26)
    assert chosen.rdd.getNumPartitions() == 1
    assert rows.where("__publishTime > '2000-01-01'").count() == 40
    publish(broker, f"{topic}-0", numbers(20), keys=10)
    with_key = rows.where("__key IN (X'6b33', X'6b34')")  # k3 and k4
    assert sorted(int(row["value"]) for row in with_key.collect()) == [3, 4, 13, 14]
    assert with_key.where("value > '13'").count() == 3
    assert rows.where("string(__key) = 'k3'").count() == 2
    assert rows.where("__key IS NULL").count() == 40
    assert rows.where("__publishTime < '2000-01-01'").count() == 0
