"""/admin/v2/persistent and non-persistent: single messages as their producers sent them, with metadata as headers."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from functools import partial
from itertools import accumulate
from typing import Any

from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.sequence import Visible
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.subscription.skip import nth_position
from pulsarium.broker.model.topic.joining import OWN_CURSORS
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.net.slices import aside
from pulsarium.broker.web.admin.topic.backlog import (
    persistent_only,
    refuse_parent,
    refuse_replicator,
)
from pulsarium.broker.web.admin.topic.message_ids import PEEK, persistent
from pulsarium.broker.web.admin.topic.reading import entry_at
from pulsarium.broker.web.admin.topic.stats_json import time_text
from pulsarium.broker.web.admin.topic.topics import find, no_subscription
from pulsarium.broker.web.http.call import Call, number_in, number_of
from pulsarium.broker.web.http.errors import AdminError, HeadTooLarge, unexpected_body
from pulsarium.broker.web.http.registry import SUBSCRIPTION, of_topic, route
from pulsarium.broker.web.http.reply import JSON, HttpReply
from pulsarium.proto.compression import AT_ONCE, decompress
from pulsarium.proto.entry import parse_broker_metadata, parse_metadata, payload_of, visible_metadata
from pulsarium.proto.errors import ProtocolError
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.numbers import signed
from pulsarium.proto.text import text_of

NO_SUCH_ENTRY = "Incorrect parameter input error code: -14"  # BookKeeper's error for an entry before the first


@route("GET", *of_topic(SUBSCRIPTION + "/position/{position}"), needs=PEEK)
async def peek_message(call: Call) -> HttpReply:
    """Return the nth message of a subscription's backlog, from 1. Create a missing subscription, as clients expect."""
    number, absent = number_of(call, "position", bits=32), AdminError(404, "Message not found")
    refuse_parent(call, "Peek messages on a partitioned topic is not allowed")
    topic = persistent(call, AdminError(405, "Peek messages on a non-persistent topic is not allowed"))
    cursor = _subscription(call, topic).cursor
    if number < 1:
        raise unexpected_body("null", absent)
    position = nth_position(cursor, number) if number <= cursor.backlog() else None
    return await _message(topic, position, absent)


def _subscription(call: Call, topic: PersistentTopic) -> PersistentSubscription:
    name = call.encoded_parameter("subscription")
    refuse_replicator(name)
    if name not in topic.subscriptions:
        if name in OWN_CURSORS:
            raise no_subscription(name, topic.name)
        return topic.subscribe(name, earliest=True)
    return topic.subscriptions[name]


@route("GET", *of_topic("/ledger/{ledger}/entry/{entry}"), needs=PEEK)
async def get_message_by_id(call: Call) -> HttpReply:
    """Return the message, or batch, at a position."""
    position = Position(number_of(call, "ledger", bits=64), number_of(call, "entry", bits=64))
    refuse_parent(call, "GetMessageById is not allowed on partitioned-topic")
    topic = persistent_only(find(call))
    absent = AdminError(404, "Message id not found")
    if position.ledger_id in topic.ledger.ledgers and not topic.ledger.is_valid(position):
        beyond = f"LastConfirmedEntry is {topic.ledger.last_confirmed} when reading entry {position.entry_id}"
        shown = beyond if position.entry_id >= 0 else NO_SUCH_ENTRY
        raise unexpected_body(shown, absent)
    return await _message(topic, position, absent)


@route("GET", *of_topic("/examinemessage"), needs=PEEK)
async def examine_message(call: Call) -> HttpReply:
    """Return the nth message of a topic, counted from its first, or back from its last."""
    text = call.query.get("messagePosition", "").strip()
    number = max(number_in(text, bits=64), 1) if text else 1
    part = (
        "Examine messages on a partitioned topic is not allowed, please try examine message on specific topic partition"
    )
    refuse_parent(call, part)
    topic = persistent(call, AdminError(405, "Examine messages on a non-persistent topic is not allowed"))
    entries = Visible(topic.ledger.ledgers.values())
    if not entries:
        raise AdminError(412, "Could not examine messages due to the total message is zero")
    absent = AdminError(404, "Message not found")
    from_first = call.query.get("initialPosition") == "earliest"
    number = min(number, len(entries)) if from_first else len(entries) - number + 1
    if number < 1:
        raise unexpected_body(NO_SUCH_ENTRY, absent)
    return await _message(topic, entries[number - 1], absent)


async def _message(topic: PersistentTopic, position: Position | None, absent: AdminError) -> HttpReply:
    entry = await entry_at(topic.ledger, position) if position is not None else None
    if position is None or entry is None:
        raise absent
    ledger = topic.ledger
    aborted, uncommitted = ledger.transactions.hides(position, entry), position > ledger.max_read
    consumable = topic.stores.profile.tells_consumable
    reply = partial(message_reply, position, entry, uncommitted=uncommitted, aborted=aborted, consumable=consumable)
    return await aside(reply, size_of(entry))


