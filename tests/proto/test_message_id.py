"""Message ids as text and as the bytes of official clients."""

from __future__ import annotations

import base64
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.proto.errors import InvalidMessageId
from pulsarium.proto.generated.PulsarApi_pb2 import MessageIdData
from pulsarium.proto.message_id import MessageId

I64 = st.integers(-(2**63) + 1, 2**63 - 1)
I32 = st.integers(-1, 2**31 - 1)
plain = st.builds(MessageId, I64, I64, I32, I32, st.integers(0, 2**31 - 1))
ids = plain | st.builds(MessageId, I64, I64, I32, first_chunk=plain)


# Printed by the official Python client (that is, C++), which leaves a batch size of 0 out, but for those of PIP-423,
# which come from Java.
@pytest.mark.parametrize(
    ("encoded", "expected"),
    [
        ("CLlgEAQwAA==", MessageId(12345, 4)),
        ("CLlgEAYwAA==", MessageId(12345, 6)),
        ("CLlgEAQ=", MessageId(12345, 4)),
        ("CAEQAhgA", MessageId(1, 2, 0)),
        ("CAcQAxgDIAE=", MessageId(7, 3, 3, 1)),
        ("CAAQACAA", MessageId(0, 0, -1, 0)),
        ("CP///////////wEQ////////////AQ==", MessageId.EARLIEST),
        ("CP//////////fxD//////////38=", MessageId.LATEST),
        # Go sets all fields
        ("CAEQAhj///////////8BIP///////////wEwAA==", MessageId(1, 2)),
        # unknown fields of later versions
        ("CAEQAkIFdG9waWM=", MessageId(1, 2)),
    ],
)
def test_bytes_of_official_clients(encoded: str, expected: MessageId) -> None:
    assert MessageId.from_bytes(base64.b64decode(encoded)) == expected


def test_bytes_are_those_of_java() -> None:
    assert base64.b64encode(MessageId(12345, 4).to_bytes()) == b"CLlgEAQwAA=="
    assert MessageId(7, 3, 3, 1, 5).to_bytes().hex() == "08071003180320013005"
    chunked = MessageId(7, 3, 0, first_chunk=MessageId(7, 1, 0))
    assert chunked.to_bytes().hex() == "08071003180030003a080807100118003000"


@pytest.mark.parametrize("data", ["", "08", "0801", "1001", "ff", "0a0101"])
def test_bytes_of_something_else(data: str) -> None:
    with pytest.raises(InvalidMessageId):
        MessageId.from_bytes(bytes.fromhex(data))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1:2:-1", MessageId(1, 2)),
        ("1:2:0", MessageId(1, 2, 0)),
        ("1:2:-1:0", MessageId(1, 2, -1, 0)),
        ("7:3:3:1", MessageId(7, 3, 3, 1)),
        ("-1:-1:-1", MessageId.EARLIEST),
        ("9223372036854775807:9223372036854775807:-1", MessageId.LATEST),
        ("7:1:0;7:3:0", MessageId(7, 3, 0, first_chunk=MessageId(7, 1, 0))),
    ],
)
def test_a_message_id_is_read_from_its_text(text: str, expected: MessageId) -> None:
    assert str(expected) == text
    assert MessageId.parse(text) == expected


def test_a_text_may_leave_out_partition_and_batch_index() -> None:
    assert MessageId.parse("1:2") == MessageId(1, 2)
    assert MessageId.parse("1:2:-1:-1") == MessageId(1, 2)


@pytest.mark.parametrize(
    "text",
    [
        "", "1", "1:", ":1", "1:2:", "1:2:3:4:5", "a:1", "1:2 ", " 1:2", "1:2\n", "+1:2", "--1:2", "0x1:2", "1_0:2",
        "\u0661:2", "9223372036854775808:0", "0:-9223372036854775808", "1:2:2147483648", "1:2:0:9999999999",
        ";1:2", "1:2;", "1:2;3:4;5:6", "1" * 10_000 + ":1",
    ],
)  # fmt: skip
def test_a_text_that_is_no_message_id_is_refused(text: str) -> None:
    with pytest.raises(InvalidMessageId):
        MessageId.parse(text)


@given(ids)
def test_a_message_id_is_the_same_after_bytes_and_text(message_id: MessageId) -> None:
    assert MessageId.from_bytes(message_id.to_bytes()) == message_id
    again = MessageId.parse(str(message_id))
    assert (again.ledger_id, again.entry_id, again.partition, again.batch_index) == (
        message_id.ledger_id, message_id.entry_id, message_id.partition, message_id.batch_index,
    )  # fmt: skip


@given(st.text(max_size=20), st.binary(max_size=20))
def test_a_message_id_of_garbage_raises_nothing_else(text: str, data: bytes) -> None:
    with suppress(InvalidMessageId):
        MessageId.parse(text)
    with suppress(InvalidMessageId):
        MessageId.from_bytes(data)


def test_earliest_has_unsigned_ids_on_the_wire() -> None:
    data = MessageIdData(ledgerId=2**64 - 1, entryId=2**64 - 1)
    assert MessageId.from_data(data) == MessageId.EARLIEST
    assert MessageId.EARLIEST.to_data() == MessageIdData(ledgerId=2**64 - 1, entryId=2**64 - 1, batch_size=0)


def test_a_chain_of_first_chunks_ends_somewhere() -> None:
    data = b""
    for _ in range(1000):
        size = bytes([len(data) & 127 | 128, len(data) >> 7])
        data = bytes.fromhex("08011001" + "3a") + size + data
    with pytest.raises(InvalidMessageId):
        MessageId.from_bytes(data)
