"""Schemas: the broker stores the compatible schemas of clients, and returns them."""

from __future__ import annotations

from typing import Any

import pulsar
import pytest
from pulsar.schema import Integer, JsonSchema, Record, String, StringSchema

from .traffic import receive


class Person(Record):  # type: ignore[misc]
    name = String()
    age = Integer()


def test_the_version_comes_with_each_message(client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    with_schema = client.create_producer(topic, schema=JsonSchema(Person))
    with_schema.send(Person(name="Ada", age=36))
    (message,) = receive(consumer, 1)
    # Versions are 8-byte big-endian numbers from 0 (B-30).
    assert message.schema_version() in (bytes(8), "\0" * 8)
    # The same schema from another producer keeps its version.
    client.create_producer(topic, schema=JsonSchema(Person)).send(Person(name="Bob", age=1))
    assert receive(consumer, 1)[0].schema_version() == message.schema_version()


class Grown(Record):  # type: ignore[misc]
    name = String()
    age = Integer()
    email = String(default="none", required_default=True)


class Other(Record):  # type: ignore[misc]
    name = Integer(required=True)


Grown.__name__ = Other.__name__ = "Person"


@pytest.mark.req("B-30")
@pytest.mark.req("B-31")
def test_schemas_that_do_not_fit(client: Any, topic: str) -> None:
    """The client receives an error for an incompatible schema, and continues to work."""
    producer = client.create_producer(topic, schema=JsonSchema(Person))
    for schema in (JsonSchema(Other), StringSchema()):
        with pytest.raises(pulsar.exceptions.IncompatibleSchema):
            client.create_producer(topic, schema=schema)
        with pytest.raises(pulsar.exceptions.IncompatibleSchema):
            client.subscribe(topic, "s", schema=schema)
    consumer = client.subscribe(topic, "s", schema=JsonSchema(Grown))
    producer.send(Person(name="Ada", age=36))
    client.create_producer(topic, schema=JsonSchema(Grown)).send(Grown(name="Bob", age=1, email="b@x"))
    first, second = receive(consumer, 2)
    assert (first.value().name, second.value().email) == ("Ada", "b@x")
    assert first.schema_version() != second.schema_version()


@pytest.mark.req("B-30")
def test_a_topic_used_without_a_schema(client: Any, topic: str) -> None:
    """Producers can add a schema to the topic, and consumers cannot."""
    client.create_producer(topic).send(b"x")
    with pytest.raises(pulsar.exceptions.IncompatibleSchema):
        client.subscribe(topic, "s", schema=StringSchema())
    client.create_producer(topic, schema=StringSchema()).send("y")
    consumer = client.subscribe(topic, "s", pulsar.ConsumerType.Exclusive, schema=StringSchema())
    client.create_producer(topic, schema=StringSchema()).send("z")
    assert receive(consumer, 1)[0].value() == "z"
