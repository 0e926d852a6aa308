"""Browse the messages of a topic: with all that an entry says, decoded by its schema."""

from __future__ import annotations

import re
from base64 import b64encode
from contextlib import suppress
from typing import Any, Final

from pulsarium.broker.admin.topic.message_ids import PEEK
from pulsarium.broker.admin.topic.reading import entry_at
from pulsarium.broker.console.decode import decoded
from pulsarium.broker.console.topics import topic_of
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError
from pulsarium.broker.http.registry import route
from pulsarium.broker.http.reply import Reply, json_reply
from pulsarium.broker.model.ledger.position import Position, signed
from pulsarium.broker.model.ledger.sequence import Visible
from pulsarium.broker.model.schema.data import SchemaData
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.slices import Slice
from pulsarium.broker.storage.interface import StorageError
from pulsarium.proto.batch import unpack
from pulsarium.proto.compression import decompress
from pulsarium.proto.entry import parse_broker_metadata, parse_metadata, payload_of
from pulsarium.proto.errors import ProtocolError
from pulsarium.proto.generated import PulsarApi_pb2 as pb

ENTRIES: Final = 50  # at once
MESSAGES: Final = 500  # of all batches together
PAYLOAD: Final = 4096  # bytes of each message, unless ?full=true

POSITION: Final = re.compile(r"-?[0-9]{1,18}:-?[0-9]{1,18}")

Json = dict[str, Any]


@route("GET", "/pulsarium/messages/{domain}/{tenant}/{namespace}/{topic}", needs=PEEK)
async def get_messages(call: Call) -> Reply:
    """Return messages from ?start= on: earliest, latest (the last page) or LEDGER:ENTRY; ?limit= entries.

    With ?subscription=, say of each message whether the subscription has acknowledged it. ?full=true does not cut
    payloads.
    """
    topic = call.broker.topics.find(topic_of(call))
    if not isinstance(topic, PersistentTopic):
        raise AdminError(405, "A non-persistent topic keeps no messages; watch its consumers instead")
    entries = Visible(topic.ledger.ledgers.values())
    first = _number_of(topic, call.query.get("start", "latest"), len(entries), _limit(call))
    subscription = topic.subscriptions.get(call.query.get("subscription", ""))
    found: list[Json] = []
    number, slice_ = first, Slice()
    while number < min(first + _limit(call), len(entries)) and len(found) < MESSAGES:
        position = entries[number]
        number += 1
        try:
            entry = await entry_at(topic.ledger, position)
        except StorageError as error:
            found.append({"id": str(position), "damage": str(error)})
            continue
        if entry is not None:
            shown = _Entry(call, topic, position, entry)
            found += shown.messages(subscription if isinstance(subscription, PersistentSubscription) else None)
        await slice_.pause()
    return json_reply(
        {
            "messages": found,
            "first": first,
            "total": len(entries),
            "next": str(entries[number]) if number < len(entries) else None,
            "previous": str(entries[max(0, first - _limit(call))]) if first else None,
            "end": str(topic.ledger.next(topic.ledger.last_confirmed)),
        }
    )


def _limit(call: Call) -> int:
    text = call.query.get("limit", str(ENTRIES))
    if not (text.isascii() and text.isdecimal() and 0 < int(text[:9]) <= ENTRIES):
        raise AdminError(400, f"limit is {text!r}; it must be a number of entries, 1 to {ENTRIES}")
    return int(text)


def _number_of(topic: PersistentTopic, start: str, count: int, limit: int) -> int:
    """Return the number of the entry to begin with."""
    if start == "earliest":
        return 0
    if start == "latest":
        return max(0, count - limit)
    ledger = topic.ledger
    position = _position(start)
    if position > ledger.last_confirmed:
        return count
    return count - ledger.count_after(ledger.previous(ledger.clamp(position)))


def _position(text: str) -> Position:
    if not POSITION.fullmatch(text):
        raise AdminError(400, f"start is {text!r}; it must be earliest, latest or LEDGER:ENTRY")
    ledger, _, entry = text.partition(":")
    return Position(int(ledger), max(0, int(entry)))


