"""The entry behind GET_LAST_MESSAGE_ID_RESPONSE, and the last message in the entry (PIP-429)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.proto import compression
from pulsarium.proto.batch import pack
from pulsarium.proto.commands import parse
from pulsarium.proto.compression import compress
from pulsarium.proto.entry import build, with_broker_metadata
from pulsarium.proto.errors import BatchError, CompressionError, EntryError, ProtocolError
from pulsarium.proto.framing import FrameDecoder, frame
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.last_entry import buffer_of, last_batch_index, last_kept, take_apart

EXAMPLE = (True, False, True, True)  # whether k0=v0, k0=v1, k1=v0 and k1=null of the PIP are compacted out


def metadata_of(**fields: Any) -> pb.MessageMetadata:
    return pb.MessageMetadata(**{"producer_name": "p", "sequence_id": 3, "publish_time": 1000, **fields})


def batch_with(*compacted_out: bool) -> bytes:
    """Build a batch as compaction leaves it: placeholders keep neither key nor message (X-23)."""
    return pack(
        (pb.SingleMessageMetadata(payload_size=0, compacted_out=True), b"")
        if out
        else (pb.SingleMessageMetadata(payload_size=0, partition_key="k"), b"v%d" % index)
        for index, out in enumerate(compacted_out)
    )


@pytest.fixture
def decompressed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the compression type of each decompressed payload."""
    calls: list[int] = []
    real = compression.decompress

    def counted(kind: Any, data: bytes, size: int) -> bytes:
        calls.append(kind)
        return real(kind, data, size)

    monkeypatch.setattr(compression, "decompress", counted)
    return calls


@pytest.mark.req("S429-16")
@pytest.mark.parametrize("fields", [{}, {"num_messages_in_batch": 1}, {"num_messages_in_batch": 0}], ids=str)
def test_one_message_has_no_index(decompressed: list[int], fields: dict[str, int]) -> None:
    metadata = metadata_of(compression=pb.LZ4, compacted_batch_indexes=[0], **fields)
    assert last_batch_index(metadata, b"anything") == -1
    assert decompressed == []


@pytest.mark.req("S429-16", "S429-19")
def test_the_indexes_of_the_metadata_come_first(decompressed: list[int]) -> None:
    """The indexes come first even in encrypted entries, and for payloads in a form of another compaction service."""
    metadata = metadata_of(num_messages_in_batch=4, compacted_batch_indexes=[0, 2], compression=pb.LZ4)
    assert last_batch_index(metadata, b"of another form") == 2
    metadata.encryption_keys.add(key="k", value=b"v")
    assert last_batch_index(metadata, b"of another form") == 2
    assert decompressed == []


@pytest.mark.req("S429-16", "S429-17")
def test_an_encrypted_batch_was_not_compacted(decompressed: list[int]) -> None:
    metadata = metadata_of(num_messages_in_batch=4, compression=pb.LZ4)
    metadata.encryption_keys.add(key="k", value=b"v")
    assert last_batch_index(metadata, b"\x03 encrypted") == 3
    assert decompressed == []


@pytest.mark.req("S429-16", "S429-20")
@pytest.mark.parametrize("kind", [pb.NONE, pb.LZ4, pb.ZLIB, pb.ZSTD, pb.SNAPPY], ids=pb.CompressionType.Name)
def test_else_the_batch_is_looked_through(decompressed: list[int], kind: pb.CompressionType) -> None:
    """Older compactors did not write field 31."""
    plain = batch_with(*EXAMPLE)
    metadata = metadata_of(num_messages_in_batch=4, compression=kind, uncompressed_size=len(plain))
    assert last_batch_index(metadata, compress(kind, plain)) == 1
    assert decompressed == [kind]


@pytest.mark.req("S429-16")
@given(st.lists(st.booleans(), min_size=1, max_size=40))
def test_the_last_that_was_kept(compacted_out: list[bool]) -> None:
    batch = batch_with(*compacted_out)
    if all(compacted_out):
        with pytest.raises(BatchError, match=f"all {len(compacted_out)} messages"):
            last_kept(batch, len(compacted_out))
    else:
        kept = [index for index, out in enumerate(compacted_out) if not out]
        assert last_kept(batch, len(compacted_out)) == kept[-1]


@pytest.mark.req("S429-19")
def test_a_payload_that_is_not_what_its_metadata_says() -> None:
    with pytest.raises(BatchError):
        last_batch_index(metadata_of(num_messages_in_batch=2), b"no batch")
    with pytest.raises(CompressionError):
        last_batch_index(metadata_of(num_messages_in_batch=2, compression=pb.LZ4, uncompressed_size=99), b"no LZ4")


