from __future__ import annotations

import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from bench.pipeline.against import FIRST, FLOOR, JVM, OURS, Figure, profile, table
from bench.pipeline.floor import Floor
from bench.pipeline.one_session import Cost, Read, Session, Write
from pulsarium.pipeline.columns.names import METADATA
from tests.bench.bench import bench


def test_a_comparison_without_the_connector_is_skipped_with_a_reason() -> None:
    run = bench("pipeline", "--against", "jvm")
    assert run.returncode == 0, run.stderr
    assert run.stderr.splitlines()[-1] == (
        "bench: the comparison with the JVM connector is skipped: pass --jvm-connector JAR"
    )


def test_a_connector_that_does_not_exist_is_an_error() -> None:
    run = bench("pipeline", "--against", "jvm", "--jvm-connector", "none.jar")
    assert run.returncode == 2
    assert "there is no file none.jar" in run.stderr


def _figure(name: str, rows: int, jvm: list[float], ours: list[float]) -> Figure:
    seconds = {JVM: jvm, OURS: ours, FLOOR: [1.0]}
    costs = {system: [Cost(each, {"tasks": each / 2}) for each in every] for system, every in seconds.items()}
    return Figure(name, rows, costs)


def test_a_ratio_above_one_means_that_ours_is_faster() -> None:
    found = [_figure(FIRST, 7, [10.0, 20.0, 30.0], [10.0]), _figure("read 1 KB", 1000, [1.0], [2.0])]
    assert table(found).splitlines()[2:] == [
        f"| {FIRST} | 20.0 s | 10.0 s | 2.00 | 1 | 1.0 s |",
        "| read 1 KB | 1,000 | 500 | 0.50 (missed) | 1 | 1,000 |",
    ]


def test_a_missed_figure_has_its_profile() -> None:
    found = [_figure("read JSON", 1, [0.8], [1.0]), _figure("read 1 KB", 1000, [1.0], [2.0])]
    assert profile(found).splitlines()[2:] == [
        "| read 1 KB | JVM | 1.00 | 0.00 | 0.00 | 0.50 | 0.00 | 0.00 |",
        "| read 1 KB | pulsarium | 2.00 | 0.00 | 0.00 | 1.00 | 0.00 | 0.00 |",
        "| read 1 KB | nothing | 1.00 | 0.00 | 0.00 | 0.50 | 0.00 | 0.00 |",
    ]


def test_a_session_reaches_its_process_unchanged() -> None:
    reads, writes = [Read("r", "t", 1, 100, 4, {})], [Write("w", "t", 1, 100)]
    session = Session("pulsar", ["a.jar"], {"service.url": "u"}, 7, reads, writes)
    assert Session.decode(session.encode()) == session


@pytest.mark.parametrize("values", [[StructField("value", BinaryType())], [StructField("qty", IntegerType())]])
def test_a_source_that_does_nothing_has_the_columns_and_rows_of_a_topic(values: list[StructField]) -> None:
    schema = StructType([*values, *METADATA.fields])
    reader = Floor({"rows": "25003", "size": "100", "partitions": "2"}).reader(schema)
    made = [batch for part in reader.partitions() for batch in reader.read(part)]
    assert sum(each.num_rows for each in made) == 25_003
    assert made[0].schema == to_arrow_schema(schema, timezone="UTC")
    made[0].validate(full=True)
