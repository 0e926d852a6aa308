"""Browse messages."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any
from urllib.parse import quote

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.config.keys import APPEND_BROKER_TIMESTAMP, APPEND_INDEX
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.sequence import LedgerSequence
from pulsarium.broker.model.schema.data import SchemaData, joined
from pulsarium.broker.web.admin.topic.reading import entry_at
from pulsarium.broker.web.console import messages
from pulsarium.broker.web.console.decode import decoded
from pulsarium.broker.web.console.messages import STRAY_MS
from pulsarium.proto.avro import AvroCodec
from pulsarium.proto.compression import compress
from pulsarium.proto.errors import AvroError
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.model.transaction.buffered import in_txn, txn
from tests.broker.web.admin.rest import TOPICS, Rest
from tests.broker.web.console.schemas import PERSON, avro, native, pair
from tests.broker.wire import TOPIC, Bed, Earliest, Shared, Type, Wire, batch_of, message_id, plain

URL = "/pulsarium/messages/persistent/public/default/t"


async def shown(rest: Rest, query: str = "start=earliest") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await rest.get(f"{URL}?{query}"))["messages"]
    return found


def values(page: dict[str, Any]) -> list[Any]:
    return [each["value"] for each in page["messages"]]


async def publish_numbers(wire: Wire, *numbers: int, topic: str = TOPIC, producer_id: int = 0) -> list[Position]:
    """Publish messages whose texts and times of publishing are these numbers."""
    await wire.producer(topic, producer_id)
    entries = [plain(str(each).encode(), publish_time=each) for each in numbers]
    return await wire.publish(*entries, producer_id=producer_id)


@pytest.mark.parametrize(
    ("query", "pages"),
    [
        ("", [["4", "3"], ["2", "1"], ["0"]]),
        ("start=latest&order=oldest", [["3", "4"]]),
        ("start=earliest", [["0", "1"], ["2", "3"], ["4"]]),
        ("start=earliest&order=newest", [["1", "0"]]),
    ],
)
async def test_messages_are_browsed_from_a_start_and_page_by_page(
    rest: Rest, wire: Wire, query: str, pages: list[list[str]]
) -> None:
    await publish_numbers(wire, *range(5))
    page = await rest.get(f"{URL}?limit=2&{query}")
    found = [values(page)]
    while page["next"]:
        page = await rest.get(f"{URL}?limit=2&start={page['next']}&{query.partition('&')[2]}")
        found.append(values(page))
    assert (found, page["total"], page["complete"]) == (pages, 5, True)


async def test_the_previous_page_is_what_was_before_a_page(rest: Rest, wire: Wire) -> None:
    await publish_numbers(wire, *range(5))
    first = await rest.get(f"{URL}?limit=2")
    second = await rest.get(f"{URL}?limit=2&start={first['next']}")
    back = await rest.get(f"{URL}?limit=2&order=newest&start={second['previous']}")
    assert (values(back), back["previous"], back["next"]) == (["4", "3"], None, first["next"])


@pytest.mark.parametrize(("order", "found"), [("oldest", ["1", "2"]), ("newest", ["1", "0"])])
async def test_a_page_begins_with_the_message_that_is_named(
    rest: Rest, wire: Wire, order: str, found: list[str]
) -> None:
    positions = await publish_numbers(wire, *range(3))
    assert values(await rest.get(f"{URL}?start={positions[1]}&order={order}&limit=2")) == found


async def test_a_page_from_behind_the_last_message_is_empty(rest: Rest, wire: Wire) -> None:
    await publish_numbers(wire, 1)
    page = await rest.get(f"{URL}?start=99:0")
    assert (page["messages"], page["next"]) == ([], None)


async def test_new_messages_follow_from_the_end_of_a_page(rest: Rest, wire: Wire) -> None:
    await publish_numbers(wire, 1)
    end = (await rest.get(URL))["end"]
    assert (await rest.get(f"{URL}?start={end}"))["messages"] == []
    await publish_numbers(wire, 2, producer_id=1)
    assert values(await rest.get(f"{URL}?start={end}")) == ["2"]


async def test_messages_that_come_while_a_page_is_read_are_behind_its_end(
    rest: Rest, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    await publish_numbers(wire, 1, 2, 3)
    published: list[Any] = []

    async def slowly(ledger: LedgerSequence, position: Position) -> bytes | None:
        if not published:
            published.append(await wire.publish(plain(b"4")))
        return await entry_at(ledger, position)

    monkeypatch.setattr("pulsarium.broker.web.console.reading.entry_at", slowly)
    page = await rest.get(f"{URL}?start=earliest")
    assert (values(page), page["next"]) == (["1", "2", "3"], None)
    assert values(await rest.get(f"{URL}?start={page['end']}")) == ["4"]


async def test_a_page_ends_inside_a_batch(rest: Rest, wire: Wire) -> None:
    await wire.producer()
    await wire.publish(batch_of(b"a", b"b", b"c"), num_messages=3)
    page = await rest.get(f"{URL}?limit=2")
    assert values(page) == ["c", "b"]
    assert values(await rest.get(f"{URL}?limit=2&start={page['next']}")) == ["a"]
    page = await rest.get(f"{URL}?limit=2&start=earliest")
    assert values(await rest.get(f"{URL}?limit=2&start={page['next']}")) == ["c"]


async def publish_to_partitions(rest: Rest, wire: Wire) -> list[Position]:
    await rest.done("PUT", f"{TOPICS}/t/partitions", 3)
    first = await publish_numbers(wire, 1, 4, 5, topic=f"{TOPIC}-partition-0")
    return first + await publish_numbers(wire, 2, 3, 6, topic=f"{TOPIC}-partition-2", producer_id=1)


async def test_the_messages_of_all_partitions_are_in_the_order_of_their_times(rest: Rest, wire: Wire) -> None:
    await publish_to_partitions(rest, wire)
    page = await rest.get(f"{URL}?limit=4")
    assert [(each["value"], each["partition"]) for each in page["messages"]] == [
        ("6", 2),
        ("5", 0),
        ("4", 0),
        ("3", 2),
    ]
    assert values(await rest.get(f"{URL}?start={page['next']}")) == ["2", "1"]
    assert page["total"] == 6
    assert values(await rest.get(f"{URL}?start=earliest")) == ["1", "2", "3", "4", "5", "6"]


async def test_the_messages_of_all_segments_are_shown(rest: Rest, wire: Wire, bed: Bed) -> None:
    scalable = bed.broker.cluster.scalable.create(TopicName.parse("topic://public/default/t"), 2)
    for index, segment in enumerate(scalable.layout.active()):
        await publish_numbers(wire, index, topic=str(scalable.segment_topic(segment)), producer_id=index)
    page = await rest.get(URL.replace("persistent", "topic"))
    assert [(each["value"], each["partition"]) for each in page["messages"]] == [("1", 1), ("0", 0)]


async def test_one_partition_is_asked_for(rest: Rest, wire: Wire) -> None:
    await publish_to_partitions(rest, wire)
    assert values(await rest.get(f"{URL}?partition=2")) == ["6", "3", "2"]
    assert (await rest.refused("GET", f"{URL}?partition=3"))[0] == 404


async def test_other_partitions_begin_at_the_time_of_the_message_that_is_named(rest: Rest, wire: Wire) -> None:
    positions = await publish_to_partitions(rest, wire)
    assert values(await rest.get(f"{URL}?start={positions[4]}")) == ["3", "4", "5", "6"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("fromMs=200000", ["300000", "200000"]),
        ("toMs=200000", ["200000", "100000"]),
        ("fromMs=200000&toMs=200000", ["200000"]),
        ("fromMs=200000&order=oldest", ["200000", "300000"]),
        ("containing=3", ["300000"]),
        ("where=size+%3E+5+and+publish_time+%3C+200000", ["100000"]),
    ],
)
async def test_messages_are_searched(rest: Rest, wire: Wire, query: str, found: list[str]) -> None:
    await publish_numbers(wire, 100_000, 200_000, 300_000)
    assert values(await rest.get(f"{URL}?{query}")) == found


async def test_a_search_by_time_begins_near_that_time(rest: Rest, wire: Wire) -> None:
    await publish_numbers(wire, *range(0, 100 * STRAY_MS, STRAY_MS))
    page = await rest.get(f"{URL}?fromMs={50 * STRAY_MS}&toMs={50 * STRAY_MS}&order=oldest")
    assert len(page["messages"]) == 1
    assert page["scanned"] <= 5


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ('total > 100 and customer == "Ada"', ["a"]),
        ('items.sku == "x"', ["b"]),
        ('customer startswith "A"', ["a", "c"]),
        ("has items", ["b"]),
        ("not has total", ["b", "c"]),
        ('key == "a"', ["a"]),
        ('properties["source"] in ["shop"]', ["a"]),
        ("value.total < 100", []),
    ],
)
async def test_messages_are_searched_by_the_fields_of_their_values(
    rest: Rest, wire: Wire, where: str, found: list[str]
) -> None:
    await wire.producer()
    shop = [{"key": "source", "value": "shop"}]
    await wire.publish(
        plain(b'{"total": 120, "customer": "Ada"}', partition_key="a", properties=shop),
        plain(b'{"items": [{"sku": "w"}, {"sku": "x"}], "customer": 7}', partition_key="b"),
        plain(b'{"total": null, "customer": "Alan"}', partition_key="c"),
    )
    page = await rest.get(f"{URL}?start=earliest&where={quote(where)}")
    assert [each["key"] for each in page["messages"]] == found


async def test_messages_are_searched_by_their_keys(rest: Rest, wire: Wire) -> None:
    await wire.producer()
    await wire.publish(plain(b"x", partition_key="a"), plain(b"y", partition_key="b"), plain(b"z"))
    assert values(await rest.get(f"{URL}?key=b")) == ["y"]


@pytest.mark.parametrize("query", ["key=k", "where=name+%3D%3D+%22Ada%22+and+key+%3D%3D+%22k%22", "containing=ADA"])
async def test_pairs_are_searched_by_key_and_by_the_fields_of_their_values(rest: Rest, wire: Wire, query: str) -> None:
    made = await wire.producer(schema=pair("INLINE").to_proto("s"))
    await wire.publish(*(plain(joined(key, ADA), schema_version=made.schema_version) for key in (b"k", b"l")))
    page = await rest.get(f"{URL}?{query}&start=earliest&limit=1")
    assert values(page) == [{"key": "k", "value": {"name": "Ada"}}]
    assert (await rest.refused("GET", f"{URL}?where=nam+%3D%3D+1"))[0] == 400


async def test_a_search_by_time_leaves_partitions_that_are_beyond_it(rest: Rest, wire: Wire) -> None:
    await rest.done("PUT", f"{TOPICS}/t/partitions", 2)
    await publish_numbers(wire, *range(0, 20 * STRAY_MS, STRAY_MS), topic=f"{TOPIC}-partition-0")
    await publish_numbers(wire, 19 * STRAY_MS, 19 * STRAY_MS, topic=f"{TOPIC}-partition-1", producer_id=1)
    page = await rest.get(f"{URL}?fromMs={19 * STRAY_MS}")
    assert (len(page["messages"]), page["next"]) == (3, None)
    assert page["scanned"] < 8


async def test_a_condition_names_fields_of_the_schema(rest: Rest, wire: Wire) -> None:
    await wire.producer(schema=pb.Schema(name="s", type=pb.Schema.Json, schema_data=json.dumps(PERSON).encode()))
    _, reason = await rest.refused("GET", f"{URL}?where=nam+%3D%3D+%22Ada%22")
    assert "there is no field nam; did you mean name?" in reason


async def test_a_search_continues_after_its_time(rest: Rest, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "SCANNED", 2)
    await publish_numbers(wire, *range(5))
    page = await rest.get(f"{URL}?containing=0")
    assert (page["messages"], page["complete"], page["scanned"]) == ([], False, 2)
    monkeypatch.setattr(messages, "SCANNED", 10)
    page = await rest.get(f"{URL}?containing=0&start={page['next']}")
    assert (values(page), page["complete"], page["scanned"], page["next"]) == (["0"], True, 3, None)


@pytest.mark.parametrize(
    "query",
    ["start=x", "start=1:x", "start=older.x", "limit=0", "limit=1000", "limit=x", "order=x", "fromMs=x", "where=%3D"],
)
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
    first, second_row = await shown(rest, "start=earliest&subscription=sub")
    assert (first["acknowledged"], first["state"], first["deliveries"]) == (False, "delivered", 1)
    assert (second_row["acknowledged"], second_row["state"]) == (True, "acknowledged")


async def test_a_message_says_what_became_of_it(rest: Rest, wire: Wire, bed: Bed) -> None:
    await wire.producer()
    await wire.publish(plain(b"before"))
    await wire.subscribe(type=Shared)
    later = bed.broker.clock.now_ms() + 60_000
    await wire.publish(plain(b"again"), plain(b"delayed", deliver_at_time=later), plain(b"delivered"))
    await wire.flow(2)
    await wire.redeliver([(await wire.messages(2))[0].position])
    await wire.alive()
    found = await shown(rest, "start=earliest&subscription=sub")
    told = [(each["state"], each.get("deliveries"), each.get("by")) for each in found]
    assert told == [
        ("passed", None, "the start of the subscription"),
        ("waiting", 1, None),
        ("delayed", None, None),
        ("delivered", 1, None),
    ]


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


@pytest.mark.parametrize(
    ("payload", "preview"),
    [(b"a\n  b", "a b"), (b"x" * 500, "x" * 159 + "\u2026"), (b"\xff\x00", "ff 00")],
)
async def test_a_message_has_a_preview_of_one_line(rest: Rest, wire: Wire, payload: bytes, preview: str) -> None:
    await wire.producer()
    await wire.publish(plain(payload))
    (found,) = await shown(rest)
    assert found["preview"] == preview


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


AVRO = avro(PERSON)
ADA = AvroCodec(PERSON).encode({"name": "Ada"})


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
