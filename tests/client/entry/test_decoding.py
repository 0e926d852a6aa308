"""Decoding of entries: checksum, decryption, decompression, and unacknowledged messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.client.entry.crypto import ConsumerCryptoFailureAction
from pulsarium.client.entry.decoding import Decoded, Decoder, RawDecoder, Single, UnreadableEntry, join, messages
from pulsarium.client.entry.encoding import Encoder
from pulsarium.client.entry.encryption import MessageEncryptor
from pulsarium.client.errors import CryptoError
from pulsarium.proto import entry as entries
from pulsarium.proto.compression import compress
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.entry.encrypted import KINDS, Keys, Recorded, private_pem, recorded

KINDS_OF_COMPRESSION = (pb.NONE, pb.LZ4, pb.ZLIB, pb.ZSTD, pb.SNAPPY)
KEYS = Keys()
ENCODERS = {
    (compression, names): Encoder(compression, names, KEYS)
    for compression in KINDS_OF_COMPRESSION
    for names in [(), *((kind,) for kind in KINDS)]
}
DECODER = Decoder(KEYS)

DISCARD = ConsumerCryptoFailureAction.DISCARD
CONSUME = ConsumerCryptoFailureAction.CONSUME


def new_metadata(**fields: Any) -> pb.MessageMetadata:
    return pb.MessageMetadata(producer_name="p", sequence_id=0, publish_time=1, **fields)


def a_batch(count: int, *, compacted_out: Sequence[int] = (), encoder: Encoder | None = None) -> bytes:
    singles = [
        (pb.SingleMessageMetadata(partition_key=f"k{index}", compacted_out=index in compacted_out), b"%d" % index)
        for index in range(count)
    ]
    return (encoder or Encoder()).batch(new_metadata(), singles)


def indexes(found: list[Single]) -> list[int]:
    return [index for index, _, _ in found]


@pytest.mark.req("S429-27")
@given(st.sampled_from(list(ENCODERS)), st.binary(max_size=300))
def test_round_trip_of_a_single_message(kind: Any, payload: bytes) -> None:
    decoded = DECODER.decode(ENCODERS[kind].single(new_metadata(partition_key="k"), payload))
    assert messages(decoded) == [(-1, None, payload)]
    assert decoded.metadata.partition_key == "k"
    assert not decoded.is_chunk


@pytest.mark.req("S429-27")
@given(st.sampled_from(list(ENCODERS)), st.lists(st.binary(max_size=60), max_size=8))
def test_round_trip_of_a_batch(kind: Any, payloads: list[bytes]) -> None:
    singles = [(pb.SingleMessageMetadata(partition_key=str(n)), payload) for n, payload in enumerate(payloads)]
    found = messages(DECODER.decode(ENCODERS[kind].batch(new_metadata(), singles)))
    assert found == [(index, single, payload) for index, (single, payload) in enumerate(singles)]


@pytest.mark.req("S429-27")
@pytest.mark.parametrize("record", recorded(), ids=str)
def test_recorded_entries_of_official_clients_are_decoded(record: Recorded) -> None:

    class Reader(Keys):
        def get_private_key(self, name: str, metadata: dict[str, str]) -> bytes:
            return private_pem(record.key)

    decoder = Decoder(Reader())
    found = [single for entry in record.entries for single in messages(decoder.decode(entry))]
    assert [payload for _, _, payload in found] == record.messages
    assert indexes(found) == ([0, 1] if record.batched else [-1, -1])


@pytest.mark.req("S429-27")
def test_compressed_after_it_was_encrypted() -> None:
    """The draft of the PIP has this order, which no client implements (X-20)."""
    metadata = new_metadata(compression=pb.LZ4, uncompressed_size=100 + 16)
    sealed = MessageEncryptor(["rsa"], KEYS.get_public_key, 0.0).encrypt(metadata, bytes(100), 0.0)
    with pytest.raises(CryptoError, match="damaged"):
        DECODER.decode(entries.build(metadata, compress(pb.LZ4, sealed)))


@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("in_front", [None, pb.BrokerEntryMetadata(index=7)])
def test_entries_are_decoded_with_any_headers(checksum: bool, in_front: pb.BrokerEntryMetadata | None) -> None:
    entry = entries.build(new_metadata(), b"x", checksum=checksum)
    decoded = DECODER.decode(entry if in_front is None else entries.with_broker_metadata(entry, in_front))
    assert decoded == Decoded(new_metadata(), b"x", in_front)


@given(st.integers(16, 8 * len(entries.build(new_metadata(), b"x")) - 1))
def test_a_wrong_bit_is_found(bit: int) -> None:
    entry = bytearray(entries.build(new_metadata(), b"x"))
    entry[bit // 8] ^= 1 << bit % 8
    with pytest.raises(UnreadableEntry, match="checksum") as caught:
        DECODER.decode(bytes(entry))
    assert caught.value.validation_error == pb.CommandAck.ChecksumMismatch


@given(st.binary(max_size=60))
def test_garbage_is_an_unreadable_entry(data: bytes) -> None:
    with pytest.raises(UnreadableEntry):
        DECODER.decode(data)


@pytest.mark.parametrize("size", [0, 99, 101])
def test_a_payload_that_does_not_decompress_is_unreadable(size: int) -> None:
    metadata = new_metadata(compression=pb.ZLIB, uncompressed_size=size, num_messages_in_batch=4)
    with pytest.raises(UnreadableEntry) as caught:
        DECODER.decode(entries.build(metadata, compress(pb.ZLIB, bytes(100))))
    assert caught.value.validation_error == pb.CommandAck.DecompressionError


def test_no_batch_where_the_metadata_says_so() -> None:
    decoded = DECODER.decode(entries.build(new_metadata(num_messages_in_batch=3), b"no batch"))
    with pytest.raises(UnreadableEntry) as caught:
        messages(decoded)
    assert caught.value.validation_error == pb.CommandAck.BatchDeSerializeError


@pytest.mark.req("S429-20")
def test_messages_removed_by_compaction_are_left_out() -> None:
    found = messages(DECODER.decode(a_batch(4, compacted_out=[0, 2])))
    assert indexes(found) == [1, 3]
    assert [payload for _, _, payload in found] == [b"1", b"3"]


@pytest.mark.parametrize(
    ("ack_set", "left"),
    [
        ([], range(70)),
        ([-1, -1], range(70)),
        ([0b101], [0, 2]),
        ([0, 1], [64]),
        ([-(2**63), 0b11], [63, 64, 65]),
        ([0], []),
    ],
)
def test_acknowledged_messages_of_a_batch_are_left_out(ack_set: list[int], left: Sequence[int]) -> None:
    """Java's BitSet has no bit set beyond its words."""
    assert indexes(messages(DECODER.decode(a_batch(70)), ack_set)) == list(left)


