from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, assert_type

import pytest
from trio.testing import MockClock

from pulsarium.client.errors import InvalidMessage
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.client.producer.draft import Draft, draft_of
from pulsarium.client.schema.avro_schema import AvroSchema
from pulsarium.client.schema.key_value import KeyValue, KeyValueEncodingType, KeyValueSchema, encoding_of, halves
from pulsarium.client.schema.of_info import schema_of
from pulsarium.client.schema.primitives import Int32Schema, LocalDateTimeSchema, StringSchema
from pulsarium.client.schema.schema import BytesSchema, Schema, SchemaInfo
from pulsarium.client.schema.structured import JsonSchema
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.schema.kept import there_and_back

INLINE, SEPARATED = KeyValueEncodingType
PAIRS = [KeyValue("ä", 1), KeyValue("", 0), KeyValue(None, 2), KeyValue("k", None), KeyValue(None, None)]


@dataclass
class User:
    name: str


@dataclass
class Newer:
    name: str
    age: int = 7


def message_of(draft: Draft, schema: Schema[Any]) -> Message[Any]:
    return Message("t", MessageId(1, 1), pb.MessageMetadata(), draft.metadata, draft.content, schema=schema)


@pytest.mark.req("B-30")
@pytest.mark.parametrize("pair", PAIRS)
def test_inline_pairs_come_back(pair: KeyValue[str, int]) -> None:
    schema = KeyValueSchema(StringSchema(), Int32Schema())
    assert_type(schema, KeyValueSchema[str, int])
    assert schema.decode(schema.encode(pair)) == pair
    draft = draft_of(schema, pair, {"partition_key": "p"})
    assert (draft.key, draft.content) == ("p", schema.encode(pair))
    assert message_of(draft, schema).value() == pair


def test_as_java_writes_it() -> None:
    encoded = KeyValueSchema(StringSchema(), Int32Schema()).encode(KeyValue("k", None))
    assert encoded == b"\0\0\0\1k\xff\xff\xff\xff"


@pytest.mark.req("B-30")
@pytest.mark.parametrize("pair", PAIRS)
def test_separated_pairs_come_back(pair: KeyValue[str, int]) -> None:
    schema = KeyValueSchema(StringSchema(), Int32Schema(), SEPARATED)
    draft = draft_of(schema, pair, {})
    metadata = draft.metadata
    assert metadata.partition_key_b64_encoded == (pair.key is not None) != metadata.null_partition_key
    assert metadata.null_value == (pair.value is None)
    assert draft.content == (b"" if pair.value is None else Int32Schema().encode(pair.value))
    message = message_of(draft, schema)
    assert message.value() == pair
    assert message.has_base64_encoded_key() == (pair.key is not None)
    assert message.key_bytes() == (None if pair.key is None else pair.key.encode())


def test_bytes_alone_hold_no_separated_pair() -> None:
    schema = KeyValueSchema(StringSchema(), Int32Schema(), SEPARATED)
    with pytest.raises(InvalidMessage, match="which is SEPARATED"):
        schema.encode(KeyValue("k", 1))
    with pytest.raises(InvalidMessage, match="which is SEPARATED"):
        schema.decode(b"\0\0\0\1")
    with pytest.raises(InvalidMessage, match="partition_key"):
        draft_of(schema, KeyValue("k", 1), {"partition_key": "other"})


@pytest.mark.parametrize("value", [("k", 1), "k", KeyValue(1, 1), KeyValue("k", "v")])
def test_keys_and_values_that_do_not_fit_are_refused(value: Any) -> None:
    with pytest.raises(InvalidMessage):
        KeyValueSchema(StringSchema(), Int32Schema()).encode(value)


@pytest.mark.parametrize(
    "data", [b"", b"\0\0\0", b"\0\0\0\2k", b"\0\0\0\1k", b"\0\0\0\1k\0\0\0\4\0", b"\xff\xff\xff\xfe"]
)
def test_bytes_that_are_no_pair(data: bytes) -> None:
    with pytest.raises(InvalidMessage, match="length"):
        KeyValueSchema(StringSchema(), Int32Schema()).decode(data)


