"""Messages survive the way to rows and back."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema

from pulsarium.client import AvroSchema, JsonSchema, Message, Schema
from pulsarium.client.producer.draft import MessageOptions
from pulsarium.pipeline.columns.columns import Columns
from tests.pipeline.columns.definitions import Type, records
from tests.pipeline.columns.messages import TOPIC, add_all, message
from tests.pipeline.columns.writing import Made, messages

keys = st.none() | st.text() | st.binary()
event_times = st.none() | st.integers(1, 253_402_300_799_999)
properties = st.none() | st.dictionaries(st.text(), st.text(), max_size=3)


def there_and_back(columns: Columns, given: list[Message[Any]]) -> tuple[pa.RecordBatch, list[Made]]:
    columns = pickle.loads(pickle.dumps(columns))
    batch = add_all(columns.for_reading(columns.schema), given).take()
    assert batch.num_rows == len(given)
    batch.validate(full=True)
    assert batch.schema.equals(to_arrow_schema(columns.schema, timezone="UTC"))
    return batch, messages(columns.for_writing(columns.schema), batch)


@given(st.lists(st.tuples(st.none() | st.binary(), keys, event_times, properties), max_size=5))
def test_bytes_come_back_as_they_went(sent: list[tuple[bytes | None, Any, int | None, dict[str, str] | None]]) -> None:
    columns = Columns.of(None)
    sent_messages = []
    for content, key, event_time, pairs in sent:
        options: MessageOptions = {"partition_key": key, "event_timestamp": event_time, "properties": pairs}
        sent_messages.append(message(content, options))
    batch, back = there_and_back(columns, sent_messages)
    assert set(batch.column("__topic").to_pylist()) <= {TOPIC}
    for (content, key, event_time, pairs), found in zip(sent, back, strict=True):
        assert found.value == content
        as_bytes = key.encode() if isinstance(key, str) else key
        assert (found.key.encode() if isinstance(found.key, str) else found.key) == as_bytes
        assert isinstance(key, bytes) or found.key == key
        assert found.event_time == event_time
        assert (found.properties or {}) == (pairs or {})


def check(schema: Schema[Any], values: list[Any]) -> None:
    """Assert that values survive the round trip. None is a message without a value."""
    columns = Columns.of(schema.info)
    encoded = [None if each is None else schema.encode(each) for each in values]
    sent_messages = [message(each, schema=columns.client_schema()) for each in encoded]
    _, back = there_and_back(columns, sent_messages)
    for value, content, found in zip(values, encoded, back, strict=True):
        if value is None or all(each is None for each in value.values()):
            assert found.value is None
        else:
            again = schema.encode(found.value)
            # The fields of a JSON object have no order, so the bytes may differ.
            assert json.loads(again) == value if isinstance(schema, JsonSchema) else again == content


@st.composite
def histories(draw: st.DrawFn, form: str) -> tuple[Type, list[Any]]:
    kind = draw(records())
    return kind, draw(st.lists(st.none() | getattr(kind, form), min_size=1, max_size=3))


@given(histories("avro"))
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_avro_values_survive_the_round_trip(history: tuple[Type, list[Any]]) -> None:
    kind, values = history
    check(AvroSchema(kind.definition), values)


@given(histories("json"))
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_json_comes_back_as_it_went(history: tuple[Type, list[Any]]) -> None:
    kind, values = history
    check(JsonSchema(kind.definition), values)


@pytest.mark.parametrize("form", [AvroSchema, JsonSchema])
def test_a_thousand_rows_are_the_same_afterwards(form: type[AvroSchema[Any]]) -> None:
    schema = form({"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]})
    check(schema, [{"a": number} for number in range(1000)])
