"""Record batches that Spark reads and returns."""

from __future__ import annotations

from datetime import UTC, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from pulsarium.client import AvroSchema, JsonSchema
from pulsarium.pipeline.columns.columns import Columns
from pulsarium.pipeline.columns.derived import info_for
from tests.pipeline.columns.derived import EVERYTHING, ROW
from tests.pipeline.columns.messages import TOPIC, add_all, logical, message, record
from tests.pipeline.columns.writing import messages, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFINITION = record(
    ("id", "long"),
    ("at", logical("long", "timestamp-millis")),
    ("day", ["null", logical("int", "time-micros")]),
    ("clock", logical("long", "time-micros")),
    ("local", logical("long", "local-timestamp-micros")),
    ("price", logical("bytes", "decimal", precision=6, scale=2)),
    ("tags", {"type": "map", "values": ["null", "string"]}),
    ("choice", ["string", "int"]),
    ("inner", {"type": "array", "items": record(("x", ["null", "bytes"]), name="Inner")}),
)
MOMENT = datetime(2024, 1, 2, 3, 4, 5, 6000, UTC)
VALUE = {
    "id": 1,
    "at": MOMENT,
    "day": 5,
    "clock": time(1, 2, 3, 4),
    "local": MOMENT.replace(tzinfo=None),
    "price": Decimal("1.50"),
    "tags": {"a": "b", "c": None},
    "choice": 3,
    "inner": [{"x": b"\xff"}, {"x": None}],
}


def test_spark_reads_the_record_batches(spark: SparkSession) -> None:
    schema = AvroSchema(DEFINITION)
    columns = Columns.of(schema.info)
    messages = [message(schema.encode(VALUE), schema=columns.client_schema()), message(None, {"partition_key": "k"})]
    batch = add_all(columns.for_reading(columns.schema), messages).take()
    frame = spark.createDataFrame(pa.Table.from_batches([batch]), schema=columns.schema)
    assert frame.schema == columns.schema
    first, gone = (row.asDict(recursive=True) for row in frame.collect())
    assert first["__topic"] == TOPIC
    assert first["__messageId"] == messages[0].message_id().serialize()
    # Spark shows timestamps in the time zone of this machine.
    assert {name: first[name] for name in VALUE} == {
        **VALUE,
        "at": MOMENT.astimezone().replace(tzinfo=None),
        "choice": {"member0": None, "member1": 3},
    }
    assert gone["__key"] == b"k"
    assert all(gone[name] is None for name in VALUE)


@pytest.mark.parametrize("as_json", [False, True])
def test_spark_gives_record_batches_that_the_sink_reads(spark: SparkSession, as_json: bool) -> None:
    given = pa.Table.from_pylist([ROW, {}], schema=to_arrow_schema(EVERYTHING, timezone="UTC"))
    frame = spark.createDataFrame(given, schema=EVERYTHING)
    info = info_for(frame.schema, as_json=as_json)
    assert info is not None
    writer = Columns.of(info).for_writing(frame.schema)
    found = [each.value for batch in frame.toArrow().to_batches() for each in messages(writer, batch)]
    schema: AvroSchema[Any] | JsonSchema[Any] = (JsonSchema if as_json else AvroSchema)(info.data.decode())
    assert found == [each.value for each in write(schema, EVERYTHING, ROW, {})]
    assert found[1] is None
    schema.encode(found[0])
