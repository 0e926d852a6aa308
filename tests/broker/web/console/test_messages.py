"""Browse messages."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import pytest
from google.protobuf import descriptor_pb2

from pulsarium.broker.config import Config
from pulsarium.broker.config.keys import APPEND_BROKER_TIMESTAMP, APPEND_INDEX
from pulsarium.broker.model.schema.data import SchemaData, joined
from pulsarium.broker.web.console.decode import decoded
from pulsarium.proto.avro import AvroCodec
from pulsarium.proto.compression import compress
from pulsarium.proto.errors import AvroError
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.model.transaction.buffered import in_txn, txn
from tests.broker.web.admin.rest import TOPICS, Rest
from tests.broker.wire import Bed, Earliest, Shared, Type, Wire, batch_of, message_id, plain

URL = "/pulsarium/messages/persistent/public/default/t"


async def shown(rest: Rest, query: str = "start=earliest") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await rest.get(f"{URL}?{query}"))["messages"]
    return found


async def test_messages_are_browsed_from_a_start_and_page_by_page(rest: Rest, wire: Wire) -> None:
    await wire.producer()
    positions = await wire.publish(*(plain(str(number).encode()) for number in range(5)))
    page = await rest.get(f"{URL}?start=earliest&limit=2")
    assert [each["value"] for each in page["messages"]] == ["0", "1"]
    assert (page["first"], page["total"], page["next"], page["previous"]) == (0, 5, str(positions[2]), None)
    page = await rest.get(f"{URL}?start={page['next']}&limit=2")
    assert [each["value"] for each in page["messages"]] == ["2", "3"]
    assert page["previous"] == str(positions[0])
    assert [each["value"] for each in await shown(rest, "start=latest&limit=1")] == ["4"]
    page = await rest.get(f"{URL}?start=99:0")
    assert (page["messages"], page["next"]) == ([], None)


@pytest.mark.parametrize("query", ["start=x", "start=1:x", "limit=0", "limit=1000", "limit=x"])
async def test_a_wrong_query_is_refused(query: str, rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    assert (await rest.refused("GET", f"{URL}?{query}"))[0] == 400


async def test_a_non_persistent_topic_keeps_no_messages(rest: Rest, wire: Wire) -> None:
    await wire.subscribe("non-persistent://public/default/t")
    assert (await rest.refused("GET", URL.replace("persistent", "non-persistent")))[0] == 405


async def test_a_message_has_its_metadata(rest: Rest, wire: Wire) -> None:
    await wire.producer()
    properties = [{"key": "<img>", "value": "x"}]
    (position,) = await wire.publish(
        plain(b"\xff\x00", partition_key="k", properties=properties, event_time=5, deliver_at_time=9, publish_time=7)
    )
    (found,) = await shown(rest)
    assert (found["id"], found["kind"], found["value"], found["bytes"]) == (str(position), "hex", "ff 00", 2)
    assert (found["key"], found["properties"], found["eventMs"]) == ("k", [["<img>", "x"]], 5)
    assert (found["deliverAtMs"], found["publishMs"]) == (9, 7)


@pytest.mark.parametrize(
    ("metadata", "field", "shown_as"),
    [
        ({"compression": pb.LZ4, "uncompressed_size": 1}, "compression", "LZ4"),
        ({"ordering_key": b"o"}, "orderingKey", "bw=="),
        ({"replicated_from": "west"}, "replicatedFrom", "west"),
        ({"marker_type": 21}, "marker", 21),
        ({"null_value": True}, "kind", "null"),
        ({"uuid": "u", "chunk_id": 1, "num_chunks_from_msg": 3}, "chunk", {"id": 1, "of": 3, "uuid": "u"}),
    ],
    ids=["compression", "ordering key", "replication", "marker", "null", "chunk"],
)
async def test_each_kind_of_message_shows_its_mark(
    rest: Rest, wire: Wire, metadata: dict[str, Any], field: str, shown_as: object
) -> None:
    payload = compress(pb.LZ4, b"x") if "compression" in metadata else b"x"
    await wire.producer()
    await wire.publish(plain(payload, **metadata))
    (found,) = await shown(rest)
    assert found[field] == shown_as


@pytest.mark.serving(Config(brokerEntryMetadataInterceptors=(APPEND_INDEX, APPEND_BROKER_TIMESTAMP)))
async def test_a_message_shows_its_index_and_the_time_of_the_broker(rest: Rest, wire: Wire, bed: Bed) -> None:
    await wire.producer()
    await wire.publish(plain(b"a"), plain(b"b"))
    found = await shown(rest)
    assert [each["index"] for each in found] == [0, 1]
    assert {each["brokerMs"] // 60_000 for each in found} == {bed.broker.clock.now_ms() // 60_000}


@pytest.mark.serving(Config(transactionCoordinatorEnabled=True))
async def test_a_message_shows_the_state_of_its_transaction(rest: Rest, wire: Wire, bed: Bed) -> None:
    await wire.producer()
    buffer = bed.topic().transactions
    assert buffer is not None
    for least, commit in ((1, True), (2, False), (3, None)):
        entry = plain(b"x", **in_txn(txn(least)))
        await wire.send(Type.SEND, entry, producer_id=0, sequence_id=least, **in_txn(txn(least)))
        await wire.receipts(1)
        if commit is not None:
            buffer.end(txn(least), commit=commit, low_watermark=-1)
            await wire.alive()
    states = [each["transaction"]["state"] for each in await shown(rest) if "marker" not in each]
    assert states == ["committed", "aborted", "open"]


async def test_an_acknowledged_message_is_shown_as_acknowledged(rest: Rest, wire: Wire) -> None:
    await wire.producer()
    await wire.subscribe(type=Shared)
    _, second = await wire.publish(plain(b"a"), plain(b"b"))
    await wire.flow()
    await wire.messages(2)
    await wire.ack(second)
    assert [each["acknowledged"] for each in await shown(rest, "start=earliest&subscription=sub")] == [False, True]


async def test_the_messages_of_a_batch_are_shown_one_by_one(rest: Rest, wire: Wire) -> None:
    await wire.producer()
    await wire.subscribe(type=Shared, initialPosition=Earliest)
    (position,) = await wire.publish(batch_of(b"a", b"b", b"c"), num_messages=3)
    await wire.flow()
    await wire.message()
    await wire.ack(message_id=[message_id(position, ack_set=[0b101])])
    found = await shown(rest, "start=earliest&subscription=sub")
    assert [(each["batchIndex"], each["value"], each["acknowledged"]) for each in found] == [
        (0, "a", False),
        (1, "b", True),
        (2, "c", False),
    ]


async def test_an_encrypted_message_shows_its_keys_and_no_text(rest: Rest, wire: Wire) -> None:
    await wire.producer()
    keys = [pb.EncryptionKeys(key="mine", value=b"k")]
    await wire.publish(plain(b"abc", encryption_keys=keys, encryption_algo="AES", encryption_param=b"p"))
    (found,) = await shown(rest)
    assert found["encryption"] == {"algorithm": "AES", "keys": [{"name": "mine", "value": "aw=="}], "parameter": "cA=="}


async def test_a_long_payload_is_cut_unless_all_of_it_is_wanted(rest: Rest, wire: Wire) -> None:
    await wire.producer()
    await wire.publish(plain(b"x" * 10_000))
    (found,) = await shown(rest)
    assert (len(found["value"]), found["cut"], found["bytes"]) == (4096, True, 10_000)
    (found,) = await shown(rest, "start=earliest&full=true")
    assert (len(found["value"]), found["cut"]) == (10_000, False)


async def test_a_batch_that_cannot_be_read_is_shown_as_damaged(rest: Rest, wire: Wire) -> None:
    await wire.producer()
    await wire.publish(plain(b"x", num_messages_in_batch=3))
    (found,) = await shown(rest)
    assert found["damage"]


async def test_a_message_is_decoded_by_its_schema(rest: Rest, wire: Wire) -> None:
    schema = pb.Schema(name="s", type=pb.Schema.Json, schema_data=json.dumps(PERSON).encode())
    made = await wire.producer(schema=schema)
    await wire.publish(plain(b'{"name":"Ada"}', schema_version=made.schema_version))
    await wire.publish(plain(b"no JSON", schema_version=made.schema_version))
    good, bad = await shown(rest)
    assert (good["kind"], good["value"], good["schemaVersion"]) == ("JSON", {"name": "Ada"}, 0)
    assert (bad["kind"], bad["value"]) == ("text", "no JSON")
    assert bad["undecoded"].startswith("JSON: ")


PERSON = {"type": "record", "name": "Person", "fields": [{"name": "name", "type": "string"}]}
AVRO = SchemaData("AVRO", json.dumps(PERSON).encode())
ADA = AvroCodec(PERSON).encode({"name": "Ada"})


def pair(encoding: str) -> SchemaData:
    kinds = {"key.schema.type": "STRING", "value.schema.type": "AVRO", "kv.encoding.type": encoding}
    return SchemaData.of("KEY_VALUE", joined(b"", AVRO.data), kinds)


def native() -> SchemaData:
    file = descriptor_pb2.FileDescriptorProto(name="a.proto", syntax="proto3")
    field = file.message_type.add(name="Person").field.add(name="full_name", number=1)
    field.type, field.label = field.TYPE_STRING, field.LABEL_OPTIONAL
    files = descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()
    told = {"fileDescriptorSet": base64.b64encode(files).decode(), "rootMessageTypeName": "Person"}
    return SchemaData("PROTOBUF_NATIVE", json.dumps(told).encode())


@pytest.mark.parametrize(
    ("schema", "payload", "value"),
    [
        (AVRO, ADA, {"name": "Ada"}),
        (native(), b"\x0a\x03Ada", {"full_name": "Ada"}),
        (pair("INLINE"), joined(b"k", ADA), {"key": "k", "value": {"name": "Ada"}}),
        (pair("INLINE"), struct.pack(">i", -1) + joined(b"", ADA)[4:], {"key": None, "value": {"name": "Ada"}}),
        (SchemaData("INT32"), struct.pack(">i", -5), -5),
        (SchemaData("DOUBLE"), struct.pack(">d", 0.5), 0.5),
        (SchemaData("STRING"), b"text", "text"),
    ],
    ids=["avro", "protobuf", "pair", "pair without key", "int", "double", "string"],
)
def test_a_payload_is_decoded_by_its_schema(schema: SchemaData, payload: bytes, value: object) -> None:
    assert decoded(schema, payload) == value


def test_the_key_of_a_separated_pair_is_the_messages_key() -> None:
    assert decoded(pair("SEPARATED"), ADA, base64.b64encode(b"k").decode()) == {"key": "k", "value": {"name": "Ada"}}


@pytest.mark.parametrize(
    ("schema", "payload"),
    [
        (AVRO, b"\xff"),
        (native(), b"\x0a\xff"),
        (pair("INLINE"), b"\x00\x00"),
        (SchemaData("INT32"), b"\x00"),
        (SchemaData("PROTOBUF_NATIVE", b"{}"), b""),
        (SchemaData("STRING"), b"\xff"),
    ],
    ids=["avro", "protobuf", "pair", "int", "no descriptor", "string"],
)
def test_a_payload_that_does_not_fit_its_schema_is_refused(schema: SchemaData, payload: bytes) -> None:
    with pytest.raises((AvroError, ValueError)):
        decoded(schema, payload)