def size_of(entry: bytes) -> int:
    """Return the bytes that must be read to show an entry: those of its payload, or of metadata that is longer."""
    if len(entry) > AT_ONCE:
        return len(entry)
    metadata = visible_metadata(entry)
    return 0 if metadata is None else metadata.uncompressed_size


Headers = Iterator[tuple[str, str]]

MOST_HEAD = 16384  # bytes of an answer's status line and headers: Jetty's maxResponseHeaderSize in 4.2.4
LINES_OF_JETTY = 153  # bytes of all lines of Jetty's own, without the digits of Content-Length

# Metadata fields with a header of their own, in the order of Pulsar's code
FIELDS = (
    *("producer_name", "sequence_id", "replicated_from", "replicate_to", "partition_key", "compression"),
    *("uncompressed_size", "encryption_algo", "encryption_keys", "encryption_param", "schema_version"),
    *("partition_key_b64_encoded", "ordering_key", "marker_type", "txnid_least_bits", "txnid_most_bits"),
    *("highest_sequence_id", "uuid", "num_chunks_from_msg", "total_chunk_msg_size", "chunk_id", "null_partition_key"),
)
BASE64 = {"encryption_keys", "encryption_param", "schema_version", "ordering_key"}
OTHER_NAMES = {"replicate_to": "replicated-to"}

NOT_IN_HEADERS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]|[^\x00-\xff]")  # no client's text may end a header
HTML = re.compile("[<>&='\u2028\u2029]")  # Gson escapes these beside JSON's own
FOUR_CENTURIES_MS, FOUR_CENTURIES = 146_097 * 86_400_000, 400


def message_reply(
    position: Position, entry: bytes, *, uncommitted: bool = False, aborted: bool = False, consumable: bool = False
) -> HttpReply:
    """Return a message, or a whole batch, uncompressed; encrypted data stays encrypted.

    `uncommitted`: consumers may not read this position yet. `aborted`: the transaction was aborted. Clients skip such
    messages. `consumable`: the headers about transactions are those of 5.0.1. Raise `HeadTooLarge` for metadata that
    the headers of Pulsar's answer cannot hold.
    """
    try:
        metadata = parse_metadata(entry)
        payload = payload_of(entry)
        if not metadata.encryption_keys:
            payload = decompress(metadata.compression, payload, metadata.uncompressed_size)
    except ProtocolError as error:
        raise unexpected_body(str(error)) from None
    headers: list[tuple[str, str]] = []
    size = LINES_OF_JETTY + len(str(len(payload)))
    for name, text in _headers(position, entry, metadata, uncommitted, aborted, consumable):
        headers.append((name, _in_header(text)))
        size += len(name) + len(headers[-1][1]) + len(": \r\n")
        if size > MOST_HEAD:
            raise HeadTooLarge
    return HttpReply(200, payload, JSON, raw_headers=headers)


def _in_header(text: str) -> str:
    """Return a text without white space at its ends, which HTTP servers drop."""
    return NOT_IN_HEADERS.sub(" ", text).strip(" \t")


def _headers(
    position: Position,
    entry: bytes,
    metadata: pb.MessageMetadata,
    uncommitted: bool,
    aborted: bool,
    consumable: bool,
) -> Headers:
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
    in_transaction = metadata.HasField("txnid_most_bits") and metadata.HasField("txnid_least_bits")
    if in_transaction:
        yield "X-Pulsar-txn-aborted", _text(aborted)
    if in_transaction or not consumable:
        yield "X-Pulsar-txn-uncommitted", _text(uncommitted)
    if consumable:
        yield "X-Pulsar-txn-consumable", _text(not uncommitted)


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
    """Return the values of a field: none, one or several."""
    if field in ("replicate_to", "encryption_keys"):
        return list(getattr(metadata, field))
    return [getattr(metadata, field)] if metadata.HasField(field) else []


def _text(value: object) -> str:
    """Return a value as Java prints it, with signed numbers."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | bytes):
        return text_of(value)
    return str(signed(value)) if isinstance(value, int) else str(value)


def _properties(metadata: pb.MessageMetadata) -> str:
    """Return the properties as Gson writes a map. The last of equal keys counts."""
    found = {text_of(each.key): text_of(each.value) for each in metadata.properties}
    if any(size > MOST_HEAD for size in accumulate(len(key) + len(value) for key, value in found.items())):
        raise HeadTooLarge  # before a million properties become one text
    text = json.dumps(found, separators=(",", ":"), ensure_ascii=False)
    return HTML.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def date_text(ms: int) -> str:
    """Return an instant as text, also in years beyond Python's, because a producer may send any number."""
    cycles = 0 if 0 <= ms < 2 * FOUR_CENTURIES_MS else ms // FOUR_CENTURIES_MS
    year, rest = time_text(ms - cycles * FOUR_CENTURIES_MS).split("-", 1)
    number = int(year) + cycles * FOUR_CENTURIES
    sign = "-" if number < 0 else "+" if number > 9999 else ""
    return f"{sign}{abs(number):04}-{rest}"