def test_an_ack_set_says_nothing_of_a_message_without_batch() -> None:
    assert messages(DECODER.decode(Encoder().single(new_metadata(), b"x")), [0]) == [(-1, None, b"x")]


# ---- Messages that cannot be decrypted


class NoKeys(Keys):
    def get_private_key(self, name: str, metadata: dict[str, str]) -> bytes:
        raise KeyError(name)


UNABLE = pytest.mark.parametrize("reader", [None, NoKeys()], ids=["no reader", "no key"])


@UNABLE
def test_fail_raises_what_cannot_be_decrypted(reader: Keys | None) -> None:
    text = (
        "no key decrypts this message: rsa: " if reader else "encrypted for rsa: give the consumer or reader a crypto"
    )
    with pytest.raises(CryptoError, match=text):
        Decoder(reader).decode(a_batch(3, encoder=ENCODERS[pb.LZ4, ("rsa",)]))


@UNABLE
def test_discard_makes_what_cannot_be_decrypted_unreadable(reader: Keys | None) -> None:
    with pytest.raises(UnreadableEntry, match="rsa") as caught:
        Decoder(reader, crypto_failure_action=DISCARD).decode(a_batch(3, encoder=ENCODERS[pb.LZ4, ("rsa",)]))
    assert caught.value.validation_error == pb.CommandAck.DecryptionError


@UNABLE
def test_consume_gives_what_cannot_be_decrypted_as_it_is(reader: Keys | None) -> None:
    """A batch becomes one message with its encrypted payload. The metadata has all that decryption needs."""
    entry = a_batch(3, encoder=ENCODERS[pb.LZ4, ("rsa",)])
    decoded = Decoder(reader, crypto_failure_action=CONSUME).decode(entry)
    assert decoded.still_encrypted
    assert messages(decoded, [0]) == [(-1, None, entries.payload_of(entry))]
    assert decoded.metadata.num_messages_in_batch == 3
    assert decoded.metadata.encryption_keys[0].key == "rsa"


@pytest.mark.parametrize("action", list(ConsumerCryptoFailureAction))
def test_plain_messages_need_no_keys(action: ConsumerCryptoFailureAction) -> None:
    decoder = Decoder(None, crypto_failure_action=action)
    assert messages(decoder.decode(Encoder().single(new_metadata(), b"x"))) == [(-1, None, b"x")]