def test_the_broker_is_told_a_key_value_definition() -> None:
    info = KeyValueSchema(AvroSchema(User), Int32Schema(), SEPARATED).info
    assert (info.type, info.name) == (pb.Schema.KeyValue, "KeyValue")
    definition = AvroSchema(User).info.data
    assert info.data == len(definition).to_bytes(4, "big") + definition + bytes(4)
    assert info.properties == {
        "key.schema.name": "AVRO",
        "key.schema.type": "AVRO",
        "key.schema.properties": '{"__jsr310ConversionEnabled":"true"}',
        "value.schema.name": "INT32",
        "value.schema.type": "INT32",
        "value.schema.properties": "{}",
        "kv.encoding.type": "SEPARATED",
    }
    assert encoding_of(info) is SEPARATED
    assert halves(info) == (AvroSchema(User).info, Int32Schema().info)


@pytest.mark.parametrize(
    ("schema", "name"),
    [(BytesSchema(), "BYTES"), (LocalDateTimeSchema(), "LOCAL_DATE_TIME"), (JsonSchema(User), "JSON")],
)
def test_types_by_javas_names(schema: Schema[Any], name: str) -> None:
    info = KeyValueSchema(schema, schema).info
    assert {info.properties[f"{what}.schema.type"] for what in ("key", "value")} == {name}
    key, value = halves(info)
    assert key == value
    assert (key.type, key.name) == ((0, "Bytes") if schema.info is None else (schema.info.type, schema.info.name))


def test_pairs_may_hold_pairs() -> None:
    schema = KeyValueSchema(StringSchema(), KeyValueSchema(StringSchema(), StringSchema()))
    assert schema.info.properties["value.schema.type"] == "KEY_VALUE"
    pair = KeyValue("a", KeyValue("b", "c"))
    again = schema_of(schema.info)
    assert again.info == schema.info
    assert again.decode(schema.encode(pair)) == pair


def test_each_half_is_read_by_its_writer() -> None:
    older, newer = (KeyValueSchema(AvroSchema(kind), AvroSchema(kind)) for kind in (User, Newer))
    assert newer.reads_by_writer
    assert not KeyValueSchema(StringSchema(), JsonSchema(User)).reads_by_writer
    data = older.encode(KeyValue(User("a"), User("b")))
    assert newer.decode(data, older.info) == KeyValue(Newer("a"), Newer("b"))
    with pytest.raises(InvalidMessage):
        newer.decode(data, StringSchema().info)


@pytest.mark.parametrize(
    "properties",
    [{"key.schema.type": "NO_TYPE"}, {"key.schema.properties": "{"}, {"value.schema.properties": json.dumps([])}],
)
def test_key_value_definitions_that_make_no_sense_are_refused(properties: dict[str, str]) -> None:
    info = KeyValueSchema(StringSchema(), StringSchema()).info
    with pytest.raises(InvalidMessage):
        halves(SchemaInfo(info.type, info.data, info.name, {**info.properties, **properties}))
    with pytest.raises(InvalidMessage):
        halves(SchemaInfo(info.type, info.data[:-1], info.name, info.properties))


@pytest.mark.parametrize(("encoding", "keys"), [(INLINE, ["", ""]), (SEPARATED, ["aw==", ""])])
async def test_pairs_come_back_from_a_broker_that_knows_their_encoding(
    autojump_clock: MockClock, encoding: KeyValueEncodingType, keys: list[str]
) -> None:
    pairs: list[KeyValue[str, int]] = [KeyValue("k", None), KeyValue(None, 2)]
    messages, info = await there_and_back(KeyValueSchema(StringSchema(), Int32Schema(), encoding), *pairs)
    assert [message.value() for message in messages] == pairs
    assert [message.partition_key() for message in messages] == keys
    assert info.properties["kv.encoding.type"] == encoding.value
