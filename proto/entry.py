"""Read and write entries. An entry follows the command of a SEND and of a MESSAGE, and a ledger stores it.

    [u16 0x0e02][u32 size][BrokerEntryMetadata]   only when a broker wrote it (PIP-70)
    [u16 0x0e01][u32 CRC32C of all that follows]  absent when the client computes no checksum
    [u32 size][MessageMetadata][payload]

All numbers are big-endian. The bytes of an entry never change: no function here encodes its metadata again.
"""

from __future__ import annotations

import re
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c as _crc32c
from google.protobuf.message import DecodeError, EncodeError

from pulsarium.proto import batch, compression
from pulsarium.proto.errors import EntryError
from pulsarium.proto.generated.PulsarApi_pb2 import BrokerEntryMetadata, MessageMetadata


def crc32c(data: bytes | bytearray | memoryview, value: int = 0) -> int:
    """Return the checksum of `data`, 0 to 2^32 - 1. Pass the result as `value` to continue with more data."""
    return _crc32c(data, value)


_CHECKSUM = b"\x0e\x01"
_BROKER = b"\x0e\x02"
_MAGIC_AND_WORD = 6  # bytes of a magic number and the u32 behind it

_SEQUENCE_TAG = b"\x10"  # sequence_id, field 2: the second in every client's metadata
_TXN_TAG = b"\xb0\x01"  # txnid_least_bits, field 22
# Metadata that begins with producer_name (field 1, tag 0a) and nowhere has the tag of num_messages_in_batch (field 11:
# 58), deliver_at_time (field 19: 98 01), marker_type (field 20: a0 01), or a chunk's uuid (field 26: d2 01).
_PLAIN = re.compile(rb"\x0a[^\x58\x98\xa0\xd2]*+(?:[\x98\xa0\xd2](?!\x01)[^\x58\x98\xa0\xd2]*+)*+").fullmatch
# A number, and the fields between the producer's name and the key where no property stands: sequence_id, publish_time.
_NUMBER = rb"[\x80-\xff]{0,8}+[\0-\x7f]"
_TO_KEY = re.compile(rb"\x10%b\x18%b\x32" % (_NUMBER, _NUMBER)).match
# Fields behind the key that change neither the key nor the delivery: compression, uncompressed_size, event_time (fields
# 8, 9, 12), schema_version (16), partition_key_b64_encoded (17) if it is false, highest_sequence_id and null_value (24,
# 25).
_AFTER_KEY = re.compile(
    rb"(?:[\x40\x48\x60]%b|\x82\x01\x08.{8}|\x88\x01\0|[\xc0\xc8]\x01%b)*+" % (_NUMBER, _NUMBER), re.DOTALL
).fullmatch
_SMALL = 4096  # bytes that are copied sooner than a view of them is made

_U32 = Struct(">I")
_HEAD = Struct(">2sI")
_OPENING = Struct(">HIIBB").unpack_from  # magic, checksum, size of the metadata, its first tag, and a length
_CHECKED = int.from_bytes(_CHECKSUM, "big")


class EntryParts(NamedTuple):
    """The parts of an entry; `metadata_bytes` is a serialized MessageMetadata."""

    broker_metadata: BrokerEntryMetadata | None
    has_checksum: bool
    metadata_bytes: bytes
    payload: bytes


def checksum_matches(entry: bytes) -> bool | None:
    """Return whether the entry of a SEND fits its checksum, or None when it has no checksum.

    Raise `EntryError` for an entry that ends inside its checksum; Pulsar closes the connection. As in Pulsar, an entry
    that begins with broker entry metadata counts as one without checksum.
    """
    if entry.startswith(_CHECKSUM):
        size = len(entry)
        if size < _MAGIC_AND_WORD:
            raise EntryError(f"entry of {size} bytes ends inside its checksum")
        rest = entry if size <= _SMALL else memoryview(entry)
        return bool(_crc32c(rest[_MAGIC_AND_WORD:]) == _U32.unpack_from(entry, 2)[0])
    if len(entry) < 2:
        raise EntryError(f"an entry of {len(entry)} bytes is too short")
    return None


