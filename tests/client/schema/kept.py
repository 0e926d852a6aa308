"""Send values with a schema through a broker in this process, which keeps the schema."""

from __future__ import annotations

from typing import Any

from pulsarium.client import Message, MessageId, Schema, SchemaInfo
from tests.client.consumer.started import started


async def there_and_back(schema: Schema[Any], *values: object) -> tuple[list[Message[Any]], SchemaInfo]:
    """Return the messages with these values, and the schema of their topic."""
    async with started() as (_, client):
        async with client.create_producer("t", schema=schema) as producer:
            for value in values:
                await producer.send(value)
        async with client.create_reader("t", MessageId.earliest, schema=schema) as reader:
            return [await reader.read_next() for _ in values], await client.get_schema("t")
