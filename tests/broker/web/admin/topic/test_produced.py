"""Messages over HTTP: schemas and payloads."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.jackson.errors import JsonError
from pulsarium.broker.jackson.parsing import parse
from pulsarium.broker.web.admin.topic.producing import STRING, TYPES, Info, RequestSchemas, encode, entry_of, read_info
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.broker.web.http.producer_message import PRODUCER_MESSAGE
from pulsarium.proto.entry import checksum_matches, parse_metadata
from pulsarium.proto.generated import PulsarApi_pb2 as pb


def info(kind: str, data: bytes = b"") -> Info:
    return Info(kind, kind, data, {})


@pytest.mark.parametrize(
    ("kind", "text", "payload"),
    [
        ("STRING", "é", "é".encode()),
        ("BYTES", "x", b"x"),
        ("INT8", "-1", b"\xff"),
        ("INT16", "258", b"\x01\x02"),
        ("INT32", "1", b"\0\0\0\x01"),
        ("INT64", "1", bytes(7) + b"\x01"),
        ("TIMESTAMP", "2", bytes(7) + b"\x02"),
        ("FLOAT", "1.5", struct.pack(">f", 1.5)),
        ("DOUBLE", "1.5", struct.pack(">d", 1.5)),
        ("BOOLEAN", "True", b"\x01"),
        ("BOOLEAN", "yes", b"\x00"),
        ("JSON", '{ "a": 1 }', b'{"a":1}'),
    ],
)
def test_a_text_is_encoded_by_its_schema(kind: str, text: str, payload: bytes) -> None:
    assert encode(text, info(kind)) == payload


@pytest.mark.parametrize(("kind", "text"), [("INT8", "128"), ("INT32", "x"), ("DOUBLE", ""), ("JSON", "{")])
def test_a_text_that_is_no_such_value_is_no_payload(kind: str, text: str) -> None:
    assert encode(text, info(kind)) == b""


def test_a_message_is_delivered_at_its_time_when_it_has_one_of_its_event() -> None:
    for sent, at in (({"deliverAt": 9}, 0), ({"deliverAt": 9, "eventTime": 5}, 9)):
        entry = entry_of(PRODUCER_MESSAGE.of(sent), RequestSchemas(STRING, None), "p", bytes(8), 1)
        assert parse_metadata(entry).deliver_at_time == at


def test_a_schema_is_read() -> None:
    text = json.dumps({"type": "JSON", "schema": base64.b64encode(b"{}").decode(), "properties": {"a": 1}})
    assert read_info(text) == Info("JSON", "JSON", b"{}", {"a": "1"})
    assert read_info(None) is read_info("") is None


@pytest.mark.parametrize(
    "text", ["junk", "1", "[]", "{}", '{"type": 1, "schema": "*"}', '{"type": "JSON", "schema": "*"}']
)
def test_schemas_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(AdminError, match="Fail to add or retrieve schema"):
        read_info(text)


def test_avro_is_written_from_json() -> None:
    definition = {"type": "record", "name": "R", "fields": [{"name": "a", "type": ["null", "string"]}]}
    schema = Info("AVRO", "AVRO", json.dumps(definition).encode(), {})
    assert encode('{"a": {"string": "x"}}', schema) == encode('{"a": "x"}', schema) == b"\x02\x02x"
    assert encode('{"a": 5}', schema) == b""


def test_protobuf_is_not_written() -> None:
    with pytest.raises(AdminError, match="cannot write PROTOBUF"):
        read_info('{"type": "PROTOBUF"}')


def test_a_schema_of_keys_and_values_keeps_them_apart() -> None:
    schema = RequestSchemas(Info("v", "INT32", b"vv", {"p": "1"}), Info("k", "STRING", b"k", {})).to_proto()
    assert schema.type == pb.Schema.Type.Value("KeyValue")
    assert schema.schema_data == b"\0\0\0\x01k\0\0\0\x02vv"
    pairs: Any = schema.properties
    assert {pair.key: pair.value for pair in pairs} == {
        "key.schema.name": "k",
        "key.schema.type": "STRING",
        "key.schema.properties": "{}",
        "value.schema.name": "v",
        "value.schema.type": "INT32",
        "value.schema.properties": '{"p":"1"}',
        "kv.encoding.type": "SEPARATED",
    }


def test_every_type_has_a_name_on_the_wire() -> None:
    for name in TYPES.values():
        pb.Schema.Type.Value(name)


def test_the_error_shows_the_refused_schema() -> None:
    text = RequestSchemas(info("INT8", b"\x01\xff"), None).refused("persistent://public/default/t", 5)
    shown = "type=INT8, isDeleted=false, timestamp=5, user=Rest Producer, data=[1, -1], props={}"
    assert text == f"Unable to add schema SchemaData({shown}) to topic persistent://public/default/t"


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
FIELDS = (
    "key",
    "payload",
    "properties",
    "sequenceId",
    "eventTime",
    "deliverAt",
    "deliverAfterMs",
    "replicationClusters",
)


@given(st.dictionaries(st.sampled_from((*FIELDS, "disableReplication")), VALUES))
def test_whatever_is_sent_is_an_entry_or_is_refused(sent: dict[str, Any]) -> None:
    received = parse(json.dumps(sent, allow_nan=False).encode())
    for key in (None, STRING):
        try:
            entry = entry_of(PRODUCER_MESSAGE.of(received), RequestSchemas(STRING, key), "p", bytes(8), 1)
        except (JsonError, AdminError):
            continue
        assert checksum_matches(entry)
        assert parse_metadata(entry).producer_name == "p"
