"""What a type checker infers: mypy reads these lines, and pytest sees that they are so."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, assert_type

from trio.testing import MockClock

from pulsarium.client import (
    AvroSchema,
    Consumer,
    Int32Schema,
    JsonSchema,
    Message,
    MessageId,
    Producer,
    Reader,
    StringSchema,
    TimestampSchema,
)
from pulsarium.client.consumer.options import InitialPosition
from tests.client.consumer.started import started


@dataclass
class User:
    name: str
    age: int = 0


def test_schemas() -> None:
    definition: dict[str, Any] = {"type": "record", "name": "R", "fields": []}
    assert_type(AvroSchema(User), AvroSchema[User])
    assert_type(AvroSchema(definition), AvroSchema[dict[str, Any]])
    assert_type(JsonSchema(User).decode(b'{"name": ""}'), User)
    assert_type(JsonSchema('{"type": "record", "name": "R", "fields": []}').decode(b"{}"), dict[str, Any])
    assert_type(StringSchema().decode(b""), str)
    assert_type(Int32Schema().decode(bytes(4)), int)
    assert_type(TimestampSchema().decode(bytes(8)), datetime)


async def test_producers_consumers_and_readers(autojump_clock: MockClock) -> None:
    schema = AvroSchema(User)
    async with (
        started() as (_, client),
        client.create_producer("t", schema=schema) as producer,
        client.subscribe("t", "s", schema=schema, initial_position=InitialPosition.Earliest) as consumer,
        client.create_reader("t", MessageId.earliest, schema=schema) as reader,
        client.subscribe("t", "plain", initial_position=InitialPosition.Earliest) as plain,
    ):
        assert_type(producer, Producer[User])
        assert_type(consumer, Consumer[User])
        assert_type(reader, Reader[User])
        assert_type(plain, Consumer[bytes])
        await producer.send(User("Ada", 36))
        message = await consumer.receive()
        assert_type(message, Message[User])
        assert_type(message.value(), User)
        assert message.value() == (await reader.read_next()).value() == User("Ada", 36)
        value = (await plain.receive()).value()
        assert_type(value, bytes)
        assert value == schema.encode(User("Ada", 36))
