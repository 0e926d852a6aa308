"""Entries as HTTP answers, with the headers and bodies of a real broker."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.web.admin.topic.messages import date_text, message_reply
from pulsarium.broker.web.http.errors import AdminError, HeadTooLarge
from pulsarium.broker.web.http.reply import HttpReply
from pulsarium.proto.compression import compress
from pulsarium.proto.entry import with_broker_metadata
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import batch_of, plain

AT = Position(39, 1)
PUBLISHED = 1700000000000
TXN: dict[str, Any] = {"txnid_most_bits": 0, "txnid_least_bits": 1}


def headers(entry: bytes) -> list[tuple[str, str]]:
    return list(message_reply(AT, entry).raw_headers)


def header(entry: bytes, name: str) -> str:
    (found,) = [value for each, value in headers(entry) if each == f"X-Pulsar-{name}"]
    return found


def test_all_headers_stand_in_the_order_of_a_real_broker() -> None:
    """The expected headers are those of 4.2.4 for the same entry."""
    entry = plain(
        b"\xff\x00bin",
        publish_time=PUBLISHED,
        event_time=PUBLISHED + 10,
        deliver_at_time=PUBLISHED + 100,
        properties=[{"key": "d", "value": "1"}, {"key": "d", "value": "2"}],
        uuid="u",
        num_chunks_from_msg=3,
        chunk_id=1,
        total_chunk_msg_size=30,
        null_value=True,
        null_partition_key=False,
        partition_key="k",
        partition_key_b64_encoded=False,
        highest_sequence_id=7,
        replicated_from="r1",
        replicate_to=["a", "b"],
        schema_version=b"\x01",
        ordering_key=b"o",
        marker_type=20,
        txnid_least_bits=3,
        txnid_most_bits=0,
    )
    stamped = with_broker_metadata(entry, pb.BrokerEntryMetadata(broker_timestamp=1700000000690, index=4))
    reply = message_reply(AT, stamped)
    assert (reply.status, reply.content_type, reply.body) == (200, "application/json", b"\xff\x00bin")
    assert [(name.removeprefix("X-Pulsar-"), value) for name, value in reply.raw_headers] == [
        ("Message-ID", "39:1"),
        ("PROPERTY", '{"d":"2"}'),
        ("Broker-Entry-METADATA-timestamp", "2023-11-14T22:13:20.69Z"),
        ("Broker-Entry-METADATA-index", "4"),
        ("publish-time", "2023-11-14T22:13:20Z"),
        ("event-time", "2023-11-14T22:13:20.01Z"),
        ("deliver-at-time", "2023-11-14T22:13:20.1Z"),
        ("null-value", "true"),
        ("PROPERTY-TOTAL-CHUNKS", "3"),
        ("PROPERTY-CHUNK-ID", "1"),
        ("Is-Encrypted", "false"),
        ("producer-name", "p"),
        ("sequence-id", "0"),
        ("replicated-from", "r1"),
        ("replicated-to", "a"),
        ("replicated-to", "b"),
        ("partition-key", "k"),
        ("Base64-schema-version", "AQ=="),
        ("partition-key-b64-encoded", "false"),
        ("Base64-ordering-key", "bw=="),
        ("marker-type", "20"),
        ("txnid-least-bits", "3"),
        ("txnid-most-bits", "0"),
        ("highest-sequence-id", "7"),
        ("uuid", "u"),
        ("num-chunks-from-msg", "3"),
        ("total-chunk-msg-size", "30"),
        ("chunk-id", "1"),
        ("null-partition-key", "false"),
        ("txn-aborted", "false"),
        ("txn-uncommitted", "false"),
    ]


def test_an_encrypted_message_stays_as_it_is() -> None:
    keys = [{"key": "k1", "value": b"v1"}, {"key": "k2", "value": b"v2", "metadata": [{"key": "m", "value": "n"}]}]
    entry = plain(
        b"enc",
        encryption_algo="RSA",
        encryption_param=b"iv",
        encryption_keys=keys,
        compression=pb.LZ4,
        uncompressed_size=99,
    )
    assert message_reply(AT, entry).body == b"enc"
    assert header(entry, "Is-Encrypted") == "true"
    assert [value for name, value in headers(entry) if name == "X-Pulsar-Base64-encryption-keys"] == [
        "CgJrMRICdjE=",
        "CgJrMhICdjIaBgoBbRIBbg==",
    ]
    found = [header(entry, name) for name in ("compression", "uncompressed-size", "encryption-algo")]
    assert (*found, header(entry, "Base64-encryption-param")) == ("LZ4", "99", "RSA", "aXY=")


@pytest.mark.parametrize("kind", [pb.NONE, pb.LZ4, pb.ZLIB, pb.ZSTD, pb.SNAPPY])
def test_a_compressed_message_is_decompressed(kind: pb.CompressionType) -> None:
    payload = b"payload " * 100
    entry = plain(compress(kind, payload), compression=kind, uncompressed_size=len(payload))
    assert message_reply(AT, entry).body == payload
    assert header(entry, "compression") == pb.CompressionType.Name(kind)


@pytest.mark.parametrize("entry", [plain(b"no LZ4", compression=pb.LZ4, uncompressed_size=99), b"\0\0\0\5garbage", b""])
def test_an_entry_that_cannot_be_read_is_answered_500(entry: bytes) -> None:
    with pytest.raises(AdminError) as refused:
        message_reply(AT, entry)
    assert refused.value.status == 500


def jetty(reply: HttpReply) -> int:
    """Return the bytes of the status line and headers that 4.2.4 sends with these headers and this body."""
    lines = [
        "HTTP/1.1 200 OK",
        "Server: Jetty(12.1.11)",
        "Date: Sat, 28 Nov 2026 18:54:43 GMT",
        *("{}: {}".format(*header) for header in reply.raw_headers),
        "Vary: Accept-Encoding",
        "Content-Type: application/json",
        f"Content-Length: {len(reply.body)}",
        "",
    ]
    return sum(len(line.encode("latin-1") + b"\r\n") for line in lines)


def with_property(size: int) -> bytes:
    return plain(b"hello", publish_time=PUBLISHED, properties=[{"key": "k", "value": "v" * size}])


def test_a_real_broker_sends_at_most_16384_bytes_of_headers() -> None:
    """4.2.4 sends an answer whose header lines have 16,365 bytes, and refuses one with 16,366."""
    room = 16384 - jetty(message_reply(AT, with_property(0)))
    assert jetty(message_reply(AT, with_property(room))) == 16384
    with pytest.raises(HeadTooLarge):
        message_reply(AT, with_property(room + 1))


@pytest.mark.parametrize(
    "properties",
    [
        [{"key": str(number), "value": ""} for number in range(5000)],
        [{"key": "k", "value": "v" * 200_000}, {"key": "l", "value": "v"}],
    ],
    ids=["many", "long"],
)
def test_properties_beyond_the_headers_are_no_text_before_they_are_refused(
    properties: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json, "dumps", None)
    with pytest.raises(HeadTooLarge):
        message_reply(AT, plain(b"", properties=properties))


def test_a_batch_comes_as_a_whole() -> None:
    entry = batch_of(b"a", b"b", publish_time=PUBLISHED)
    stamped = with_broker_metadata(entry, pb.BrokerEntryMetadata(broker_timestamp=PUBLISHED, index=1))
    assert entry.endswith(message_reply(AT, stamped).body)
    assert (header(stamped, "num-batch-message"), header(stamped, "batch-size")) == ("2", "39")  # as in 4.2.4


@pytest.mark.parametrize(
    ("fields", "name", "value"),
    [
        (
            {"properties": [{"key": "a<b>&'=\"", "value": "x\ny\t€é\\/"}, {"key": "é", "value": "\u2028"}]},
            "PROPERTY",
            r'{"a\u003cb\u003e\u0026\u0027\u003d\"":"x\ny\t ' + 'é\\\\/","é":"\\u2028"}',  # escaped as by Gson
        ),
        ({"partition_key": "ké€\r\nX-Evil: 1\0\x0b"}, "partition-key", "ké   X-Evil: 1"),
        *(({"partition_key": key}, "partition-key", "k") for key in (" k", "k ", "\tk", "k\n")),
        ({"sequence_id": 2**64 - 1}, "sequence-id", "-1"),
        ({"publish_time": 2**63 + 5}, "publish-time", "-292275055-05-16T16:47:04.197Z"),
    ],
)
def test_a_header_is_one_line_without_white_space_at_its_ends(fields: dict[str, Any], name: str, value: str) -> None:
    assert header(plain(b"", **fields), name) == value


@given(st.text(), st.text())
def test_headers_can_always_be_sent(key: str, name: str) -> None:
    for _, value in headers(
        plain(b"", partition_key=key, producer_name=name, properties=[{"key": key, "value": name}])
    ):
        assert not set(value.encode("latin-1")) & {0, 10, 13}


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (253402300799999, "9999-12-31T23:59:59.999Z"),
        (253402300800000, "+10000-01-01T00:00:00Z"),
        (2**63 + 5 - 2**64, "-292275055-05-16T16:47:04.197Z"),
        (2**63 - 1, "+292278994-08-17T07:12:55.807Z"),
        (-62167219200000, "0000-01-01T00:00:00Z"),
        (-62167219200001, "-0001-12-31T23:59:59.999Z"),
    ],
)
def test_instants_of_any_year_are_written_as_java_writes_them(ms: int, text: str) -> None:
    assert date_text(ms) == text


@pytest.mark.parametrize(
    ("transaction", "expected"),
    [({}, ["consumable: false"]), (TXN, ["aborted: false", "uncommitted: true", "consumable: false"])],
)
def test_5_0_tells_whether_consumers_may_read_a_message(transaction: dict[str, Any], expected: list[str]) -> None:
    reply = message_reply(AT, plain(b"m", **transaction), uncommitted=True, consumable=True)
    told = [f"{name}: {value}" for name, value in reply.raw_headers if name.startswith("X-Pulsar-txn-")]
    assert told == [f"X-Pulsar-txn-{each}" for each in expected]
