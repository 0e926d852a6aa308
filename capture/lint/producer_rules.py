"""Rules of producers at work, and of their entries and chunks."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator

from pulsarium.capture.lint.frames import Frame
from pulsarium.capture.lint.members import Consumer, Phase, Producer
from pulsarium.capture.lint.rule import Section, Severity
from pulsarium.capture.lint.state import LintedConnection
from pulsarium.proto.commands import Direction
from pulsarium.proto.entry import checksum_matches, parse_metadata, strip_broker_metadata
from pulsarium.proto.errors import EntryError

_PRODUCER = "Binary protocol: producer"
_NOTICED_NS = 1_000_000_000
"""Time after which a client should know the broker's last command."""


def close_ignored(frame: Frame, used: Producer | Consumer | None, name: str) -> Iterator[str]:
    """Yield a detail when a client uses a producer or consumer that its broker closed some time ago."""
    if used is not None and used.phase is Phase.CLOSED_BY_BROKER:
        since = frame.record.monotonic_ns - used.closed_ns
        if since >= _NOTICED_NS:
            yield f"{frame.name} for {name}, which its broker closed {since / 1e9:.1f} s ago"


PRODUCER_RULES = Section("Rules of producers at work: SEND, ids and receipts", on=["SEND"])


@PRODUCER_RULES(
    "unknown-producer",
    "SEND names a producer of its connection.",
    _PRODUCER,
    "Keep producer ids for each connection: the broker closes a connection that uses others.",
)
def _send_unknown(state: LintedConnection, frame: Frame) -> Iterator[str]:
    producer = state.producer(frame)
    if producer is None and state.producers.whole:
        yield f"{frame.name} for producer {frame.producer_id}, which was never opened"
    elif producer is not None and producer.phase is Phase.CLOSED_BY_CLIENT:
        yield f"{frame.name} for producer {frame.producer_id}, which its client had closed"