# the buffer


def test_the_buffer_is_the_entry_without_the_brokers_part() -> None:
    entry = build(metadata_of(), b"payload")
    stored = with_broker_metadata(entry, pb.BrokerEntryMetadata(broker_timestamp=5, index=9))
    assert buffer_of(stored) == buffer_of(entry) == entry
    assert entry[:2] == b"\x0e\x01"


@pytest.mark.parametrize("checksum", [True, False])
def test_a_buffer_is_taken_apart(checksum: bool) -> None:
    metadata = metadata_of(num_messages_in_batch=4)
    found = take_apart(build(metadata, b"payload", checksum=checksum))
    assert found == (metadata, metadata.SerializeToString(), b"payload")


def test_a_buffer_that_was_changed_on_the_way() -> None:
    buffer = bytearray(build(metadata_of(), b"payload"))
    buffer[-1] ^= 1
    with pytest.raises(EntryError, match="does not fit its checksum"):
        take_apart(bytes(buffer))


def test_a_buffer_cut_off_anywhere() -> None:
    buffer = build(metadata_of(), b"payload")
    for end in range(len(buffer)):
        with pytest.raises(EntryError):
            take_apart(buffer[:end])


@given(st.binary(max_size=60))
def test_any_bytes_are_a_buffer_or_an_error(data: bytes) -> None:
    try:
        found = take_apart(data)
    except ProtocolError:
        return
    assert data.endswith(found.payload)


# the frame

COMMAND = bytes.fromhex(
    "081e f20119"  # type 30, and its body
    "0a0f 080c 1001 18ffffffffffffffffff01"  # last_message_id: 12:1, partition -1, no batch_index
    "1007 1a04 080c 1000"  # request_id, consumer_mark_delete_position
)
ENTRY = bytes.fromhex(
    "0e01 751297f6"  # CRC32C
    "0000000f 0a0170 1003 18e807 4823 5804 f80101"  # metadata: 35 bytes, 4 messages, index 1 was kept
    "00000004 18002001"  # payload_size 0, compacted_out
    "00000005 12016b 1802 7631"  # key k, v1
    "00000004 18002001 00000004 18002001"
)
FRAME = bytes.fromhex("0000005e0000001e") + COMMAND + ENTRY  # sizes of the rest, and of the command


@pytest.mark.req("S429-06")
def test_the_frame_byte_for_byte() -> None:
    batch = batch_with(*EXAMPLE)
    metadata = metadata_of(num_messages_in_batch=4, compacted_batch_indexes=[1], uncompressed_size=len(batch))
    entry = build(metadata, batch)
    reply = pb.CommandGetLastMessageIdResponse(request_id=7)
    reply.last_message_id.ledgerId, reply.last_message_id.entryId, reply.last_message_id.partition = 12, 1, -1
    reply.consumer_mark_delete_position.ledgerId, reply.consumer_mark_delete_position.entryId = 12, 0
    command = pb.BaseCommand(type=pb.BaseCommand.GET_LAST_MESSAGE_ID_RESPONSE, getLastMessageIdResponse=reply)
    assert entry == ENTRY
    assert frame(command.SerializeToString(), entry) == FRAME


@pytest.mark.req("S429-06")
@pytest.mark.parametrize("cut", range(len(FRAME) + 1))
def test_the_frame_cut_anywhere(cut: int) -> None:
    """A client finds the end of the entry, and the next frame, by the sizes."""
    decoder = FrameDecoder()
    pong = bytes.fromhex("000000090000000508139a0100")
    frames = [*decoder.feed(FRAME[:cut]), *decoder.feed(FRAME[cut:] + pong)]
    assert decoder.error is None
    assert [trailing for _, trailing in frames] == [ENTRY, b""]
    command = pb.BaseCommand()
    spec = parse(frames[0][0], command, frames[0][1])
    assert spec.type == pb.BaseCommand.GET_LAST_MESSAGE_ID_RESPONSE
    last = command.getLastMessageIdResponse.last_message_id
    assert (last.ledgerId, last.entryId, last.partition, last.HasField("batch_index")) == (12, 1, -1, False)
    found = take_apart(frames[0][1])
    assert last_batch_index(found.metadata, found.payload) == 1
    assert last_kept(found.payload, 4) == 1
