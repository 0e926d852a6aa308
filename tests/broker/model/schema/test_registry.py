"""Versions of schemas: creation, lookup, deletion and recovery."""

from __future__ import annotations

import pytest

from pulsarium.broker.model.schema.data import IncompatibleSchemaError, NoSchemaError, SchemaData
from pulsarium.broker.model.schema.registry import TIMESTAMP, SchemaRegistry
from pulsarium.proto.topic_name import TopicName
from tests.broker.model.stores import Paths

TOPIC = TopicName.parse("persistent://public/default/t")
INT, SPACED, STRING, MORE = (
    SchemaData("AVRO", b'{"type":"record","name":"R","fields":[%s]}' % fields)
    for fields in (
        b'{"name":"a","type":"int"}',
        b'{"name": "a", "type": "int"}',
        b'{"name":"a","type":"string"}',
        b'{"name":"a","type":"int"},{"name":"b","type":"int","default":1}',
    )
)
PARTIAL = ("BACKWARD", "FORWARD", "FORWARD_TRANSITIVE", "FULL")


@pytest.fixture
def kept() -> Paths:
    return Paths()


@pytest.fixture
def schemas(kept: Paths) -> SchemaRegistry:
    ledgers = iter(range(7, 100))
    return SchemaRegistry(kept, lambda: next(ledgers))


@pytest.mark.req("B-30")
def test_two_texts_of_one_schema_are_one_version(schemas: SchemaRegistry) -> None:
    assert schemas.add(TOPIC, INT, "FULL", 1).version == schemas.add(TOPIC, SPACED, "FULL", 2).version == 0
    assert schemas.add(TOPIC, MORE, "FULL", 3).version == 1
    assert schemas.find(TOPIC, SPACED) == schemas.get(TOPIC, 0)
    assert schemas.find_exact(TOPIC, SPACED) is None
    assert schemas.find_exact(TOPIC, INT) == schemas.get(TOPIC, 0)
    assert schemas.find(TOPIC, SchemaData("JSON", INT.data)) is None
    assert schemas.find(TOPIC, SchemaData("AVRO", b"{")) is None


@pytest.mark.req("B-30")
def test_an_older_version_is_no_new_one(schemas: SchemaRegistry) -> None:
    schemas.add(TOPIC, INT, "FULL", 1)
    schemas.add(TOPIC, STRING, "ALWAYS_COMPATIBLE", 2)
    assert schemas.add(TOPIC, INT, "ALWAYS_INCOMPATIBLE", 3).version == 0
    with pytest.raises(IncompatibleSchemaError):
        schemas.add(TOPIC, MORE, "FULL", 3)
    with pytest.raises(IncompatibleSchemaError):
        schemas.check(TOPIC, INT, "FULL")
    schemas.check(TOPIC, STRING, "ALWAYS_INCOMPATIBLE")  # the schema is the newest one itself


@pytest.mark.req("B-30")
def test_a_deleted_schema_goes_on_with_the_next_version(schemas: SchemaRegistry, kept: Paths) -> None:
    schemas.add(TOPIC, INT, "FULL", 1)
    assert schemas.mark_deleted(TOPIC, 2).version == 1
    assert (schemas.latest(TOPIC), schemas.get(TOPIC, 0), schemas.versions(TOPIC)) == (None, None, [])
    again = schemas.add(TOPIC, STRING, "FULL", 3)  # no schema is left to compare with
    assert (again.version, schemas.get(TOPIC, 2), schemas.get(TOPIC, 1)) == (2, again, None)
    assert schemas.mark_deleted(TOPIC, 4).version == 3
    assert schemas.mark_deleted(TOPIC, 5).version == 4
    assert [each.version for each in schemas.all(TOPIC)] == [0, 1, 2, 3, 4]
    schemas.delete(TOPIC)
    assert not kept
    assert schemas.add(TOPIC, INT, "FULL", 6).version == 0


def test_all_versions_of_a_schema_are_recovered(schemas: SchemaRegistry, kept: Paths) -> None:
    schemas.add(TOPIC, SchemaData("AVRO", INT.data, (("k", "v"),)), "FULL", 1)
    schemas.mark_deleted(TOPIC, 2)
    schemas.add(TOPIC, SchemaData("BYTES"), "FULL", 3)
    again = SchemaRegistry(kept)
    again.recover(kept)
    assert again.all(TOPIC) == schemas.all(TOPIC)
    first, _, last = again.all(TOPIC)
    assert (first.ledger_id, first.timestamp_ms, first.schema.texts, last.schema.type) == (7, 1, {"k": "v"}, "NONE")


def test_a_schema_that_an_older_version_kept_names_no_ledger(kept: Paths) -> None:
    schema = SchemaData("AVRO", INT.data, ((TIMESTAMP, "1"),)).to_proto(TOPIC.schema_name)
    kept["/schemas/public/default/t/0"] = schema.SerializeToString()
    registry = SchemaRegistry(kept)
    registry.recover(kept)
    assert [(each.ledger_id, each.timestamp_ms) for each in registry.all(TOPIC)] == [(-1, 1)]


@pytest.mark.req("B-30")
@pytest.mark.parametrize("strategy", PARTIAL)
def test_consumers_must_read_the_newest(schemas: SchemaRegistry, strategy: str) -> None:
    with pytest.raises(NoSchemaError):
        schemas.check_consumer(TOPIC, INT, strategy)
    schemas.add(TOPIC, STRING, "FULL", 1)
    schemas.add(TOPIC, INT, "ALWAYS_COMPATIBLE", 2)
    schemas.check_consumer(TOPIC, MORE, strategy)
    with pytest.raises(IncompatibleSchemaError, match="strategy BACKWARD:"):
        schemas.check_consumer(TOPIC, STRING, strategy)


@pytest.mark.req("B-30")
def test_consumers_are_judged_by_other_strategies_too(schemas: SchemaRegistry) -> None:
    schemas.check_consumer(TOPIC, INT, "ALWAYS_COMPATIBLE")
    schemas.add(TOPIC, STRING, "FULL", 1)
    schemas.add(TOPIC, INT, "ALWAYS_COMPATIBLE", 2)
    for strategy in ("BACKWARD_TRANSITIVE", "FULL_TRANSITIVE", "ALWAYS_INCOMPATIBLE"):
        with pytest.raises(IncompatibleSchemaError, match=f"strategy {strategy}:"):
            schemas.check_consumer(TOPIC, INT, strategy)
    schemas.check_consumer(TOPIC, SchemaData("STRING"), "ALWAYS_COMPATIBLE")
