"""Which key a message has, and where that key stands (B-08, B-09)."""

from __future__ import annotations

import binascii

import mmh3

from pulsarium.broker.model.ledger.position import signed
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import text_of

NONE_KEY = b"NONE_KEY"  # of a message that has nothing to tell it by


def hash_of(key: str | bytes) -> int:
    """Murmur3 32, seed 0, without the sign: the hash of every ring in Pulsar."""
    return mmh3.hash(key, 0, signed=False) & 0x7FFFFFFF


def sticky_hash(key: bytes, start: int, size: int) -> int:
    """Where a key stands among `size` hashes from `start` on. Never 0, which means "no hash" in Pulsar."""
    return hash_of(key) % size + start or 1


def key_of(metadata: pb.MessageMetadata) -> bytes:
    """The key that Key_Shared goes by; of a batch, its own metadata counts, not those of the messages in it."""
    if metadata.HasField("ordering_key"):
        return metadata.ordering_key
    if metadata.HasField("partition_key"):
        key = text_of(metadata.partition_key).encode()
        return _decoded(key) if metadata.partition_key_b64_encoded else key
    if metadata.HasField("producer_name") and metadata.HasField("sequence_id"):
        return b"%b-%d" % (text_of(metadata.producer_name).encode(), signed(metadata.sequence_id))
    return NONE_KEY


def _decoded(key: bytes) -> bytes:
    """Base64, with or without its padding. A key that is none counts as no key."""
    padding = b"" if key.endswith(b"=") else b"=" * (-len(key) % 4)
    try:
        return binascii.a2b_base64(key + padding, strict_mode=True)
    except binascii.Error:
        return NONE_KEY
