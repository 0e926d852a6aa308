"""Types of Spark for the types of Avro."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.types import StructType

from pulsarium.pipeline.columns.kinds import BadColumns, NoKind, record_kind
from tests.pipeline.columns.messages import logical, record


def spark(kind: Any) -> str:
    struct = record_kind(record(("a", kind))).spark
    assert isinstance(struct, StructType)
    assert struct.fields[0].nullable
    return struct.fields[0].dataType.simpleString()


@pytest.mark.parametrize(
    ("avro", "expected"),
    [
        ("boolean", "boolean"),
        ("int", "int"),
        ("long", "bigint"),
        ("float", "float"),
        ("double", "double"),
        ("string", "string"),
        ({"type": "string", "avro.java.string": "String"}, "string"),
        ("bytes", "binary"),
        ("null", "string"),
        ({"type": "fixed", "name": "F", "size": 3}, "binary"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "string"),
        (logical("int", "date"), "date"),
        (logical("int", "time-millis"), "time(6)"),
        (logical("long", "time-micros"), "time(6)"),
        (logical("long", "timestamp-millis"), "timestamp"),
        (logical("long", "timestamp-micros"), "timestamp"),
        (logical("long", "local-timestamp-millis"), "timestamp_ntz"),
        (logical("long", "local-timestamp-micros"), "timestamp_ntz"),
        (logical("string", "uuid"), "string"),
        (logical("bytes", "decimal", precision=9, scale=2), "decimal(9,2)"),
        (logical("bytes", "decimal", precision=9), "decimal(9,0)"),
        (logical("bytes", "decimal", precision=39), "string"),
        (logical("fixed", "decimal", precision=9, name="D", size=4), "decimal(9,0)"),
        (logical("long", "nobody-knows-this"), "bigint"),
        (logical("int", "timestamp-millis"), "int"),
        ({"type": "array", "items": "int"}, "array<int>"),
        ({"type": "map", "values": ["null", "int"]}, "map<string,int>"),
        (record(("b", "int"), name="Inner"), "struct<b:int>"),
        ({"type": record(("b", "int"), name="Inner")}, "struct<b:int>"),
        (["null", "string"], "string"),
        (["string", "null"], "string"),
        (["string"], "string"),
        (["null"], "string"),
        (["int", "long"], "bigint"),
        (["long", "null", "int"], "bigint"),
        (["float", "double"], "double"),
        (["int", "string"], "struct<member0:int,member1:string>"),
        (["null", "int", "string"], "struct<member0:int,member1:string>"),
        (["int", "long", "float"], "struct<member0:int,member1:bigint,member2:float>"),
    ],
)
def test_each_avro_type_has_its_spark_type(avro: Any, expected: str) -> None:
    assert spark(avro) == expected


def test_names_are_found_in_their_namespaces() -> None:
    color = {"type": "enum", "name": "Color", "symbols": ["A"]}
    inner = record(("c", color), ("d", "Color"), name="Inner", namespace="other")
    kind = record_kind(
        record(("a", inner), ("b", "other.Inner"), ("c", {"type": "array", "items": "other.Color"}), namespace="x.y")
    )
    assert kind.full_name == "x.y.R"
    assert (
        kind.spark.simpleString() == "struct<a:struct<c:string,d:string>,b:struct<c:string,d:string>,c:array<string>>"
    )


@pytest.mark.parametrize(
    "definition",
    [
        record(("a", ["null", "R"])),
        record(("a", {"type": "array", "items": record(("b", {"type": "map", "values": "R"}), name="Inner")})),
        record(),
        record(("a", "nobody")),
        record(("a", {"type": "array"})),
        record(("a", 3)),
        record(("a", logical("bytes", "decimal"))),
        {"type": "record", "name": "R"},
    ],
)
def test_there_is_none(definition: dict[str, Any]) -> None:
    with pytest.raises(NoKind):
        record_kind(definition)


def test_fields_that_spark_cannot_tell_apart() -> None:
    with pytest.raises(BadColumns, match="'Name' and 'NAME'"):
        record_kind(record(("Name", "int"), ("NAME", "int")))
    with pytest.raises(BadColumns, match="the record Inner has 'b' and 'B'"):
        record_kind(record(("a", record(("b", "int"), ("B", "int"), name="Inner"))))
