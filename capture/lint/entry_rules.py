"""Rules of entries: what a SEND carries, and what it says of it."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator

from pulsarium.capture.lint.frames import Frame
from pulsarium.capture.lint.rule import Severity, rule
from pulsarium.capture.lint.state import State
from pulsarium.proto.commands import Direction
from pulsarium.proto.entry import checksum_matches, parse_metadata, strip_broker_metadata
from pulsarium.proto.errors import EntryError

_CARRY_ENTRIES = ["SEND", "MESSAGE"]
_PAYLOAD = "Binary protocol: payload commands"
_METADATA = "PulsarApi.proto: MessageMetadata"
_MILLISECONDS = range(10**11, 10**14)
"""From 1973 to 5138; what is outside was counted in other units."""


@rule(
    "checksum-wrong",
    "An entry fits its CRC32C.",
    _PAYLOAD,
    "Compute CRC32C (Castagnoli) over all that follows it: the metadata's size, the metadata and the payload.",
    on=_CARRY_ENTRIES,
    about=Direction.BOTH,
)
def _checksum(state: State, frame: Frame) -> Iterator[str]:
    if not frame.whole:
        return
    try:
        entry = frame.entry if frame.name == "SEND" else strip_broker_metadata(frame.entry)
        if checksum_matches(entry) is False:
            yield f"the entry of {frame.name} does not fit its checksum"
    except EntryError:
        return  # that is for the next rule


@rule(
    "entry-unreadable",
    "An entry begins with its metadata.",
    _PAYLOAD,
    "Write the metadata's size and a MessageMetadata with all required fields: brokers keep what nobody can read.",
    on=_CARRY_ENTRIES,
    about=Direction.BOTH,
)
def _entry(state: State, frame: Frame) -> Iterator[str]:
    if frame.whole:
        try:
            parse_metadata(frame.entry)
        except EntryError as error:
            yield str(error)


@rule(
    "num-messages-mismatch",
    "num_messages of SEND is num_messages_in_batch of its entry.",
    "PulsarApi.proto: CommandSend.num_messages",
    "Set num_messages of every batch: statistics and message indexes are counted by it.",
    on=["SEND"],
)
def _count(state: State, frame: Frame) -> Iterator[str]:
    metadata = state.sent(frame).metadata
    if metadata is not None and frame.body.num_messages != metadata.num_messages_in_batch:
        yield f"num_messages {frame.body.num_messages}, and the entry has {metadata.num_messages_in_batch}"


@rule(
    "sequence-mismatch",
    "sequence_id of SEND is sequence_id of its entry.",
    "PIP-6: a broker that restarts reads the sequence ids from its entries",
    "Write the same sequence id into both.",
    on=["SEND"],
)
def _sequence(state: State, frame: Frame) -> Iterator[str]:
    metadata = state.sent(frame).metadata
    if metadata is not None and metadata.sequence_id != frame.sequence_id and not metadata.replicated_from:
        yield f"sequence_id {frame.sequence_id}, and the entry has {metadata.sequence_id}"


@rule(
    "producer-name-mismatch",
    "producer_name of an entry is the name that its producer has.",
    "PIP-6; PIP-37: deduplication and chunks are by the producer's name",
    "Write the name of PRODUCER_SUCCESS.",
    on=["SEND"],
)
def _name(state: State, frame: Frame) -> Iterator[str]:
    metadata, producer = state.sent(frame).metadata, state.producer(frame)
    if metadata is None or producer is None or not producer.name or metadata.replicated_from:
        return
    if metadata.producer_name != producer.name:
        yield f"producer_name {metadata.producer_name[:100]!r}, and the producer is {producer.name!r}"


@rule(
    "publish-time-unit",
    "publish_time is milliseconds since 1970.",
    f"{_METADATA}.publish_time",
    "Stamp messages in milliseconds: message expiry and seek by time go by it.",
    on=["SEND"],
)
def _publish_time(state: State, frame: Frame) -> Iterator[str]:
    metadata = state.sent(frame).metadata
    if metadata is not None and metadata.publish_time not in _MILLISECONDS:
        yield f"publish_time {metadata.publish_time}"


@rule(
    "deliver-at-unit",
    "deliver_at_time is milliseconds since 1970.",
    f"{_METADATA}.deliver_at_time; PIP-26",
    "A delay is added to the time of now, in milliseconds.",
    on=["SEND"],
)
def _deliver_at(state: State, frame: Frame) -> Iterator[str]:
    metadata = state.sent(frame).metadata
    if metadata is not None and metadata.HasField("deliver_at_time") and metadata.deliver_at_time not in _MILLISECONDS:
        yield f"deliver_at_time {metadata.deliver_at_time}"


@rule(
    "message-too-big",
    "A payload has at most max_message_size of CONNECTED.",
    "broker.conf maxMessageSize; PIP-36",
    "Refuse it, or cut it into chunks (PIP-37): only the frame's head room may be used beyond that.",
    on=["SEND"],
    severity=Severity.WARNING,
)
def _size(state: State, frame: Frame) -> Iterator[str]:
    most, size = state.conversation.max_message_size, len(state.sent(frame).payload)
    if most is not None and size > most:
        yield f"a payload of {size} bytes, and {most} are allowed"


@rule(
    "compression-wrong",
    "A compressed payload gives uncompressed_size bytes.",
    f"{_METADATA}.uncompressed_size; Pulsar's CompressionCodec",
    "Write raw LZ4 blocks, zlib streams, zstd frames or raw Snappy, and the size before compression.",
    on=["SEND"],
)
def _compression(state: State, frame: Frame) -> Iterator[str]:
    wrong = state.sent(frame).wrong_compression
    if wrong:
        yield wrong


@rule(
    "batch-unreadable",
    "A batch holds the messages that num_messages_in_batch counts.",
    "Binary protocol: batched messages",
    "Write size, SingleMessageMetadata and payload of each; leave num_messages_in_batch out of a message alone.",
    on=["SEND"],
)
def _batch(state: State, frame: Frame) -> Iterator[str]:
    wrong = state.sent(frame).wrong_batch
    if wrong:
        yield wrong


@rule(
    "key-not-base64",
    "partition_key_b64_encoded says that the key is base64.",
    f"{_METADATA}.partition_key_b64_encoded",
    "Encode keys of bytes; leave the flag out for keys of text.",
    on=["SEND"],
)
def _key(state: State, frame: Frame) -> Iterator[str]:
    for metadata, _ in state.sent(frame).messages:
        if metadata.partition_key_b64_encoded and metadata.HasField("partition_key"):
            try:
                base64.b64decode(metadata.partition_key, validate=True)
            except (binascii.Error, ValueError):
                yield f"the key {metadata.partition_key[:100]!r}"
                return


@rule(
    "null-with-payload",
    "A message with null_value has no payload.",
    f"{_METADATA}.null_value; PIP-14",
    "Set null_value only for null: readers do not look at the payload then.",
    on=["SEND"],
)
def _null(state: State, frame: Frame) -> Iterator[str]:
    for metadata, payload in state.sent(frame).messages:
        if metadata.null_value and payload:
            yield f"null_value, and a payload of {len(payload)} bytes"
            return


@rule(
    "marker-from-client",
    "marker_type is for entries that a broker writes itself.",
    f"{_METADATA}.marker_type; PIP-31; PIP-33",
    "Leave it out: no consumer is ever sent a marker.",
    on=["SEND"],
)
def _marker(state: State, frame: Frame) -> Iterator[str]:
    metadata = state.sent(frame).metadata
    if metadata is not None and metadata.HasField("marker_type"):
        yield f"marker_type {metadata.marker_type}"


@rule(
    "encryption-incomplete",
    "An encrypted entry has its keys, each with a value, and the nonce in encryption_param.",
    "PIP-4; PulsarApi.proto: EncryptionKeys",
    "Write both: without the nonce nobody can decrypt, without keys nobody tries to.",
    on=["SEND"],
)
def _encryption(state: State, frame: Frame) -> Iterator[str]:
    metadata = state.sent(frame).metadata
    if metadata is None:
        return
    if metadata.encryption_keys and not metadata.encryption_param:
        yield "encryption_keys without encryption_param"
    if metadata.encryption_param and not metadata.encryption_keys:
        yield "encryption_param without encryption_keys"
    for each in metadata.encryption_keys:
        if not each.value:
            yield f"an empty value of the key {each.key[:100]!r}"
