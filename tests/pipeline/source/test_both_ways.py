"""Rows that are read by entries equal rows that are read by messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import anyio
import pytest
from google.protobuf.api_pb2 import Api, Method
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from pulsarium.client import (
    AvroSchema,
    BytesSchema,
    CompressionType,
    Int64Schema,
    JsonSchema,
    KeyValue,
    KeyValueEncodingType,
    KeyValueSchema,
    ProtobufNativeSchema,
    Schema,
    SchemaInfo,
    StringSchema,
    connect,
)
from pulsarium.pipeline.columns.kinds import BadMessage
from pulsarium.pipeline.pulsar import Pulsar
from pulsarium.pipeline.source import task
from pulsarium.pipeline.source.losses import Watch
from pulsarium.pipeline.source.offsets import TopicRange
from pulsarium.pipeline.source.options import SourceOptions
from pulsarium.pipeline.source.places import ReadPosition
from pulsarium.pipeline.source.readers import PulsarReader
from pulsarium.pipeline.source.reading import Reading
from tests.foreign.broker_process import Address
from tests.pipeline.source.topics import options

TYPES = ("boolean", "int", "long", "float", "double", "string", "bytes")
FLAT = {
    "type": "record",
    "name": "Flat",
    "fields": [{"name": f"a_{each}", "type": each} for each in TYPES]
    + [{"name": f"b_{each}", "type": ["null", each], "default": None} for each in TYPES]
    + [{"name": "c", "type": [{"type": "string", "avro.java.string": "String"}, "null"]}],
}
NESTED = {
    "type": "record",
    "name": "Nested",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "when", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}
TEXTS = {
    "type": "record",
    "name": "Texts",
    "fields": [{"name": "id", "type": "long"}, {"name": "real", "type": "float"}, {"name": "text", "type": "string"}],
}


def flat(number: int) -> dict[str, Any]:
    own = [
        number % 2 == 0,
        number - 2**31,
        -(2**63) + number,
        number / 4,
        number * 1e200,
        "é" * number,
        b"\xff" * number,
    ]
    there = {f"b_{each}": value for each, value in zip(TYPES, own, strict=True) if (number + len(each)) % 3}
    none = dict.fromkeys((f"b_{each}" for each in TYPES), None)
    return {**dict(zip((f"a_{each}" for each in TYPES), own, strict=True)), **none, **there, "c": None}


def nested(number: int) -> dict[str, Any]:
    return {"id": number, "when": datetime.fromtimestamp(number, UTC), "tags": ["a"] * (number % 3)}


class Raw(Schema[bytes]):
    """A schema that sends bytes unchanged, under the info of another schema."""

    def __init__(self, info: SchemaInfo | None) -> None:
        self.info = info

    def encode(self, value: bytes) -> bytes:
        return value

    def decode(self, data: bytes, writer: SchemaInfo | None = None) -> bytes:
        return data


Send = Callable[[int], tuple[Any, dict[str, Any]]]
"""The value and the options of a message, by its number."""

SENDS: dict[str, tuple[Schema[Any], Send]] = {
    "bytes": (BytesSchema(), lambda number: (b"x" * number, {})),
    "alike": (BytesSchema(), lambda number: (b"%04d" % number, {"partition_key": f"key-{number:03}"})),
    "keys": (BytesSchema(), lambda number: (b"", {"partition_key": "k" * (number % 5)})),
    "bytes as keys": (BytesSchema(), lambda number: (b"v", {"partition_key": b"\xff%d" % number})),
    "properties": (
        BytesSchema(),
        lambda number: (b"v" * (number % 7), {"properties": {f"p{each}": "ü" * each for each in range(number % 4)}}),
    ),
    "event times": (BytesSchema(), lambda number: (b"v", {"event_timestamp": number and 10 ** (number % 14)})),
    "no values": (StringSchema(), lambda number: (None if number % 3 == 0 else "text", {})),
    "texts": (StringSchema(), lambda number: ("ж" * number, {})),
    "numbers": (Int64Schema(), lambda number: (number, {})),
    "Avro": (AvroSchema(FLAT), lambda number: (flat(number), {})),
    "Avro without values": (AvroSchema(FLAT), lambda number: (None if number % 4 == 0 else flat(number), {})),
    "nested Avro": (AvroSchema(NESTED), lambda number: (nested(number), {})),
    "JSON": (JsonSchema(TEXTS), lambda number: ({"id": number, "real": number / 3, "text": "ж\n" * number}, {})),
    "JSON with whole floats": (JsonSchema(TEXTS), lambda number: ({"id": float(number), "more": [number]}, {})),
    "JSON without values": (JsonSchema(TEXTS), lambda number: (None if number % 2 else {"text": "a"}, {})),
    "JSON of several lines": (
        Raw(JsonSchema(TEXTS).info),
        lambda number: (b'{\n "id": %d,\n "text": "a}\\n{"\n}' % number, {}),
    ),
    "Protobuf": (
        ProtobufNativeSchema(Api),
        lambda number: (Api(name="ж" * number, methods=[Method()] * (number % 3)), {}),
    ),
    "pairs": (
        KeyValueSchema(AvroSchema(NESTED), JsonSchema(TEXTS)),
        lambda number: (KeyValue(nested(number), {"id": number} if number % 3 else None), {}),
    ),
    "pairs with the key apart": (
        KeyValueSchema(StringSchema(), AvroSchema(FLAT), KeyValueEncodingType.SEPARATED),
        lambda number: (KeyValue(f"k{number}" if number % 5 else None, flat(number) if number % 3 else None), {}),
    ),
    "nested JSON": (JsonSchema(NESTED), lambda number: ({"id": number, "tags": ["a"] * (number % 3)}, {})),
}


def send(broker: Address, topic: str, schema: Schema[Any], sends: Send, count: int, **producer: Any) -> None:
    producer = {"batching_max_messages": 40, "batching_max_publish_delay": 60} | producer

    async def sending() -> None:
        async with (
            connect(broker.service_url) as client,
            client.create_producer(topic, schema=schema, **producer) as made,
        ):
            for number in range(count):
                value, more = sends(number)
                made.send_nowait(value, **more)
            await made.flush()

    anyio.run(sending)


def both(
    broker: Address, topic: str, wanted: StructType | None = None, **more: object
) -> tuple[list[Any], list[Any], bool]:
    """Return all rows by entries and by messages, and whether reading by entries alone was enough."""
    given = SourceOptions.of(options(broker, topic, **more))
    wanted = wanted or given.columns().schema
    reader = PulsarReader(given, wanted)
    by_messages: list[Any] = []
    only_entries = True
    by_entries: list[Any] = []
    for split in reader.partitions():
        assert isinstance(split, TopicRange)
        own, others, is_done = both_of(reader._reading, split)
        by_entries, by_messages, only_entries = by_entries + own, by_messages + others, only_entries and is_done
    return by_entries, by_messages, only_entries


def both_of(settings: Reading, split: TopicRange) -> tuple[list[Any], list[Any], bool]:
    with Pulsar(settings.connection) as pulsar:
        watch = Watch(pulsar, split, fail=True)
        entries = task._Entries(pulsar, split, settings, watch)
        own = [row for batch in entries.batches() for row in batch.to_pylist()]
        if not entries.is_done:
            rest = replace(split, start=entries.at)
            own += [row for batch in task._messages(pulsar, rest, settings, watch) for row in batch.to_pylist()]
        others = [row for batch in task._messages(pulsar, split, settings, watch) for row in batch.to_pylist()]
    return own, others, entries.is_done


@pytest.mark.parametrize("name", SENDS)
def test_entries_give_the_rows_of_their_messages(name: str, broker: Address, topic: str) -> None:
    schema, sends = SENDS[name]
    send(broker, topic, schema, sends, 300)
    own, others, only_entries = both(broker, topic)
    assert own == others
    assert len(own) == 300
    assert only_entries


@pytest.mark.parametrize(
    "producer",
    [
        {"batching_enabled": False},
        {"compression_type": CompressionType.LZ4},
        {"compression_type": CompressionType.ZSTD, "batching_max_messages": 1000},
        {"batching_max_messages": 1},
    ],
)
def test_entries_of_any_producer(producer: dict[str, Any], broker: Address, topic: str) -> None:
    send(broker, topic, BytesSchema(), lambda number: (b"v" * number, {"partition_key": "k"}), 200, **producer)
    own, others, only_entries = both(broker, topic)
    assert own == others
    assert only_entries


def test_a_selection_of_columns(broker: Address, topic: str) -> None:
    send(broker, topic, AvroSchema(FLAT), lambda number: (flat(number), {"partition_key": "k"}), 100)
    parts = StructType().add("entryId", "long").add("batchIndex", "integer")
    wanted = StructType().add("B_LONG", "long").add("a_int", "long").add("__key", "string").add("__messageId", parts)
    own, others, only_entries = both(broker, topic, wanted)
    assert own == others
    place = {"entryId": 0, "batchIndex": 3}
    assert own[3] == {"B_LONG": -(2**63) + 3, "a_int": 3 - 2**31, "__key": "k", "__messageId": place}
    assert only_entries


def test_chunks_and_what_follows_them_are_read_as_messages(broker: Address, topic: str) -> None:
    send(broker, topic, BytesSchema(), lambda number: (b"a", {}), 50)
    chunks = {"batching_enabled": False, "chunking_enabled": True, "chunk_max_message_size": 100}
    send(broker, topic, BytesSchema(), lambda number: (b"b" * 500, {}), 2, **chunks)
    send(broker, topic, BytesSchema(), lambda number: (b"c", {}), 50)
    own, others, only_entries = both(broker, topic)
    assert own == others
    assert [row["value"][:1] for row in own] == [b"a"] * 50 + [b"b"] * 2 + [b"c"] * 50
    assert not only_entries


def test_another_version_of_the_schema_is_read_as_messages(broker: Address, topic: str) -> None:
    older = {**TEXTS, "fields": TEXTS["fields"][:1]}
    newer = {**TEXTS, "fields": [*older["fields"], {"name": "more", "type": "string", "default": "none"}]}
    send(broker, topic, AvroSchema(older), lambda number: ({"id": number}, {}), 10)
    send(broker, topic, AvroSchema(newer), lambda number: ({"id": number, "more": "some"}, {}), 10)
    own, others, only_entries = both(broker, topic)
    assert own == others
    assert [row["more"] for row in own] == ["none"] * 10 + ["some"] * 10
    assert not only_entries


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (AvroSchema(TEXTS), b"\x02"),
        (AvroSchema(TEXTS), b"\x02\0\0\0\0\x04\xff\xff"),
        (JsonSchema(TEXTS), b'{"id": 1}{"id": 2}'),
        (JsonSchema(TEXTS), b'{"id": "one"}'),
        (JsonSchema(TEXTS), b'{"id": 1, "text": "\xff"}'),
        (JsonSchema(TEXTS), b'{"id": 1, "more": "a\nb"}'),
        (StringSchema(), b"\xff"),
    ],
)
def test_a_value_that_does_not_fit_names_its_message(
    schema: Schema[Any], value: bytes, broker: Address, topic: str
) -> None:
    send(broker, topic, Raw(schema.info), lambda number: (value, {}), 1)
    with pytest.raises(BadMessage, match=f"of {topic}: "):
        both(broker, topic)


def test_values_that_do_not_fit_are_rows_where_the_options_say_so(broker: Address, topic: str) -> None:
    good = AvroSchema(FLAT).encode(flat(3))
    send(broker, topic, Raw(AvroSchema(FLAT).info), lambda number: (good if number % 7 else b"\xff", {}), 30)
    own, others, only_entries = both(broker, topic, undecodable="null")
    assert own == others
    assert only_entries
    assert [row["__undecodable"] for row in own] == [None if number % 7 else b"\xff" for number in range(30)]
    assert {row["a_int"] for row in own} == {3 - 2**31, None}


ROW = st.tuples(
    st.binary(max_size=300),
    st.fixed_dictionaries(
        {},
        optional={
            "partition_key": st.one_of(st.text(max_size=3), st.binary(max_size=3)),
            "properties": st.dictionaries(st.text(max_size=2), st.text(max_size=2), max_size=3),
            "event_timestamp": st.integers(0, 2**40),
            "ordering_key": st.binary(max_size=2).map(lambda key: key.decode("latin-1")),
        },
    ),
)


ROWS, CUTS = st.lists(ROW, min_size=1, max_size=60), st.tuples(st.integers(0, 4), st.integers(0, 30))


@given(rows=ROWS, batch=st.integers(1, 30), cuts=CUTS)
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_messages_and_any_cut(
    rows: Sequence[tuple[bytes, dict[str, Any]]], batch: int, cuts: tuple[int, int], broker: Address
) -> None:
    topic = f"persistent://public/default/any-{uuid4().hex}"
    send(broker, topic, BytesSchema(), lambda number: rows[number], len(rows), batching_max_messages=batch)
    given = SourceOptions.of(options(broker, topic))
    reader = PulsarReader(given, given.columns().schema)
    (split,) = reader.partitions()
    assert isinstance(split, TopicRange)
    cut = ReadPosition(split.end.ledger, *cuts)
    parts = [replace(split, end=cut), replace(split, start=cut)] if split.start < cut < split.end else [split]
    found = [both_of(reader._reading, part) for part in parts]
    for own, others, only_entries in found:
        assert own == others
        assert only_entries
    assert [row["value"] for own, _, _ in found for row in own] == [value for value, _ in rows]