def read(entry: bytes) -> tuple[BrokerEntryMetadata | None, MessageMetadata, bytes]:
    """Return the broker entry metadata, the metadata and the payload of an entry that a consumer received.

    Raise `EntryError` when the entry is damaged, or does not fit its checksum.
    """
    broker_metadata = None
    if entry.startswith(_BROKER):  # rare, and four calls less for each other entry
        broker_metadata = parse_broker_metadata(entry)
        entry = strip_broker_metadata(entry)
    if checksum_matches(entry) is False:
        raise EntryError("the entry's checksum does not match")
    start, end = _metadata_span(entry)
    return broker_metadata, _parsed(entry[start:end]), entry[end:]


def parse_metadata(entry: bytes) -> MessageMetadata:
    """Return the metadata of an entry. Raise `EntryError` when it is damaged or lacks a required field."""
    start, end = _metadata_span(entry)
    return _parsed(entry[start:end])


def _parsed(encoded: bytes) -> MessageMetadata:
    try:
        metadata = MessageMetadata.FromString(encoded)
        metadata.SerializeToString()  # fails when a required field is absent; cheaper than IsInitialized
    except (DecodeError, EncodeError) as error:
        raise EntryError(f"message metadata: {error}") from None
    return metadata


def is_plain(entry: bytes) -> bool:
    """Return True when an entry surely is one whole message without a delay; on False, parse its metadata.

    The search for the tags of the fields replaces parsing: without the bytes of its tag, a field is absent. Metadata
    that begins as all clients write it then holds one message.
    """
    before = 0 if entry.startswith(_CHECKSUM) else _after_broker_metadata(entry)
    if len(entry) < before + 13:
        return False
    magic, _, size, _, length = _OPENING(entry, before)
    start = before + 10
    end, sequence = start + size, start + 2 + length
    if magic != _CHECKED or sequence >= end:
        return False
    return entry.startswith(_SEQUENCE_TAG, sequence) and _PLAIN(entry, start, end) is not None


def plain_key(entry: bytes) -> bytes | None:
    """Return the partition_key of an entry that surely is one whole message, or None, which asks for its metadata.

    As in `is_plain`, tags are searched for. The key is not encoded, and no ordering_key comes before it.
    """
    before = 0 if entry.startswith(_CHECKSUM) else _after_broker_metadata(entry)
    if len(entry) < before + 12:
        return None
    magic, _, size, tag, length = _OPENING(entry, before)
    start = before + 10
    end = start + size
    if magic != _CHECKED or tag != 0x0A or length > 0x7F or end > len(entry):
        return None
    found = _TO_KEY(entry, start + 2 + length, end)
    if found is None:
        return None
    first = found.end() + 1
    length = entry[first - 1]
    last = first + length
    if length > 0x7F or (last != end and _AFTER_KEY(entry, last, end) is None):
        return None
    key = entry[first:last]
    return key if key.isascii() else None


def visible_metadata(entry: bytes) -> MessageMetadata | None:
    """Return the metadata of an entry, or None for a marker or damaged metadata, which no client sees."""
    try:
        metadata = parse_metadata(entry)
    except EntryError:
        return None
    return None if metadata.HasField("marker_type") else metadata


def opens_at_once(metadata: MessageMetadata) -> bool:
    """Return whether one step of an event loop can decompress an entry and take it apart."""
    is_small = not metadata.compression or metadata.uncompressed_size <= compression.MOST_AT_ONCE
    return is_small and metadata.num_messages_in_batch <= batch.MOST_AT_ONCE


def messages_in(entry: bytes) -> int | None:
    """Return the number of messages in an entry, or None when no client sees the entry."""
    if is_plain(entry):
        return 1
    metadata = visible_metadata(entry)
    return None if metadata is None else metadata.num_messages_in_batch


