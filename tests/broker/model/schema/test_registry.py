"""Versions of schemas: creation, lookup, deletion and recovery."""

from __future__ import annotations

import pytest

from pulsarium.broker.model.schema import registry
from pulsarium.broker.model.schema.data import IncompatibleSchemaError, NoSchemaError, SchemaData, SchemaError
from pulsarium.broker.model.schema.registry import Answers, SchemaRegistry
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
    schemas.add(TOPIC, SchemaData.of("AVRO", INT.data, {"k": "v"}), "FULL", 1)
    schemas.mark_deleted(TOPIC, 2)
    schemas.add(TOPIC, SchemaData("BYTES"), "FULL", 3)
    again = SchemaRegistry(kept)
    again.recover(kept)
    assert again.all(TOPIC) == schemas.all(TOPIC)
    first, _, last = again.all(TOPIC)
    assert (first.ledger_id, first.timestamp_ms, first.schema.properties, last.schema.type) == (
        7,
        1,
        {"k": "v"},
        "NONE",
    )


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


@pytest.mark.parametrize("schema", [INT, SPACED, STRING, MORE, SchemaData("AVRO", b"{")])
@pytest.mark.parametrize("strategy", ["FULL", "FULL_TRANSITIVE", "ALWAYS_COMPATIBLE"])
def test_a_rehearsal_finds_all_answers(
    schemas: SchemaRegistry, kept: Paths, monkeypatch: pytest.MonkeyPatch, schema: SchemaData, strategy: str
) -> None:
    schemas.add(TOPIC, INT, "FULL", 1)

    def result(of: SchemaRegistry) -> int | str:
        try:
            return of.add(TOPIC, schema, strategy, 2).version
        except SchemaError as error:
            return error.java_text

    expected: list[int | str] = []
    before = dict(kept)
    answers = schemas.rehearsal(TOPIC, lambda copy: expected.append(result(copy)))()
    assert kept == before

    def once_more(*about: object) -> None:
        raise AssertionError("a question was asked that the rehearsal has answered")

    questions = {name: getattr(registry, name) for name in ("validate", "check", "_equal")}
    known = Answers()
    for name, question in questions.items():
        monkeypatch.setattr(registry, name, once_more)
        known |= {(once_more, about): answer for (asked, about), answer in answers.items() if asked is question}
    with schemas.knows(known):
        assert [result(schemas)] == expected


def test_properties_count_for_the_size_of_a_schema(schemas: SchemaRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "LARGE", 100)
    small, large = SchemaData("STRING"), SchemaData.of("STRING", b"", {"k": "x" * 100})
    assert not schemas.is_large(TOPIC, small.size)
    assert schemas.is_large(TOPIC, large.size)
    schemas.add(TOPIC, large, "FULL", 1)
    assert schemas.is_large(TOPIC, small.size)
