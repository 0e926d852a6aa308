"""An entry: what follows the command of a SEND, what is stored, and what follows a MESSAGE.

    [u16 0x0e02][u32 size][BrokerEntryMetadata]   only where a broker wrote it (PIP-70)
    [u16 0x0e01][u32 CRC32C of all that follows]  absent from clients that do not check
    [u32 size][MessageMetadata][payload]

All numbers are big-endian. An entry is kept as it came: nothing here encodes metadata again (`with_txn_bits` adds).
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from crc32c import crc32c as _crc32c
from google.protobuf.message import DecodeError, EncodeError

from pulsarium.proto.errors import EntryError
from pulsarium.proto.generated.PulsarApi_pb2 import BrokerEntryMetadata, MessageMetadata


def crc32c(data: bytes | bytearray | memoryview, value: int = 0) -> int:
    """The checksum of `data`, 0 to 2^32 - 1; pass the result back as `value` to go on with further data."""
    return _crc32c(data, value)


_CHECKSUM = b"\x0e\x01"
_BROKER = b"\x0e\x02"
_MAGIC_AND_WORD = 6  # bytes of a magic number and the u32 behind it

_NAME_TAG = b"\x0a"  # producer_name, field 1: the first in every client's metadata
_SEQUENCE_TAG = b"\x10"  # sequence_id, field 2: the next
_BATCH_TAG = b"\x58"  # num_messages_in_batch, field 11
_DELAY_TAG = b"\x98\x01"  # deliver_at_time, field 19
_MARKER_TAG = b"\xa0\x01"  # marker_type, field 20
_TXN_TAG = b"\xb0\x01"  # txnid_least_bits, field 22
_UUID_TAG = b"\xd2\x01"  # uuid of a chunked message, field 26

_U32 = Struct(">I")
_HEAD = Struct(">2sI")


class EntryParts(NamedTuple):
    """An entry taken apart; `metadata_bytes` is a serialized MessageMetadata."""

    broker_metadata: BrokerEntryMetadata | None
    has_checksum: bool
    metadata_bytes: bytes
    payload: bytes


def checksum_matches(entry: bytes) -> bool | None:
    """Whether the entry of a SEND fits its checksum; None if it has none.

    EntryError if it is too short to tell, where Pulsar closes the connection. As there, an entry that claims to begin
    with broker metadata has no checksum.
    """
    magic = entry[:2]
    if magic == _CHECKSUM:
        if len(entry) < _MAGIC_AND_WORD:
            raise EntryError(f"entry of {len(entry)} bytes ends inside its checksum")
        claimed: int = _U32.unpack_from(entry, 2)[0]
        return crc32c(memoryview(entry)[_MAGIC_AND_WORD:]) == claimed
    if len(magic) < 2:
        raise EntryError(f"entry of {len(entry)} bytes")
    return None


def parse_metadata(entry: bytes) -> MessageMetadata:
    """The metadata of any entry; EntryError if it cannot be read or lacks a required field."""
    start, end = _metadata_span(entry)
    try:
        metadata = MessageMetadata.FromString(entry[start:end])
        metadata.SerializeToString()  # fails where a required field is absent; cheaper than IsInitialized
    except (DecodeError, EncodeError) as error:
        raise EntryError(f"message metadata: {error}") from None
    return metadata


def is_plain(entry: bytes) -> bool:
    """Whether an entry is surely one whole message that may be delivered at once; False: look at its metadata.

    The fields that matter are looked for by their tags: where the bytes of a tag are nowhere, the field is not there,
    and metadata that begins as every client writes it need not be parsed to know that it holds one message.
    """
    start = 10
    if entry[:2] != _CHECKSUM:
        start += _after_broker_metadata(entry)
        if start == 10 or not entry.startswith(_CHECKSUM, start - 10):
            return False
    metadata = entry[start : start + int.from_bytes(entry[start - 4 : start], "big")]
    return (
        _BATCH_TAG not in metadata
        and _MARKER_TAG not in metadata
        and _DELAY_TAG not in metadata
        and _UUID_TAG not in metadata
        and metadata[:1] == _NAME_TAG
        and len(metadata) > 2
        and metadata[2 + metadata[1] : 3 + metadata[1]] == _SEQUENCE_TAG
    )


def visible_metadata(entry: bytes) -> MessageMetadata | None:
    """The metadata of an entry; None when no client may see it: a marker, or metadata nobody can read."""
    try:
        metadata = parse_metadata(entry)
    except EntryError:
        return None
    return None if metadata.HasField("marker_type") else metadata


def messages_in(entry: bytes) -> int | None:
    """How many messages an entry counts for; None when no client may see it."""
    if is_plain(entry):
        return 1
    metadata = visible_metadata(entry)
    return None if metadata is None else metadata.num_messages_in_batch


def txn_bits_of(entry: bytes) -> tuple[int, int] | None:
    """The most and the least bits of the transaction of an entry; None if it has none, EntryError as above."""
    if entry.find(_TXN_TAG, *_metadata_span(entry)) < 0:
        return None
    metadata = parse_metadata(entry)
    if not (metadata.HasField("txnid_most_bits") and metadata.HasField("txnid_least_bits")):
        return None
    return metadata.txnid_most_bits, metadata.txnid_least_bits


def with_txn_bits(entry: bytes, most: int, least: int) -> bytes:
    """The entry with these bits in its metadata; the last field of a number is the one that counts."""
    start, end = _metadata_span(entry)
    bits = MessageMetadata(txnid_most_bits=most, txnid_least_bits=least).SerializePartialToString()
    metadata = entry[start:end] + bits
    rest = b"".join((_U32.pack(len(metadata)), metadata, entry[end:]))
    before = entry[: start - 4]
    if entry.startswith(_CHECKSUM, _after_broker_metadata(entry)):
        before = before[:-_MAGIC_AND_WORD] + _HEAD.pack(_CHECKSUM, crc32c(rest))
    return before + rest


def payload_of(entry: bytes) -> bytes:
    """What follows the metadata: the message, or the batch, as the producer compressed and encrypted it."""
    return entry[_metadata_span(entry)[1] :]


def split(entry: bytes) -> EntryParts:
    """Takes an entry apart; EntryError if its sizes do not fit."""
    start, end = _metadata_span(entry)
    has_checksum = entry.startswith(_CHECKSUM, _after_broker_metadata(entry))
    return EntryParts(parse_broker_metadata(entry), has_checksum, entry[start:end], entry[end:])


def parse_broker_metadata(entry: bytes) -> BrokerEntryMetadata | None:
    """What the broker wrote in front; None if nothing, EntryError if it cannot be read."""
    end = _after_broker_metadata(entry)
    if not end:
        return None
    metadata = BrokerEntryMetadata()
    try:
        metadata.ParseFromString(entry[_MAGIC_AND_WORD:end])
    except DecodeError as error:
        raise EntryError(f"broker entry metadata: {error}") from None
    return metadata


def strip_broker_metadata(entry: bytes) -> bytes:
    """The entry as the producer sent it."""
    if not entry.startswith(_BROKER):  # nearly always: worth the line on the way of every message
        return entry
    return entry[_after_broker_metadata(entry) :]


def strip_checksum(entry: bytes) -> bytes:
    """The entry without its checksum, for consumers older than v11; broker metadata stays."""
    start = _after_broker_metadata(entry)
    if not entry.startswith(_CHECKSUM, start):
        return entry
    return entry[:start] + entry[start + _MAGIC_AND_WORD :]


def with_broker_metadata(entry: bytes, metadata: BrokerEntryMetadata) -> bytes:
    """The entry with `metadata` in front."""
    head = metadata.SerializeToString()
    return b"".join((_HEAD.pack(_BROKER, len(head)), head, entry))


def build(metadata: MessageMetadata, payload: bytes, *, checksum: bool = True) -> bytes:
    """A new entry, as a producer makes it."""
    encoded = metadata.SerializeToString()
    head = _U32.pack(len(encoded)) + encoded
    if not checksum:
        return head + payload
    return b"".join((_HEAD.pack(_CHECKSUM, crc32c(payload, crc32c(head))), head, payload))


def _after_broker_metadata(entry: bytes) -> int:
    """Where the producer's part begins; 0 if the broker wrote nothing, or nothing whole."""
    if not entry.startswith(_BROKER) or len(entry) < _MAGIC_AND_WORD:
        return 0
    (size,) = _U32.unpack_from(entry, 2)
    end: int = _MAGIC_AND_WORD + size
    return end if end <= len(entry) else 0


def _metadata_span(entry: bytes) -> tuple[int, int]:
    start = _after_broker_metadata(entry)
    if entry.startswith(_CHECKSUM, start):
        start += _MAGIC_AND_WORD
    start += 4
    if start > len(entry):
        raise EntryError(f"entry of {len(entry)} bytes has no metadata size")
    (size,) = _U32.unpack_from(entry, start - 4)
    end: int = start + size
    if end > len(entry):
        raise EntryError(f"metadata of {size} bytes is beyond its entry of {len(entry)}")
    return start, end
