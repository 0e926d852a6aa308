"""Entries: taken apart, checked, and given or relieved of what stands in front of the metadata.

CRC32C against published vectors.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.proto import entry as entries
from pulsarium.proto.entry import crc32c
from pulsarium.proto.errors import EntryError
from pulsarium.proto.generated.PulsarApi_pb2 import BrokerEntryMetadata, MessageMetadata
from tests.proto.golden import Golden, golden_entries

METADATA = MessageMetadata(producer_name="p1", sequence_id=0, publish_time=1795265151694)
ENTRY = bytes.fromhex("0e01d4dd09700000000d0a027031100018ce8591f19f346d30")  # of transcript 012
BARE = ENTRY[6:]
IN_FRONT = BrokerEntryMetadata(broker_timestamp=1795265151700, index=41)

golden = pytest.mark.parametrize("golden", golden_entries(), ids=lambda golden: golden.kind)


@golden
def test_recorded_entries_have_their_parts(golden: Golden) -> None:
    checked = {"nocrc": None, "badcrc": False}
    expected = next((checked[trait] for trait in golden.traits if trait in checked), True)
    plain = entries.strip_broker_metadata(golden.frame)
    assert entries.checksum_matches(plain) is expected
    metadata = entries.parse_metadata(golden.frame)
    assert metadata.producer_name.startswith("p")
    assert metadata.HasField("num_messages_in_batch") == ("batch" in golden.traits)
    assert (entries.parse_broker_metadata(golden.frame) is not None) == ("broker" in golden.traits)
    parts = entries.split(golden.frame)
    assert parts.has_checksum == ("nocrc" not in golden.traits)
    assert parts.metadata_bytes == metadata.SerializeToString()
    assert parts.payload == entries.payload_of(golden.frame)
    if expected:
        assert entries.build(metadata, parts.payload) == plain
    assert entries.build(metadata, parts.payload, checksum=False) == entries.strip_checksum(plain)


@pytest.mark.req("W-02")
def test_an_entry_with_its_checksum() -> None:
    assert entries.build(METADATA, b"m0") == ENTRY
    assert entries.build(METADATA, b"m0", checksum=False) == BARE
    assert entries.checksum_matches(ENTRY) is True
    assert entries.checksum_matches(BARE) is None
    assert entries.split(ENTRY) == (None, True, METADATA.SerializeToString(), b"m0")
    assert entries.split(BARE) == (None, False, METADATA.SerializeToString(), b"m0")


@given(st.integers(0, len(ENTRY) * 8 - 1))
def test_one_wrong_bit_is_found(bit: int) -> None:
    wrong = bytearray(ENTRY)
    wrong[bit // 8] ^= 1 << (bit % 8)
    assert entries.checksum_matches(bytes(wrong)) is (None if bit < 16 else False)


# A released broker answered a SEND with only these bytes by a receipt or ChecksumError, or closed the connection.
@pytest.mark.parametrize(
    ("data", "matches"),
    [
        ("0e0100000000", True),
        ("0e0100000001", False),
        ("0001", None),
        ("abcd", None),
        ("0e02", None),
        ("0e02ffffffff", None),
        ("0e0200000000", None),
        ("0e02000000000e0100000001", None),
        ("0e01b39c991c000003e86162", True),
        ("0e01c6525ad9000000006d32", True),
    ],
)
def test_checksums_of_odd_entries(data: str, matches: bool | None) -> None:
    assert entries.checksum_matches(bytes.fromhex(data)) is matches


@pytest.mark.parametrize("data", ["", "00", "0e", "ab", "0e01", "0e0100", "0e01000000"])
def test_entries_too_short_for_a_checksum(data: str) -> None:
    with pytest.raises(EntryError):
        entries.checksum_matches(bytes.fromhex(data))


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ("", "no metadata size"),
        ("000000", "no metadata size"),
        ("0e0100000000", "no metadata size"),
        ("0e0200000000", "no metadata size"),
        ("0e01b39c991c000003e86162", "metadata of 1000 bytes is beyond its entry of 12"),
        ("ffffffff", "metadata of 4294967295 bytes is beyond its entry of 4"),
        ("0e02ffffffff0000", "beyond its entry"),
        ("00000000", "missing required fields: producer_name,sequence_id,publish_time"),
        ("00000003ffffff6d33", "Error parsing"),
        ("000000040a0270316d", "missing required fields: sequence_id,publish_time"),
    ],
)
def test_unreadable_metadata_is_an_error(data: str, error: str) -> None:
    with pytest.raises(EntryError, match=error):
        entries.parse_metadata(bytes.fromhex(data))


@pytest.mark.parametrize("entry", [ENTRY, BARE])
def test_broker_entry_metadata_stands_before_the_entry(entry: bytes) -> None:
    """PIP-70."""
    stored = entries.with_broker_metadata(entry, IN_FRONT)
    head = IN_FRONT.SerializeToString()
    assert stored == b"\x0e\x02" + len(head).to_bytes(4, "big") + head + entry
    assert entries.parse_broker_metadata(stored) == IN_FRONT
    assert entries.parse_broker_metadata(entry) is None
    assert entries.strip_broker_metadata(stored) == entry
    assert entries.strip_broker_metadata(entry) == entry
    assert entries.parse_metadata(stored) == METADATA
    assert entries.payload_of(stored) == b"m0"
    assert entries.split(stored) == (IN_FRONT, entry is ENTRY, METADATA.SerializeToString(), b"m0")
    assert entries.strip_checksum(stored) == entries.with_broker_metadata(BARE, IN_FRONT)


def test_empty_broker_metadata() -> None:
    stored = entries.with_broker_metadata(ENTRY, BrokerEntryMetadata())
    assert entries.parse_broker_metadata(stored) == BrokerEntryMetadata()
    assert entries.strip_broker_metadata(stored) == ENTRY


def test_unreadable_broker_metadata() -> None:
    with pytest.raises(EntryError, match="broker entry metadata"):
        entries.parse_broker_metadata(bytes.fromhex("0e0200000001ff") + ENTRY)


def test_checksum_is_stripped_for_old_consumers() -> None:
    assert entries.strip_checksum(ENTRY) == BARE
    assert entries.strip_checksum(BARE) == BARE
    assert entries.strip_checksum(b"") == b""


@given(
    st.builds(
        MessageMetadata,
        producer_name=st.text(max_size=20),
        sequence_id=st.integers(0, 2**64 - 1),
        publish_time=st.integers(0, 2**64 - 1),
        partition_key=st.text(max_size=9),
        num_messages_in_batch=st.integers(-(2**31), 2**31 - 1),
    ),
    st.binary(max_size=300),
    st.booleans(),
    st.none() | st.builds(BrokerEntryMetadata, index=st.integers(0, 2**64 - 1)),
)
def test_an_entry_comes_back_as_it_went(
    metadata: MessageMetadata, payload: bytes, checksum: bool, in_front: BrokerEntryMetadata | None
) -> None:
    entry = entries.build(metadata, payload, checksum=checksum)
    assert entries.checksum_matches(entry) is (True if checksum else None)
    stored = entry if in_front is None else entries.with_broker_metadata(entry, in_front)
    assert entries.split(stored) == (in_front, checksum, metadata.SerializeToString(), payload)
    assert entries.parse_metadata(stored) == metadata


@given(st.binary(max_size=60))
def test_an_entry_of_garbage_raises_nothing_else(data: bytes) -> None:
    for read in (entries.parse_metadata, entries.split, entries.payload_of, entries.parse_broker_metadata):
        try:
            read(data)
        except EntryError:
            continue
    assert data.endswith(entries.strip_broker_metadata(data))
    assert data.endswith(entries.strip_checksum(entries.strip_broker_metadata(data)))


@given(
    count=st.none() | st.integers(-(2**31), 2**31 - 1),
    marker=st.none() | st.integers(0, 40),
    name=st.text(max_size=200),
    key=st.text(max_size=8),
)
def test_messages_in_is_what_the_metadata_says(count: int | None, marker: int | None, name: str, key: str) -> None:
    metadata = MessageMetadata(producer_name=name, sequence_id=1, publish_time=2, partition_key=key)
    if count is not None:
        metadata.num_messages_in_batch = count
    if marker is not None:
        metadata.marker_type = marker
    expected = None if marker is not None else 1 if count is None else count
    for checksum in (True, False):
        assert entries.messages_in(entries.build(metadata, b"payload", checksum=checksum)) == expected


@given(st.binary(max_size=40))
def test_messages_in_takes_any_bytes(data: bytes) -> None:
    for candidate in (data, b"\x0e\x01" + data, b"\x0e\x01....\x00\x00\x00" + bytes([len(data)]) + data):
        entries.messages_in(candidate)


@pytest.mark.parametrize("metadata", [b"", b"\xff\xff\xff", b"\x0a\x01p"], ids=["empty", "garbage", "incomplete"])
def test_nobody_counts_what_nobody_can_read(metadata: bytes) -> None:
    assert (
        entries.messages_in(b"\x0e\x01" + bytes(4) + len(metadata).to_bytes(4, "big") + metadata + b"payload") is None
    )


SPECIAL = [{"num_messages_in_batch": 2}, {"marker_type": 1}, {"deliver_at_time": 1}, {"uuid": "u"}]


@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("stamped", [False, True])
def test_entries_with_special_fields_are_not_plain(special: dict[str, Any], stamped: bool) -> None:
    def built(**fields: Any) -> bytes:
        data = entries.build(MessageMetadata(producer_name="p", sequence_id=1, publish_time=1, **fields), b"\x58")
        return entries.with_broker_metadata(data, BrokerEntryMetadata(index=88)) if stamped else data

    assert entries.is_plain(built())
    assert entries.is_plain(built(partition_key="k"))
    assert not entries.is_plain(built(**special))


PIECES = st.sampled_from([b"\x58", b"\x98", b"\x98\x01", b"\xa0\x01", b"\xd2", b"\xd2\x01", b"\x01", b"\x0a\x01p\x10"])
BYTES = st.lists(PIECES | st.binary(max_size=4), max_size=8).map(b"".join)


@given(st.sampled_from([b"", b"\x0a\x01p\x10", b"\x0a\x00\x10\x58"]), BYTES, st.integers(-4, 4), BYTES, st.booleans())
def test_plain_metadata_begins_as_usual_and_has_none_of_four_tags(
    head: bytes, body: bytes, wrong: int, payload: bytes, stamped: bool
) -> None:
    size = max(0, len(head + body) + wrong)
    entry = b"\x0e\x01...." + size.to_bytes(4, "big") + head + body + payload
    metadata = entry[10 : 10 + size]
    begins = metadata[:1] == b"\x0a" and len(metadata) > 2 and metadata[2 + metadata[1] :][:1] == b"\x10"
    tags = (b"\x58", b"\x98\x01", b"\xa0\x01", b"\xd2\x01")
    expected = begins and not any(tag in metadata for tag in tags)
    assert entries.is_plain(entries.with_broker_metadata(entry, IN_FRONT) if stamped else entry) is expected


@pytest.mark.parametrize("stamped", [False, True])
@pytest.mark.parametrize(
    "rest",
    [
        {},
        {"partition_key_b64_encoded": False, "uncompressed_size": 5},  # as the Java client writes it
        {"compression": 3, "uncompressed_size": 3000, "event_time": 7, "schema_version": bytes(8), "null_value": True},
    ],
)
def test_the_key_of_a_plain_entry_is_found_at_once(rest: dict[str, Any], stamped: bool) -> None:
    metadata = MessageMetadata(
        producer_name="p1", sequence_id=2**40, publish_time=1795265151694, partition_key="k" * 9, **rest
    )
    entry = entries.build(metadata, b"payload")
    assert entries.plain_key(entries.with_broker_metadata(entry, IN_FRONT) if stamped else entry) == b"k" * 9


NUMBERS = st.integers(0, 2**32 - 1)
FIELDS = st.fixed_dictionaries(
    {"producer_name": st.text(max_size=3), "sequence_id": NUMBERS, "publish_time": NUMBERS},
    optional={
        "partition_key": st.text(max_size=4),
        "partition_key_b64_encoded": st.booleans(),
        "ordering_key": st.binary(max_size=2),
        "num_messages_in_batch": st.integers(0, 3),
        "compression": st.integers(0, 4),
        "uncompressed_size": NUMBERS,
        "event_time": NUMBERS,
        "schema_version": st.sampled_from([b"", bytes(8), b"12345678"]),
        "deliver_at_time": NUMBERS,
        "marker_type": st.integers(0, 20),
        "uuid": st.text(max_size=2),
        "highest_sequence_id": NUMBERS,
        "null_value": st.booleans(),
        "txnid_least_bits": NUMBERS,
        "entry_hash_min": NUMBERS,
    },
)


@given(FIELDS, st.binary(max_size=6), st.integers(-3, 3), st.binary(max_size=3), st.booleans())
def test_a_plain_key_is_that_of_the_metadata(
    fields: dict[str, Any], more: bytes, wrong: int, payload: bytes, stamped: bool
) -> None:
    encoded = MessageMetadata(**fields).SerializeToString() + more
    size = max(0, len(encoded) + wrong)
    entry = b"\x0e\x01...." + size.to_bytes(4, "big") + encoded + payload
    key = entries.plain_key(entries.with_broker_metadata(entry, IN_FRONT) if stamped else entry)
    if key is None:
        return
    metadata = entries.visible_metadata(entry)
    assert metadata is not None
    assert metadata.partition_key.encode() == key
    assert (metadata.num_messages_in_batch, metadata.partition_key_b64_encoded) == (1, False)
    special = ("ordering_key", "deliver_at_time", "uuid", "txnid_least_bits", "entry_hash_min")
    assert not any(metadata.HasField(field) for field in special)


@given(st.binary(max_size=20))
def test_an_entry_that_is_cut_anywhere_is_plain_or_not(data: bytes) -> None:
    for candidate in (data, b"\x0e\x01" + data, b"\x0e\x02\x00\x00\x00\x01x" + data):
        assert entries.is_plain(candidate) in (True, False)
        assert entries.plain_key(candidate) is None


@pytest.mark.parametrize("size", [0, 1, 4000, 4086, 4087, 20_000])
def test_a_checksum_is_checked_for_entries_of_all_sizes(size: int) -> None:
    entry = entries.build(METADATA, b"x" * size)
    assert entries.checksum_matches(entry) is True
    assert entries.checksum_matches(entry[:-1] + b"y") is False


@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("in_front", [True, False])
def test_an_entry_is_told_its_transaction(checksum: bool, in_front: bool) -> None:
    entry = entries.build(MessageMetadata.FromString(METADATA.SerializeToString()), b"payload", checksum=checksum)
    if in_front:
        entry = entries.with_broker_metadata(entry, IN_FRONT)
    for bits in ((0, 7), (2**64 - 1, 3)):
        entry = entries.with_txn_bits(entry, *bits)
        assert entries.txn_bits_of(entry) == bits
        plain = entries.strip_broker_metadata(entry)
        assert (len(plain) < len(entry), entries.checksum_matches(plain)) == (in_front, True if checksum else None)
        assert entries.payload_of(entry) == b"payload"
        assert entries.parse_metadata(entry).producer_name == "p1"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        # RFC 3720, appendix B.4
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(reversed(range(32))), 0x113FDB5C),
    ],
)
def test_checksums_fit_their_vectors(data: bytes, expected: int) -> None:
    assert crc32c(data) == expected
    assert crc32c(bytearray(data)) == expected
    assert crc32c(memoryview(data)) == expected


@given(st.binary(max_size=200), st.integers(0, 200))
def test_piece_by_piece(data: bytes, cut: int) -> None:
    assert crc32c(memoryview(data)[cut:], crc32c(data[:cut])) == crc32c(data)
