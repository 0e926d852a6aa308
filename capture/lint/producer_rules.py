"""Rules of producers at work, and of what they send: entries and chunks."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator

from pulsarium.capture.lint.frames import Frame
from pulsarium.capture.lint.members import Consumer, Phase, Producer
from pulsarium.capture.lint.rule import Section, Severity
from pulsarium.capture.lint.state import State
from pulsarium.proto.commands import Direction
from pulsarium.proto.entry import checksum_matches, parse_metadata, strip_broker_metadata
from pulsarium.proto.errors import EntryError

_PRODUCER = "Binary protocol: producer"
_NOTICED_NS = 1_000_000_000
"""After so long a client should have heard what the broker said."""


def close_ignored(frame: Frame, used: Producer | Consumer | None, name: str) -> Iterator[str]:
    """Yield that a producer or consumer is used although its broker closed it, and its client should know."""
    if used is not None and used.phase is Phase.CLOSED_BY_BROKER:
        since = frame.record.monotonic_ns - used.closed_ns
        if since >= _NOTICED_NS:
            yield f"{frame.name} for {name}, which its broker closed {since / 1e9:.1f} s ago"


PRODUCER_RULES = Section("Rules of producers at work: SEND, its ids, and receipts", on=["SEND"])


@PRODUCER_RULES(
    "unknown-producer",
    "SEND names a producer of its connection.",
    _PRODUCER,
    "Keep producer ids by connection: the broker closes a connection for others.",
)
def _send_unknown(state: State, frame: Frame) -> Iterator[str]:
    producer = state.producer(frame)
    if producer is None and state.producers.whole:
        yield f"{frame.name} for producer {frame.producer_id}, which nobody opened"
    elif producer is not None and producer.phase is Phase.CLOSED_BY_CLIENT:
        yield f"{frame.name} for producer {frame.producer_id}, which its client had closed"


@PRODUCER_RULES(
    "send-before-ready",
    "A producer sends once PRODUCER_SUCCESS says producer_ready.",
    "PIP-68",
    "Wait for PRODUCER_SUCCESS with producer_ready: WaitForExclusive may take for ever.",
)
def _send_ready(state: State, frame: Frame) -> Iterator[str]:
    if (producer := state.producer(frame)) is not None and producer.phase is Phase.OPENING:
        yield f"SEND for producer {frame.producer_id}, which is not ready"


@PRODUCER_RULES(
    "send-after-close",
    "Nothing is sent behind a producer's CLOSE_PRODUCER.",
    _PRODUCER,
    "Flush first, then close.",
)
def _send_after_close(state: State, frame: Frame) -> Iterator[str]:
    if (
        (producer := state.producer(frame)) is not None
        and producer.closing
        and producer.phase is not Phase.CLOSED_BY_CLIENT
    ):
        yield f"SEND of sequence {frame.sequence_id} behind CLOSE_PRODUCER of producer {frame.producer_id}"


@PRODUCER_RULES(
    "producer-close-ignored",
    "A producer that its broker closed is opened again before it sends.",
    "Binary protocol: CLOSE_PRODUCER from a broker",
    "React to CLOSE_PRODUCER: look the topic up and open the producer again; what is sent meanwhile is dropped.",
)
def _send_close_ignored(state: State, frame: Frame) -> Iterator[str]:
    yield from close_ignored(frame, state.producer(frame), f"producer {frame.producer_id}")


@PRODUCER_RULES(
    "closed-twice",
    "A producer or consumer is ended once, by the connection that it is on.",
    "PulsarApi.proto: CommandCloseProducer, CommandCloseConsumer, CommandUnsubscribe",
    "Forget a producer or consumer when it is closed: brokers answer SUCCESS whether there is one or not.",
    on=["CLOSE_PRODUCER", "CLOSE_CONSUMER", "UNSUBSCRIBE"],
    severity=Severity.WARNING,
)
def _send_twice(state: State, frame: Frame) -> Iterator[str]:
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
            return  # that is refused, and for unknown-consumer
    if never or ended:
        yield f"{frame.name} once more" if ended else f"{frame.name} of what nobody opened"


@PRODUCER_RULES(
    "sequence-goes-back",
    "The sequence ids of a producer rise, unless its application names it.",
    "PIP-6",
    "Number messages in the order in which they are sent; after an error send all of them again from there on.",
)
def _send_sequence(state: State, frame: Frame) -> Iterator[str]:
    producer = state.producer(frame)
    if producer is None or producer.named_by_application:
        return  # an application that has a name for its producer may replay what it sent: deduplication is for that
    if (frame.sequence_id or 0) < producer.last_sequence:  # equal: a message's chunks share one
        yield f"sequence {frame.sequence_id} after {producer.last_sequence}"


@PRODUCER_RULES(
    "highest-sequence-low",
    "highest_sequence_id is that of the last message of a batch, never below sequence_id.",
    "PulsarApi.proto: CommandSend.highest_sequence_id",
    "Set it for batches, to the last message's, or leave it out: brokers ignore a lower one.",
)
def _send_highest(state: State, frame: Frame) -> Iterator[str]:
    body = frame.body
    # 0 is what some clients write for none.
    if body.HasField("highest_sequence_id") and 0 < body.highest_sequence_id < body.sequence_id:
        yield f"highest_sequence_id {body.highest_sequence_id} of sequence {body.sequence_id}"


@PRODUCER_RULES(
    "receipt-of-nothing",
    "SEND_RECEIPT and SEND_ERROR name a SEND that waits for one.",
    _PRODUCER,
    "Answer with the ids of the SEND.",
    on=["SEND_RECEIPT", "SEND_ERROR"],
    about=Direction.BROKER,
)
def _send_receipt(state: State, frame: Frame) -> Iterator[str]:
    producer = state.producer(frame)
    # What was under way when the broker closed the producer may be answered afterwards, also when it is opened again.
    closing = producer is not None and producer.phase in (Phase.OPENING, Phase.CLOSED_BY_BROKER)
    if state.matcher.request_of(frame) is None and not closing:
        yield f"{frame.name} for sequence {frame.sequence_id} of producer {frame.producer_id}, which waits for none"


@PRODUCER_RULES(
    "receipts-out-of-order",
    "The receipts of a producer come in the order of its SENDs.",
    _PRODUCER,
    "Answer in order.",
    on=["SEND_RECEIPT"],
    about=Direction.BROKER,
)
def _send_order(state: State, frame: Frame) -> Iterator[str]:
    request = state.matcher.request_of(frame)
    if request is not None:
        oldest = state.matcher.oldest_send(frame.producer_id) or request
        if oldest.number < request.number and (oldest.sequence_id or 0) < (request.sequence_id or 0):
            yield f"the receipt of sequence {frame.sequence_id} before that of {oldest.sequence_id}"


_CARRY_ENTRIES = ["SEND", "MESSAGE"]
_PAYLOAD = "Binary protocol: payload commands"
_METADATA = "PulsarApi.proto: MessageMetadata"
_MILLISECONDS = range(10**11, 10**14)
"""From 1973 to 5138; what is outside was counted in other units."""


ENTRY_RULES = Section("Rules of entries: what a SEND carries, and what it says of it", on=["SEND"])


@ENTRY_RULES(
    "checksum-wrong",
    "An entry fits its CRC32C.",
    _PAYLOAD,
    "Compute CRC32C (Castagnoli) over all that follows it: the metadata's size, the metadata and the payload.",
    on=_CARRY_ENTRIES,
    about=Direction.BOTH,
)
def _entry_checksum(state: State, frame: Frame) -> Iterator[str]:
    if not frame.whole:
        return
    try:
        entry = frame.entry if frame.name == "SEND" else strip_broker_metadata(frame.entry)
        if checksum_matches(entry) is False:
            yield f"the entry of {frame.name} does not fit its checksum"
    except EntryError:
        return  # that is for the next rule


@ENTRY_RULES(
    "entry-unreadable",
    "An entry begins with its metadata.",
    _PAYLOAD,
    "Write the metadata's size and a MessageMetadata with all required fields: brokers keep what nobody can read.",
    on=_CARRY_ENTRIES,
    about=Direction.BOTH,
)
def _entry_entry(state: State, frame: Frame) -> Iterator[str]:
    if frame.whole:
        try:
            parse_metadata(frame.entry)
        except EntryError as error:
            yield str(error)


@ENTRY_RULES(
    "num-messages-mismatch",
    "num_messages of SEND is num_messages_in_batch of its entry.",
    "PulsarApi.proto: CommandSend.num_messages",
    "Set num_messages of every batch: statistics and message indexes are counted by it.",
)
def _entry_count(state: State, frame: Frame) -> Iterator[str]:
    if (
        metadata := state.sent(frame).metadata
    ) is not None and frame.body.num_messages != metadata.num_messages_in_batch:
        yield f"num_messages {frame.body.num_messages}, and the entry has {metadata.num_messages_in_batch}"


@ENTRY_RULES(
    "sequence-mismatch",
    "sequence_id of SEND is sequence_id of its entry.",
    "PIP-6: a broker that restarts reads the sequence ids from its entries",
    "Write the same sequence id into both.",
)
def _entry_sequence(state: State, frame: Frame) -> Iterator[str]:
    if (
        (metadata := state.sent(frame).metadata) is not None
        and metadata.sequence_id != frame.sequence_id
        and not metadata.replicated_from
    ):
        yield f"sequence_id {frame.sequence_id}, and the entry has {metadata.sequence_id}"


@ENTRY_RULES(
    "producer-name-mismatch",
    "producer_name of an entry is the name that its producer has.",
    "PIP-6; PIP-37: deduplication and chunks are by the producer's name",
    "Write the name of PRODUCER_SUCCESS.",
)
def _entry_name(state: State, frame: Frame) -> Iterator[str]:
    metadata, producer = state.sent(frame).metadata, state.producer(frame)
    if metadata is None or producer is None or not producer.name or metadata.replicated_from:
        return
    if metadata.producer_name != producer.name:
        yield f"producer_name {metadata.producer_name[:100]!r}, and the producer is {producer.name!r}"


@ENTRY_RULES(
    "publish-time-unit",
    "publish_time is milliseconds since 1970.",
    f"{_METADATA}.publish_time",
    "Stamp messages in milliseconds: message expiry and seek by time go by it.",
)
def _entry_publish_time(state: State, frame: Frame) -> Iterator[str]:
    if (metadata := state.sent(frame).metadata) is not None and metadata.publish_time not in _MILLISECONDS:
        yield f"publish_time {metadata.publish_time}"


@ENTRY_RULES(
    "deliver-at-unit",
    "deliver_at_time is milliseconds since 1970.",
    f"{_METADATA}.deliver_at_time; PIP-26",
    "A delay is added to the time of now, in milliseconds.",
)
def _entry_deliver_at(state: State, frame: Frame) -> Iterator[str]:
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
    "Refuse it, or cut it into chunks (PIP-37): only the frame's head room may be used beyond that.",
    severity=Severity.WARNING,
)
def _entry_size(state: State, frame: Frame) -> Iterator[str]:
    most, size = state.conversation.max_message_size, len(state.sent(frame).payload)
    if most is not None and size > most:
        yield f"a payload of {size} bytes, and {most} are allowed"


@ENTRY_RULES(
    "compression-wrong",
    "A compressed payload gives uncompressed_size bytes.",
    f"{_METADATA}.uncompressed_size; Pulsar's CompressionCodec",
    "Write raw LZ4 blocks, zlib streams, zstd frames or raw Snappy, and the size before compression.",
)
def _entry_compression(state: State, frame: Frame) -> Iterator[str]:
    if wrong := state.sent(frame).wrong_compression:
        yield wrong


@ENTRY_RULES(
    "batch-unreadable",
    "A batch holds the messages that num_messages_in_batch counts.",
    "Binary protocol: batched messages",
    "Write size, SingleMessageMetadata and payload of each; leave num_messages_in_batch out of a message alone.",
)
def _entry_batch(state: State, frame: Frame) -> Iterator[str]:
    if wrong := state.sent(frame).wrong_batch:
        yield wrong


@ENTRY_RULES(
    "key-not-base64",
    "partition_key_b64_encoded says that the key is base64.",
    f"{_METADATA}.partition_key_b64_encoded",
    "Encode keys of bytes; leave the flag out for keys of text.",
)
def _entry_key(state: State, frame: Frame) -> Iterator[str]:
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
    "Set null_value only for null: readers do not look at the payload then.",
)
def _entry_null(state: State, frame: Frame) -> Iterator[str]:
    for metadata, payload in state.sent(frame).messages:
        if metadata.null_value and payload:
            yield f"null_value, and a payload of {len(payload)} bytes"
            return


@ENTRY_RULES(
    "marker-from-client",
    "marker_type is for entries that a broker writes itself.",
    f"{_METADATA}.marker_type; PIP-31; PIP-33",
    "Leave it out: no consumer is ever sent a marker.",
)
def _entry_marker(state: State, frame: Frame) -> Iterator[str]:
    if (metadata := state.sent(frame).metadata) is not None and metadata.HasField("marker_type"):
        yield f"marker_type {metadata.marker_type}"


@ENTRY_RULES(
    "encryption-incomplete",
    "An encrypted entry has its keys, each with a value, and the nonce in encryption_param.",
    "PIP-4; PulsarApi.proto: EncryptionKeys",
    "Write both: without the nonce nobody can decrypt, without keys nobody tries to.",
)
def _entry_encryption(state: State, frame: Frame) -> Iterator[str]:
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


_FIELDS = ("uuid", "num_chunks_from_msg", "total_chunk_msg_size", "chunk_id")
_CHUNKS = "PIP-37"


CHUNK_RULES = Section("Rules of messages that come in chunks (PIP-37)", on=["SEND"])


@CHUNK_RULES(
    "chunk-incomplete",
    "A chunk says which it is, of how many, of which message, and how big that is.",
    _CHUNKS,
    "Set uuid, num_chunks_from_msg, total_chunk_msg_size and chunk_id, the last from 0 on.",
)
def _chunk_incomplete(state: State, frame: Frame) -> Iterator[str]:
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
    "Set is_chunk for chunks, and for nothing else: deduplication counts chunks in another way.",
)
def _chunk_flag(state: State, frame: Frame) -> Iterator[str]:
    sent = state.sent(frame)
    if sent.metadata is not None and frame.body.is_chunk != sent.chunked:
        yield "a chunk without is_chunk" if sent.chunked else "is_chunk, and the entry is none"


@CHUNK_RULES(
    "chunk-order",
    "The chunks of a message follow each other, and agree on how many there are.",
    _CHUNKS,
    "Send all chunks of a message in order, under one uuid, and again from the first that has no receipt.",
)
def _chunk_order(state: State, frame: Frame) -> Iterator[str]:
    metadata, producer = state.sent(frame).metadata, state.producer(frame)
    before = producer.chunked.get(metadata.uuid) if producer is not None and metadata is not None else None
    if before is None or metadata is None or not state.sent(frame).chunked:
        return  # a producer that was opened again begins with the chunk that has no receipt
    if metadata.chunk_id != before.chunk + 1:
        yield f"chunk {metadata.chunk_id} after {before.chunk}"
    if (metadata.num_chunks_from_msg, metadata.total_chunk_msg_size) != (before.chunks, before.total):
        yield (
            f"{metadata.num_chunks_from_msg} chunks with {metadata.total_chunk_msg_size} bytes, "
            f"and it was {before.chunks} with {before.total}"
        )


@CHUNK_RULES(
    "chunk-total-wrong",
    "The chunks of a message have total_chunk_msg_size bytes.",
    _CHUNKS,
    "Set total_chunk_msg_size to the bytes of all chunks, compressed, before they are encrypted.",
    severity=Severity.WARNING,
)
def _chunk_total(state: State, frame: Frame) -> Iterator[str]:
    sent, producer = state.sent(frame), state.producer(frame)
    if sent.metadata is None or producer is None or not sent.chunked or sent.metadata.encryption_keys:
        return
    before = producer.chunked.get(sent.metadata.uuid)
    last = sent.metadata.chunk_id == sent.metadata.num_chunks_from_msg - 1
    if last and before is not None and before.size is not None and before.chunk + 1 == sent.metadata.chunk_id:
        size = before.size + len(sent.payload)
        if size != sent.metadata.total_chunk_msg_size:
            yield f"{size} bytes, and total_chunk_msg_size is {sent.metadata.total_chunk_msg_size}"