def txn_bits_of(entry: bytes) -> tuple[int, int] | None:
    """Return the most and least bits of an entry's transaction, or None.

    Raise `EntryError` when the entry is damaged.
    """
    if entry.find(_TXN_TAG, *_metadata_span(entry)) < 0:
        return None
    metadata = parse_metadata(entry)
    if not (metadata.HasField("txnid_most_bits") and metadata.HasField("txnid_least_bits")):
        return None
    return metadata.txnid_most_bits, metadata.txnid_least_bits


def with_txn_bits(entry: bytes, most: int, least: int) -> bytes:
    """Return the entry with these transaction bits. They are appended: the last field of a number counts."""
    start, end = _metadata_span(entry)
    bits = MessageMetadata(txnid_most_bits=most, txnid_least_bits=least).SerializePartialToString()
    metadata = entry[start:end] + bits
    rest = b"".join((_U32.pack(len(metadata)), metadata, entry[end:]))
    before = entry[: start - 4]
    if entry.startswith(_CHECKSUM, _after_broker_metadata(entry)):
        before = before[:-_MAGIC_AND_WORD] + _HEAD.pack(_CHECKSUM, crc32c(rest))
    return before + rest


def payload_of(entry: bytes) -> bytes:
    """Return the payload: the message or batch, as the producer compressed and encrypted it."""
    return entry[payload_start(entry) :]


def payload_start(entry: bytes) -> int:
    """Return where the payload begins. Raise `EntryError` when the sizes of the entry do not fit."""
    return _metadata_span(entry)[1]


def split(entry: bytes) -> EntryParts:
    """Split an entry into its parts. Raise `EntryError` when its sizes do not fit."""
    start, end = _metadata_span(entry)
    has_checksum = entry.startswith(_CHECKSUM, _after_broker_metadata(entry))
    return EntryParts(parse_broker_metadata(entry), has_checksum, entry[start:end], entry[end:])


def parse_broker_metadata(entry: bytes) -> BrokerEntryMetadata | None:
    """Return the broker entry metadata, or None. Raise `EntryError` when it is damaged."""
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
    """Return the entry as the producer sent it."""
    if not entry.startswith(_BROKER):  # nearly always, on the path of each message
        return entry
    return entry[_after_broker_metadata(entry) :]


def strip_checksum(entry: bytes) -> bytes:
    """Return the entry without its checksum, for consumers older than v11. Broker entry metadata stays."""
    start = _after_broker_metadata(entry)
    if not entry.startswith(_CHECKSUM, start):
        return entry
    return entry[:start] + entry[start + _MAGIC_AND_WORD :]


def with_broker_metadata(entry: bytes, metadata: BrokerEntryMetadata) -> bytes:
    """Return the entry with broker entry metadata in front."""
    head = metadata.SerializeToString()
    return b"".join((_HEAD.pack(_BROKER, len(head)), head, entry))


def build(metadata: MessageMetadata, payload: bytes, *, checksum: bool = True) -> bytes:
    """Return a new entry, as a producer makes it."""
    encoded = metadata.SerializeToString()
    head = _U32.pack(len(encoded)) + encoded
    if not checksum:
        return head + payload
    return b"".join((_HEAD.pack(_CHECKSUM, crc32c(payload, crc32c(head))), head, payload))


def _after_broker_metadata(entry: bytes) -> int:
    """Return the offset of the producer's part, or 0 without complete broker entry metadata."""
    if not entry.startswith(_BROKER) or len(entry) < _MAGIC_AND_WORD:
        return 0
    (size,) = _U32.unpack_from(entry, 2)
    end: int = _MAGIC_AND_WORD + size
    return end if end <= len(entry) else 0


def _metadata_span(entry: bytes) -> tuple[int, int]:
    start = 0 if entry.startswith(_CHECKSUM) else _after_broker_metadata(entry)  # a call less for most entries
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
