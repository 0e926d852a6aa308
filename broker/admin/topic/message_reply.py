"""A stored entry as an answer: its payload as the body, its metadata as X-Pulsar- headers."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

from pulsarium.broker.admin.topic.stats_json import time_text
from pulsarium.broker.http.errors import unexpected_body
from pulsarium.broker.http.reply import JSON, Reply
from pulsarium.broker.model.ledger.position import Position, signed
from pulsarium.proto.compression import decompress
from pulsarium.proto.entry import parse_broker_metadata, parse_metadata, payload_of
from pulsarium.proto.errors import ProtocolError
from pulsarium.proto.generated import PulsarApi_pb2 as pb

Headers = Iterator[tuple[str, str]]

# Fields of the metadata that have a header of their name, in the order of Pulsar's code
FIELDS = (
    *("producer_name", "sequence_id", "replicated_from", "replicate_to", "partition_key", "compression"),
    *("uncompressed_size", "encryption_algo", "encryption_keys", "encryption_param", "schema_version"),
    *("partition_key_b64_encoded", "ordering_key", "marker_type", "txnid_least_bits", "txnid_most_bits"),
    *("highest_sequence_id", "uuid", "num_chunks_from_msg", "total_chunk_msg_size", "chunk_id", "null_partition_key"),
)
BASE64 = {"encryption_keys", "encryption_param", "schema_version", "ordering_key"}
OTHER_NAMES = {"replicate_to": "replicated-to"}

NOT_IN_HEADERS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]|[^\x00-\xff]")  # nothing that a client chose ends a header
HTML = re.compile("[<>&='\u2028\u2029]")  # what Gson escapes beside what JSON asks for
FOUR_CENTURIES_MS, FOUR_CENTURIES = 146_097 * 86_400_000, 400


def message_reply(position: Position, entry: bytes, *, uncommitted: bool = False, aborted: bool = False) -> Reply:
    """The message, or the batch as a whole, as it was before compression; what is encrypted stays as it is.

    `uncommitted`: consumers may not read so far yet; `aborted`: its transaction was. Clients pass over such messages.
    """
    try:
        metadata = parse_metadata(entry)
        headers = [(name, _in_header(text)) for name, text in _headers(position, entry, metadata)]
        if metadata.HasField("txnid_most_bits") and metadata.HasField("txnid_least_bits"):
            headers.append(("X-Pulsar-txn-aborted", _text(aborted)))
        headers.append(("X-Pulsar-txn-uncommitted", _text(uncommitted)))
        payload = payload_of(entry)
        if not metadata.encryption_keys:
            payload = decompress(metadata.compression, payload, metadata.uncompressed_size)
    except ProtocolError as error:
        raise unexpected_body(str(error)) from None
    return Reply(200, payload, JSON, raw_headers=headers)


def _in_header(text: str) -> str:
    """Without white space at its ends, which no server writes."""
    return NOT_IN_HEADERS.sub(" ", text).strip(" \t")


def _headers(position: Position, entry: bytes, metadata: pb.MessageMetadata) -> Headers:
    yield "X-Pulsar-Message-ID", str(position)
    yield "X-Pulsar-PROPERTY", _properties(metadata)
    stamp = parse_broker_metadata(entry)
    if stamp is not None and stamp.HasField("broker_timestamp"):
        yield "X-Pulsar-Broker-Entry-METADATA-timestamp", date_text(signed(stamp.broker_timestamp))
    if stamp is not None and stamp.HasField("index"):
        yield "X-Pulsar-Broker-Entry-METADATA-index", str(signed(stamp.index))
    for field in ("publish_time", "event_time", "deliver_at_time"):
        if metadata.HasField(field):
            yield f"X-Pulsar-{field.replace('_', '-')}", date_text(signed(getattr(metadata, field)))
    if metadata.HasField("num_messages_in_batch"):
        yield "X-Pulsar-num-batch-message", str(metadata.num_messages_in_batch)
        yield "X-Pulsar-batch-size", str(len(entry) - metadata.ByteSize())
    if metadata.HasField("null_value"):
        yield "X-Pulsar-null-value", _text(metadata.null_value)
    if metadata.HasField("num_chunks_from_msg"):
        yield "X-Pulsar-PROPERTY-TOTAL-CHUNKS", str(metadata.num_chunks_from_msg)
        yield "X-Pulsar-PROPERTY-CHUNK-ID", str(metadata.chunk_id)
    yield "X-Pulsar-Is-Encrypted", _text(bool(metadata.encryption_keys))
    yield from _fields(metadata)


def _fields(metadata: pb.MessageMetadata) -> Headers:
    for field in FIELDS:
        name = OTHER_NAMES.get(field, field.replace("_", "-"))
        for value in _values(metadata, field):
            if field in BASE64:
                data = value if isinstance(value, bytes) else value.SerializeToString()
                yield f"X-Pulsar-Base64-{name}", b64encode(data).decode()
            else:
                yield f"X-Pulsar-{name}", pb.CompressionType.Name(value) if field == "compression" else _text(value)


def _values(metadata: pb.MessageMetadata, field: str) -> list[Any]:
    """What was set: nothing, a value, or several."""
    if field in ("replicate_to", "encryption_keys"):
        return list(getattr(metadata, field))
    return [getattr(metadata, field)] if metadata.HasField(field) else []


def _text(value: object) -> str:
    """A value as Java prints it: numbers are signed there."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(signed(value)) if isinstance(value, int) else str(value)


def _properties(metadata: pb.MessageMetadata) -> str:
    """As Gson writes a map; of several with one key the last counts."""
    text = json.dumps({each.key: each.value for each in metadata.properties}, separators=(",", ":"), ensure_ascii=False)
    return HTML.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def date_text(ms: int) -> str:
    """An instant, also of years that Python does not know: a producer may send any number."""
    cycles = 0 if 0 <= ms < 2 * FOUR_CENTURIES_MS else ms // FOUR_CENTURIES_MS
    year, rest = time_text(ms - cycles * FOUR_CENTURIES_MS).split("-", 1)
    number = int(year) + cycles * FOUR_CENTURIES
    sign = "-" if number < 0 else "+" if number > 9999 else ""
    return f"{sign}{abs(number):04}-{rest}"