@PRODUCER_RULES(
    "send-before-ready",
    "A producer sends after PRODUCER_SUCCESS with producer_ready.",
    "PIP-68",
    "Wait for PRODUCER_SUCCESS with producer_ready: WaitForExclusive may take forever.",
)
def _send_ready(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if (producer := state.producer(frame)) is not None and producer.phase is Phase.OPENING:
        yield f"SEND for producer {frame.producer_id}, which is not ready"


@PRODUCER_RULES(
    "send-after-close",
    "A producer sends no message after its CLOSE_PRODUCER.",
    _PRODUCER,
    "Flush first, then close.",
)
def _send_after_close(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if (
        (producer := state.producer(frame)) is not None
        and producer.closing
        and producer.phase is not Phase.CLOSED_BY_CLIENT
    ):
        yield f"SEND of sequence {frame.sequence_id} after CLOSE_PRODUCER of producer {frame.producer_id}"


@PRODUCER_RULES(
    "producer-close-ignored",
    "A client reopens a producer that the broker closed before sending.",
    "Binary protocol: CLOSE_PRODUCER from a broker",
    "React to CLOSE_PRODUCER: look up the topic and reopen the producer. The broker drops messages sent meanwhile.",
)
def _send_close_ignored(state: LintedConnection, frame: Frame) -> Iterator[str]:
    yield from close_ignored(frame, state.producer(frame), f"producer {frame.producer_id}")


@PRODUCER_RULES(
    "closed-twice",
    "A client closes a producer or consumer once, on its own connection.",
    "PulsarApi.proto: CommandCloseProducer, CommandCloseConsumer, CommandUnsubscribe",
    "Forget a producer or consumer when you close it: brokers answer SUCCESS even for unknown ones.",
    on=["CLOSE_PRODUCER", "CLOSE_CONSUMER", "UNSUBSCRIBE"],
    severity=Severity.WARNING,
)
def _send_twice(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if frame.sender is not Direction.CLIENT:
        return
    if frame.name == "CLOSE_PRODUCER":
        producer = state.producer(frame)
        never, ended = producer is None and state.producers.whole, producer is not None and producer.closing
    else:
        consumer = state.consumer(frame)
        never, ended = (
            consumer is None and state.consumers.whole,
            consumer is not None and consumer.ending == frame.name,
        )
        if frame.name == "UNSUBSCRIBE" and (consumer is None or consumer.phase is Phase.CLOSED_BY_CLIENT):
            return  # this is refused, and the rule unknown-consumer reports it
    if never or ended:
        yield f"a second {frame.name}" if ended else f"{frame.name} for an id that was never opened"


@PRODUCER_RULES(
    "sequence-goes-back",
    "The sequence ids of a producer increase, unless the application chose its name.",
    "PIP-6",
    "Number messages in the order of sending. After an error, resend all messages from the failed one on.",
)
def _send_sequence(state: LintedConnection, frame: Frame) -> Iterator[str]:
    producer = state.producer(frame)
    if producer is None or producer.named_by_application:
        return  # an application that names its producer may resend messages, which deduplication drops
    if (frame.sequence_id or 0) < producer.last_sequence:  # equal: the chunks of a message share one
        yield f"sequence {frame.sequence_id} after {producer.last_sequence}"


@PRODUCER_RULES(
    "highest-sequence-low",
    "highest_sequence_id is the last sequence id of a batch, never below sequence_id.",
    "PulsarApi.proto: CommandSend.highest_sequence_id",
    "Set highest_sequence_id of a batch to its last sequence id, or omit it: brokers ignore a lower one.",
)
def _send_highest(state: LintedConnection, frame: Frame) -> Iterator[str]:
    body = frame.body
    # some clients write 0 for none
    if body.HasField("highest_sequence_id") and 0 < body.highest_sequence_id < body.sequence_id:
        yield f"highest_sequence_id {body.highest_sequence_id} of sequence {body.sequence_id}"


@PRODUCER_RULES(
    "receipt-of-nothing",
    "SEND_RECEIPT and SEND_ERROR name a SEND that waits for its receipt.",
    _PRODUCER,
    "Answer with the ids of the SEND.",
    on=["SEND_RECEIPT", "SEND_ERROR"],
    about=Direction.BROKER,
)
def _send_receipt(state: LintedConnection, frame: Frame) -> Iterator[str]:
    producer = state.producer(frame)
    # Messages in flight when the broker closed the producer may get receipts later, even after it is reopened.
    closing = producer is not None and producer.phase in (Phase.OPENING, Phase.CLOSED_BY_BROKER)
    if state.matcher.request_of(frame) is None and not closing:
        yield f"{frame.name} for sequence {frame.sequence_id} of producer {frame.producer_id}, which is not waiting"


@PRODUCER_RULES(
    "receipts-out-of-order",
    "The receipts of a producer have the order of its SENDs.",
    _PRODUCER,
    "Send receipts in the order of the SENDs.",
    on=["SEND_RECEIPT"],
    about=Direction.BROKER,
)
def _send_order(state: LintedConnection, frame: Frame) -> Iterator[str]:
    request = state.matcher.request_of(frame)
    if request is not None:
        oldest = state.matcher.oldest_send(frame.producer_id) or request
        if oldest.number < request.number and (oldest.sequence_id or 0) < (request.sequence_id or 0):
            yield f"the receipt of sequence {frame.sequence_id} before that of {oldest.sequence_id}"


_CARRY_ENTRIES = ["SEND", "MESSAGE"]
_PAYLOAD = "Binary protocol: payload commands"
_METADATA = "PulsarApi.proto: MessageMetadata"
_MILLISECONDS = range(10**11, 10**14)
"""Years 1973 to 5138. A time outside this range has another unit."""


ENTRY_RULES = Section("Rules of entries: the contents of SEND, and its fields about them", on=["SEND"])


@ENTRY_RULES(
    "checksum-wrong",
    "An entry matches its CRC32C.",
    _PAYLOAD,
    "Compute CRC32C (Castagnoli) over everything after it: the metadata's size, the metadata and the payload.",
    on=_CARRY_ENTRIES,
    about=Direction.BOTH,
)
def _entry_checksum(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if not frame.whole:
        return
    try:
        entry = frame.entry if frame.name == "SEND" else strip_broker_metadata(frame.entry)
        if checksum_matches(entry) is False:
            yield f"the entry of {frame.name} does not match its checksum"
    except EntryError:
        return  # the next rule reports this


@ENTRY_RULES(
    "entry-unreadable",
    "An entry begins with its metadata.",
    _PAYLOAD,
    "Write the metadata's size and a MessageMetadata with all required fields: brokers store unreadable entries, too.",
    on=_CARRY_ENTRIES,
    about=Direction.BOTH,
)
def _entry_entry(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if frame.whole:
        try:
            parse_metadata(frame.entry)
        except EntryError as error:
            yield str(error)


@ENTRY_RULES(
    "num-messages-mismatch",
    "num_messages of SEND equals num_messages_in_batch of its entry.",
    "PulsarApi.proto: CommandSend.num_messages",
    "Set num_messages of every batch: brokers count statistics and message indexes by it.",
)
def _entry_count(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if (
        metadata := state.sent(frame).metadata
    ) is not None and frame.body.num_messages != metadata.num_messages_in_batch:
        yield f"num_messages {frame.body.num_messages}, but the entry has {metadata.num_messages_in_batch}"


@ENTRY_RULES(
    "sequence-mismatch",
    "sequence_id of SEND equals sequence_id of its entry.",
    "PIP-6: a broker that restarts reads the sequence ids from its entries",
    "Write the same sequence id into both.",
)
def _entry_sequence(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if (
        (metadata := state.sent(frame).metadata) is not None
        and metadata.sequence_id != frame.sequence_id
        and not metadata.replicated_from
    ):
        yield f"sequence_id {frame.sequence_id}, but the entry has {metadata.sequence_id}"


@ENTRY_RULES(
    "producer-name-mismatch",
    "producer_name of an entry is its producer's name.",
    "PIP-6; PIP-37: deduplication and chunks depend on the producer's name",
    "Write the name of PRODUCER_SUCCESS.",
)
def _entry_name(state: LintedConnection, frame: Frame) -> Iterator[str]:
    metadata, producer = state.sent(frame).metadata, state.producer(frame)
    if metadata is None or producer is None or not producer.name or metadata.replicated_from:
        return
    if metadata.producer_name != producer.name:
        yield f"producer_name {metadata.producer_name[:100]!r}, but the producer is {producer.name!r}"


@ENTRY_RULES(
    "publish-time-unit",
    "publish_time is in milliseconds since the epoch.",
    f"{_METADATA}.publish_time",
    "Set publish_time in milliseconds: message expiry and seek by time use it.",
)
def _entry_publish_time(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if (metadata := state.sent(frame).metadata) is not None and metadata.publish_time not in _MILLISECONDS:
        yield f"publish_time {metadata.publish_time}"


@ENTRY_RULES(
    "deliver-at-unit",
    "deliver_at_time is in milliseconds since the epoch.",
    f"{_METADATA}.deliver_at_time; PIP-26",
    "Add the delay to the current time, in milliseconds.",
)
def _entry_deliver_at(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if (
        (metadata := state.sent(frame).metadata) is not None
        and metadata.HasField("deliver_at_time")
        and metadata.deliver_at_time not in _MILLISECONDS
    ):
        yield f"deliver_at_time {metadata.deliver_at_time}"


@ENTRY_RULES(
    "message-too-big",
    "A payload has at most max_message_size of CONNECTED.",
    "broker.conf maxMessageSize; PIP-36",
    "Refuse a larger payload, or split it into chunks (PIP-37): the frame's extra room is for headers.",
    severity=Severity.WARNING,
)
def _entry_size(state: LintedConnection, frame: Frame) -> Iterator[str]:
    most, size = state.conversation.max_message_size, len(state.sent(frame).payload)
    if most is not None and size > most:
        yield f"a payload of {size} bytes, more than the {most} allowed"


@ENTRY_RULES(
    "compression-wrong",
    "A compressed payload decompresses to uncompressed_size bytes.",
    f"{_METADATA}.uncompressed_size; Pulsar's CompressionCodec",
    "Write raw LZ4 blocks, zlib streams, zstd frames or raw Snappy, and the size before compression.",
)
def _entry_compression(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if wrong := state.sent(frame).wrong_compression:
        yield wrong


@ENTRY_RULES(
    "batch-unreadable",
    "A batch holds the messages that num_messages_in_batch counts.",
    "Binary protocol: batched messages",
    "Write size, SingleMessageMetadata and payload of each; omit num_messages_in_batch for a message outside a batch.",
)
def _entry_batch(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if wrong := state.sent(frame).wrong_batch:
        yield wrong


@ENTRY_RULES(
    "key-not-base64",
    "With partition_key_b64_encoded, the key is base64.",
    f"{_METADATA}.partition_key_b64_encoded",
    "Encode keys of bytes, and omit the flag for keys of text.",
)
def _entry_key(state: LintedConnection, frame: Frame) -> Iterator[str]:
    for metadata, _ in state.sent(frame).messages:
        if metadata.partition_key_b64_encoded and metadata.HasField("partition_key"):
            try:
                base64.b64decode(metadata.partition_key, validate=True)
            except (binascii.Error, ValueError):
                yield f"the key {metadata.partition_key[:100]!r}"
                return


@ENTRY_RULES(
    "null-with-payload",
    "A message with null_value has no payload.",
    f"{_METADATA}.null_value; PIP-14",
    "Set null_value only for null: readers ignore the payload then.",
)
def _entry_null(state: LintedConnection, frame: Frame) -> Iterator[str]:
    for metadata, payload in state.sent(frame).messages:
        if metadata.null_value and payload:
            yield f"null_value with a payload of {len(payload)} bytes"
            return


@ENTRY_RULES(
    "marker-from-client",
    "Only a broker writes entries with marker_type.",
    f"{_METADATA}.marker_type; PIP-31; PIP-33",
    "Omit marker_type: brokers deliver no markers to consumers.",
)
def _entry_marker(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if (metadata := state.sent(frame).metadata) is not None and metadata.HasField("marker_type"):
        yield f"marker_type {metadata.marker_type}"


@ENTRY_RULES(
    "encryption-incomplete",
    "An encrypted entry has its keys, each with a value, and the nonce in encryption_param.",
    "PIP-4; PulsarApi.proto: EncryptionKeys",
    "Write both: without the nonce a consumer cannot decrypt, and without keys it does not try.",
)
def _entry_encryption(state: LintedConnection, frame: Frame) -> Iterator[str]:
    metadata = state.sent(frame).metadata
    if metadata is None:
        return
    if metadata.encryption_keys and not metadata.encryption_param:
        yield "encryption_keys without encryption_param"
    if metadata.encryption_param and not metadata.encryption_keys:
        yield "encryption_param without encryption_keys"
    for each in metadata.encryption_keys:
        if not each.value:
            yield f"the empty value of the key {each.key[:100]!r}"


_FIELDS = ("uuid", "num_chunks_from_msg", "total_chunk_msg_size", "chunk_id")
_CHUNKS = "PIP-37"


CHUNK_RULES = Section("Rules of chunked messages (PIP-37)", on=["SEND"])


@CHUNK_RULES(
    "chunk-incomplete",
    "A chunk names its number, the number of chunks, its message, and the message's size.",
    _CHUNKS,
    "Set uuid, num_chunks_from_msg, total_chunk_msg_size and chunk_id, which counts from 0.",
)
def _chunk_incomplete(state: LintedConnection, frame: Frame) -> Iterator[str]:
    metadata = state.sent(frame).metadata
    if metadata is None:
        return
    missing = [name for name in _FIELDS if not metadata.HasField(name)]
    if missing and len(missing) < len(_FIELDS):
        yield f"a chunk without {', '.join(missing)}"
    elif not missing and not 0 <= metadata.chunk_id < metadata.num_chunks_from_msg:
        yield f"chunk {metadata.chunk_id} of {metadata.num_chunks_from_msg}"


@CHUNK_RULES(
    "chunk-flag",
    "is_chunk of SEND says whether its entry is a chunk.",
    "PIP-37; PulsarApi.proto: CommandSend.is_chunk",
    "Set is_chunk only for chunks: deduplication counts chunks differently.",
)
def _chunk_flag(state: LintedConnection, frame: Frame) -> Iterator[str]:
    sent = state.sent(frame)
    if sent.metadata is not None and frame.body.is_chunk != sent.chunked:
        yield "a chunk without is_chunk" if sent.chunked else "is_chunk for an entry that is not a chunk"


@CHUNK_RULES(
    "chunk-order",
    "The chunks of a message are consecutive, and agree on their number and size.",
    _CHUNKS,
    "Send all chunks of a message in order with one uuid, and resend from the first one without a receipt.",
)
def _chunk_order(state: LintedConnection, frame: Frame) -> Iterator[str]:
    metadata, producer = state.sent(frame).metadata, state.producer(frame)
    before = producer.chunked.get(metadata.uuid) if producer is not None and metadata is not None else None
    if before is None or metadata is None or not state.sent(frame).chunked:
        return  # a reopened producer begins with the chunk that has no receipt
    if metadata.chunk_id != before.chunk + 1:
        yield f"chunk {metadata.chunk_id} after {before.chunk}"
    if (metadata.num_chunks_from_msg, metadata.total_chunk_msg_size) != (before.chunks, before.total):
        yield (
            f"{metadata.num_chunks_from_msg} chunks with {metadata.total_chunk_msg_size} bytes, "
            f"after {before.chunks} with {before.total}"
        )


@CHUNK_RULES(
    "chunk-total-wrong",
    "The chunks of a message have total_chunk_msg_size bytes.",
    _CHUNKS,
    "Set total_chunk_msg_size to the size of all chunks after compression and before encryption.",
    severity=Severity.WARNING,
)
def _chunk_total(state: LintedConnection, frame: Frame) -> Iterator[str]:
    sent, producer = state.sent(frame), state.producer(frame)
    if sent.metadata is None or producer is None or not sent.chunked or sent.metadata.encryption_keys:
        return
    before = producer.chunked.get(sent.metadata.uuid)
    last = sent.metadata.chunk_id == sent.metadata.num_chunks_from_msg - 1
    if last and before is not None and before.size is not None and before.chunk + 1 == sent.metadata.chunk_id:
        size = before.size + len(sent.payload)
        if size != sent.metadata.total_chunk_msg_size:
            yield f"{size} bytes, but total_chunk_msg_size is {sent.metadata.total_chunk_msg_size}"