class _Entry:
    """An entry, which is a message, a batch, a chunk or a marker."""

    def __init__(self, call: Call, topic: PersistentTopic, position: Position, entry: bytes) -> None:
        self._call = call
        self._topic = topic
        self._position = position
        self._entry = entry

    def messages(self, subscription: PersistentSubscription | None) -> list[Json]:
        """Return the messages of the entry, or the entry itself when clients do not see messages in it."""
        base: Json = {"id": str(self._position), "size": len(self._entry)}
        try:
            metadata = parse_metadata(self._entry)
            base |= self._about(metadata)
            if metadata.HasField("marker_type"):
                return [base | {"marker": metadata.marker_type}]
            payload = payload_of(self._entry)
            if metadata.encryption_keys:
                return [base | self._state(subscription, -1) | _bytes(payload, self._full)]
            payload = decompress(metadata.compression, payload, metadata.uncompressed_size)
            if not metadata.HasField("num_messages_in_batch"):
                value = self._value(metadata, metadata, payload)
                return [base | _of_message(metadata) | self._state(subscription, -1) | value]
            return [
                base
                | {"batchIndex": index, "batchSize": metadata.num_messages_in_batch}
                | _of_message(single)
                | self._state(subscription, index)
                | self._value(metadata, single, body)
                for index, (single, body) in enumerate(unpack(payload, metadata.num_messages_in_batch))
            ]
        except ProtocolError as error:
            return [base | {"damage": str(error)}]

    @property
    def _full(self) -> bool:
        return self._call.flag("full")

    def _about(self, metadata: pb.MessageMetadata) -> Json:
        found: Json = {
            "producer": metadata.producer_name,
            "sequenceId": signed(metadata.sequence_id),
            "publishMs": signed(metadata.publish_time),
        }
        stamp = parse_broker_metadata(self._entry)
        if stamp is not None and stamp.HasField("index"):
            found["index"] = signed(stamp.index)
        if stamp is not None and stamp.HasField("broker_timestamp"):
            found["brokerMs"] = signed(stamp.broker_timestamp)
        if metadata.compression:
            found["compression"] = pb.CompressionType.Name(metadata.compression)
        if metadata.HasField("deliver_at_time"):
            found["deliverAtMs"] = signed(metadata.deliver_at_time)
        if metadata.HasField("num_chunks_from_msg"):
            found["chunk"] = {"id": metadata.chunk_id, "of": metadata.num_chunks_from_msg, "uuid": metadata.uuid}
        if metadata.encryption_keys:
            keys = [{"name": each.key, "value": _base64(each.value)} for each in metadata.encryption_keys]
            found["encryption"] = {"algorithm": metadata.encryption_algo, "keys": keys}
            found["encryption"]["parameter"] = _base64(metadata.encryption_param)
        if metadata.HasField("txnid_most_bits"):
            ledger = self._topic.ledger
            state = "open" if self._position > ledger.max_read else "committed"
            aborted = ledger.transactions.hides(self._position, self._entry)
            txn = f"({metadata.txnid_most_bits},{metadata.txnid_least_bits})"
            found["transaction"] = {"id": txn, "state": "aborted" if aborted else state}
        if metadata.HasField("schema_version"):
            found["schemaVersion"] = int.from_bytes(metadata.schema_version, "big")
        if metadata.HasField("replicated_from"):
            found["replicatedFrom"] = metadata.replicated_from
        return found

    def _state(self, subscription: PersistentSubscription | None, index: int) -> Json:
        """Return whether the subscription has acknowledged the message."""
        if subscription is None:
            return {}
        cursor = subscription.cursor
        if cursor.is_acked(self._position) or cursor.is_settled(self._position):
            return {"acknowledged": True}
        left = cursor.left_of(self._position)
        if index >= 0 and left is not None:
            return {"acknowledged": not left >> index & 1}
        return {"acknowledged": False}

    def _value(
        self, metadata: pb.MessageMetadata, single: pb.MessageMetadata | pb.SingleMessageMetadata, payload: bytes
    ) -> Json:
        """Return the payload, decoded by the schema of the message where there is one."""
        if single.null_value:
            return {"kind": "null", "value": None}
        if metadata.HasField("num_chunks_from_msg") and metadata.num_chunks_from_msg > 1:
            return _bytes(payload, self._full)
        schema = self._schema(metadata)
        if schema is not None and len(payload) <= (PAYLOAD if not self._full else len(payload)):
            key = single.partition_key if single.HasField("partition_key") else None
            try:
                return {"kind": schema.type, "value": decoded(schema, payload, key), "bytes": len(payload)}
            except (ProtocolError, ValueError) as error:
                return {**_bytes(payload, self._full), "undecoded": f"{schema.type}: {error}"}
        return _bytes(payload, self._full)

    def _schema(self, metadata: pb.MessageMetadata) -> SchemaData | None:
        if not metadata.HasField("schema_version") or len(metadata.schema_version) != 8:
            return None
        version = int.from_bytes(metadata.schema_version, "big")
        stored = self._call.broker.schemas.get(self._topic.schema_name, version)
        return None if stored is None else stored.schema


def _of_message(single: pb.MessageMetadata | pb.SingleMessageMetadata) -> Json:
    """Return the fields that each message of a batch has of its own."""
    found: Json = {}
    if single.HasField("partition_key"):
        found["key"] = single.partition_key
        found["keyIsBase64"] = single.partition_key_b64_encoded
    if single.HasField("ordering_key"):
        found["orderingKey"] = _base64(single.ordering_key)
    if single.HasField("event_time"):
        found["eventMs"] = signed(single.event_time)
    if single.properties:
        found["properties"] = [[pair.key, pair.value] for pair in single.properties]
    return found


def _bytes(payload: bytes, full: bool) -> Json:
    """Return a payload as JSON, text or hex, cut unless `full`."""
    shown = payload if full else payload[:PAYLOAD]
    found: Json = {"bytes": len(payload), "cut": len(shown) < len(payload)}
    with suppress(UnicodeDecodeError):
        text = shown.decode("utf-8", "ignore" if found["cut"] else "strict")
        if all(each.isprintable() or each in "\n\r\t" for each in text):
            return found | {"kind": "text", "value": text}
    return found | {"kind": "hex", "value": shown.hex(" ")}


def _base64(data: bytes) -> str:
    return b64encode(data).decode()