# ---- chunks


@pytest.mark.parametrize("reader", [None, KEYS])
def test_a_name_that_is_no_text(reader: Keys | None) -> None:
    key = pb.EncryptionKeys(key="?", value=b"v", metadata=[{"key": "?", "value": "?"}])
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=0, publish_time=1, encryption_keys=[key])
    encoded = metadata.SerializeToString().replace(b"?", b"\xff")
    with pytest.raises(CryptoError, match="\ufffd"):
        Decoder(reader).decode(len(encoded).to_bytes(4, "big") + encoded)


@pytest.mark.parametrize("names", [(), ("ec",)])
@pytest.mark.parametrize("compression", [pb.NONE, pb.ZSTD])
def test_chunks_are_joined_and_decompressed_as_a_whole(compression: pb.CompressionType, names: tuple[str, ...]) -> None:
    """A chunked message is compressed as a whole, then cut, and each chunk is encrypted (PIP-37)."""
    whole = bytes(range(256)) * 10
    packed = compress(compression, whole)
    pieces = [packed[:100], packed[100:200], packed[200:]]
    encoder = Encoder(pb.NONE, names, KEYS)
    chunks = []
    for number, piece in enumerate(pieces):
        metadata = new_metadata(uuid="u", num_chunks_from_msg=3, total_chunk_msg_size=len(packed), chunk_id=number)
        metadata.compression, metadata.uncompressed_size = compression, len(whole)
        chunks.append(DECODER.decode(encoder.single(metadata, piece)))
    assert all(chunk.is_chunk for chunk in chunks)
    assert [chunk.payload for chunk in chunks] == pieces
    assert messages(join(chunks)) == [(-1, None, whole)]
    if compression != pb.NONE:
        with pytest.raises(UnreadableEntry):
            join(chunks[:2])


# ---- Payload processors (PIP-96)


class Halves:
    """A format of the application: two halves, of which compaction removed the second."""

    def process(self, metadata: pb.MessageMetadata, payload: bytes) -> list[Single]:
        middle = len(payload) // 2
        removed = pb.SingleMessageMetadata(compacted_out=metadata.partition_key == "compacted")
        return [(0, None, payload[:middle]), (1, removed, payload[middle:])]


@pytest.mark.req("S429-25")
@pytest.mark.parametrize("kind", ENCODERS, ids=str)
def test_a_processor_of_ones_own(kind: Any) -> None:
    """The processor gets a decrypted and decompressed payload. The ack set and compaction apply to its messages too."""
    decoded = DECODER.decode(ENCODERS[kind].single(new_metadata(), b"onetwo"))
    assert [payload for _, _, payload in messages(decoded, processor=Halves())] == [b"one", b"two"]
    assert indexes(messages(decoded, [0b10], Halves())) == [1]
    decoded.metadata.partition_key = "compacted"
    assert indexes(messages(decoded, processor=Halves())) == [0]


def test_the_error_of_a_payload_processor_is_raised() -> None:
    class Failing:
        def process(self, metadata: pb.MessageMetadata, payload: bytes) -> list[Single]:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        messages(DECODER.decode(Encoder().single(new_metadata(), b"x")), processor=Failing())


def test_a_processor_is_not_given_what_is_still_encrypted() -> None:
    entry = ENCODERS[pb.NONE, ("rsa",)].single(new_metadata(), b"x")
    decoded = Decoder(None, crypto_failure_action=CONSUME).decode(entry)
    assert messages(decoded, processor=Halves()) == [(-1, None, entries.payload_of(entry))]


@pytest.mark.parametrize("in_front", [None, pb.BrokerEntryMetadata(index=7)])
def test_a_raw_entry_is_one_message_whatever_is_in_it(in_front: pb.BrokerEntryMetadata | None) -> None:
    for entry in (
        a_batch(3, encoder=ENCODERS[pb.LZ4, ("rsa",)]),
        entries.build(new_metadata(num_chunks_from_msg=2, uuid="u"), b"x"),
        entries.build(new_metadata(), b"x")[:-1] + b"y",
    ):
        whole = entry if in_front is None else entries.with_broker_metadata(entry, in_front)
        decoded = RawDecoder().decode(whole)
        assert messages(decoded) == [(-1, None, whole)]
        assert decoded.broker_metadata == in_front
        assert not decoded.is_chunk
    with pytest.raises(UnreadableEntry):
        RawDecoder().decode(b"\x0e\x01")
