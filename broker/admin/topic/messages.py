"""/admin/v2/persistent and non-persistent: single messages as their producers sent them, with metadata as headers."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

from pulsarium.broker.admin.topic.backlog import (
    no_subscription,
    number_in,
    number_of,
    persistent_only,
    refuse_parent,
)
from pulsarium.broker.admin.topic.message_ids import PEEK, persistent
from pulsarium.broker.admin.topic.reading import entry_at
from pulsarium.broker.admin.topic.stats_json import time_text
from pulsarium.broker.admin.topic.topics import find
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError, unexpected_body
from pulsarium.broker.http.registry import SUBSCRIPTION, of_topic, route
from pulsarium.broker.http.reply import JSON, Reply
from pulsarium.broker.model.ledger.position import Position, signed
from pulsarium.broker.model.ledger.sequence import Visible
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.subscription.skip import nth_position
from pulsarium.broker.model.topic.joining import OWN_CURSORS
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.proto.compression import decompress
from pulsarium.proto.entry import parse_broker_metadata, parse_metadata, payload_of
from pulsarium.proto.errors import ProtocolError
from pulsarium.proto.generated import PulsarApi_pb2 as pb

REPLICATOR = "pulsar.repl."  # replicatorPrefix
NO_SUCH_ENTRY = "Incorrect parameter input error code: -14"  # BookKeeper's error for an entry before the first


@route("GET", *of_topic(SUBSCRIPTION + "/position/{position}"), needs=PEEK)
async def peek_message(call: Call) -> Reply:
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
    if name.startswith(REPLICATOR):
        raise AdminError(404, "Replicator not found")
    if name not in topic.subscriptions:
        if name in OWN_CURSORS:
            raise no_subscription(name, str(topic.name))
        return topic.subscribe(name, earliest=True)
    return topic.subscriptions[name]


@route("GET", *of_topic("/ledger/{ledger}/entry/{entry}"), needs=PEEK)
async def get_message_by_id(call: Call) -> Reply:
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
async def examine_message(call: Call) -> Reply:
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


async def _message(topic: PersistentTopic, position: Position | None, absent: AdminError) -> Reply:
    entry = await entry_at(topic.ledger, position) if position is not None else None
    if position is None or entry is None:
        raise absent
    ledger = topic.ledger
    aborted = ledger.transactions.hides(position, entry)
    return message_reply(position, entry, uncommitted=position > ledger.max_read, aborted=aborted)


Headers = Iterator[tuple[str, str]]

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


def message_reply(position: Position, entry: bytes, *, uncommitted: bool = False, aborted: bool = False) -> Reply:
    """Return a message, or a whole batch, uncompressed; encrypted data stays encrypted.

    `uncommitted`: consumers may not read this position yet. `aborted`: the transaction was aborted. Clients skip such
    messages.
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
    """Return a text without white space at its ends, which HTTP servers drop."""
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
    """Return the values of a field: none, one or several."""
    if field in ("replicate_to", "encryption_keys"):
        return list(getattr(metadata, field))
    return [getattr(metadata, field)] if metadata.HasField(field) else []


def _text(value: object) -> str:
    """Return a value as Java prints it, with signed numbers."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(signed(value)) if isinstance(value, int) else str(value)


def _properties(metadata: pb.MessageMetadata) -> str:
    """Return the properties as Gson writes a map. The last of equal keys counts."""
    text = json.dumps({each.key: each.value for each in metadata.properties}, separators=(",", ":"), ensure_ascii=False)
    return HTML.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def date_text(ms: int) -> str:
    """Return an instant as text, also in years beyond Python's, because a producer may send any number."""
    cycles = 0 if 0 <= ms < 2 * FOUR_CENTURIES_MS else ms // FOUR_CENTURIES_MS
    year, rest = time_text(ms - cycles * FOUR_CENTURIES_MS).split("-", 1)
    number = int(year) + cycles * FOUR_CENTURIES
    sign = "-" if number < 0 else "+" if number > 9999 else ""
    return f"{sign}{abs(number):04}-{rest}"
