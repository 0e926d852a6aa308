"""A message as the console shows it: with all that its entry says, decoded by its schema, and its state."""

from __future__ import annotations

import json
from base64 import b64encode
from contextlib import suppress
from itertools import islice
from typing import Any, Final

from pulsarium.broker.cluster import Broker
from pulsarium.broker.model.schema.data import SchemaData
from pulsarium.broker.model.subscription.mark_moves import CUMULATIVE
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.subscription.reasons import Reason
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.storage.interface import StorageError
from pulsarium.broker.web.console.decode import decoded
from pulsarium.broker.web.console.reading import FoundMessage, OpenedEntry, Single
from pulsarium.proto.entry import parse_broker_metadata
from pulsarium.proto.errors import ProtocolError
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.numbers import signed
from pulsarium.proto.text import text_of

PAYLOAD: Final = 4096  # bytes of each message, unless all of it is wanted
FULL: Final = 1 << 20  # bytes of each message at most
TEXT: Final = 4096  # characters of a key, name or property
PAIRS: Final = 100  # properties of a message, or keys of its encryption
PREVIEW: Final = 160  # characters
WHITE: Final = dict.fromkeys(map(ord, "\n\r\t"))  # characters that are printable, for a reader
ACKNOWLEDGED: Final = "acknowledged"
PASSED: Final = "passed"
DELIVERED: Final = "delivered"
DELAYED: Final = "delayed"
WAITING: Final = "waiting"

Json = dict[str, Any]


class Rows:
    """The rows of one answer. With a subscription, each says what became of the message there."""

    def __init__(self, broker: Broker, subscription: str = "", *, full: bool = False) -> None:
        self._broker = broker
        self._subscription = subscription
        self._most = FULL if full else PAYLOAD
        self._known: tuple[FoundMessage, Json] | None = None  # the message whose value was decoded last

    def row(self, found: FoundMessage) -> Json:
        """Return a message, or an entry without messages that clients see."""
        entry, single = found.entry, found.single
        row: Json = {"id": str(entry.position), "size": len(entry.entry)}
        if entry.part >= 0:
            row |= {"topic": str(entry.topic.name), "partition": entry.part}
        if entry.metadata is not None:
            row |= _about(entry, entry.metadata)
        if entry.damage:
            row["damage"] = entry.damage
        elif entry.metadata is not None and entry.metadata.HasField("marker_type"):
            row["marker"] = entry.metadata.marker_type
        elif single is not None and entry.metadata is not None:
            if found.batch_index >= 0:
                row |= {"batchIndex": found.batch_index, "batchSize": entry.metadata.num_messages_in_batch}
            row |= _of_message(single) | self._state(found) | self._value(found, entry.metadata, single)
        return row | {"preview": _preview(row)}

    def size(self, found: FoundMessage) -> int:
        """Return about how many bytes a row has."""
        single = found.single
        return 0 if single is None else single.ByteSize() + min(len(found.body), self._most)

    # the state of a message

    def subscription_of(self, topic: PersistentTopic) -> PersistentSubscription | None:
        return topic.subscriptions.get(self._subscription)

    def _state(self, found: FoundMessage) -> Json:
        subscription = self.subscription_of(found.entry.topic)
        return {} if subscription is None else state_of(subscription, found)

    # the value of a message

    def value_of(self, found: FoundMessage) -> Any:
        """Return the value for a condition: decoded by its schema, or by itself where it is JSON or a text."""
        shown = self._whole_value(found)
        value: Any = shown.get("value")
        if shown.get("kind") == "text":
            with suppress(ValueError, RecursionError):
                return json.loads(value)
        return value["value"] if shown.get("kind") == "KEY_VALUE" else value

    def key_of(self, found: FoundMessage) -> Any:
        """Return the key of a message, or of the pair that is its value, or None."""
        single, metadata = found.single, found.entry.metadata
        if single is None or metadata is None:
            return None
        schema = self._schema(found.entry, metadata)
        if schema is not None and schema.type == "KEY_VALUE":
            shown = self._whole_value(found)
            return shown["value"]["key"] if shown["kind"] == "KEY_VALUE" else None
        return _text(single.partition_key) if single.HasField("partition_key") else None

    def _whole_value(self, found: FoundMessage) -> Json:
        if self._known is None or self._known[0] is not found:
            self._known = found, self._value(found, found.entry.metadata, found.single, FULL)
        return self._known[1]

    def _value(
        self, found: FoundMessage, metadata: pb.MessageMetadata | None, single: Single | None, most: int = 0
    ) -> Json:
        """Return the payload, decoded by the schema of the message where there is one."""
        payload, most = found.body, most or self._most
        if metadata is None or single is None:
            return {}
        if single.null_value:
            return {"kind": "null", "value": None}
        is_chunk = metadata.HasField("num_chunks_from_msg") and metadata.num_chunks_from_msg > 1
        if is_chunk or metadata.encryption_keys:
            return _bytes(payload, most)
        schema = self._schema(found.entry, metadata)
        if schema is not None and len(payload) <= most:
            key = single.partition_key if single.HasField("partition_key") else None
            try:
                return {"kind": schema.type, "value": decoded(schema, payload, key), "bytes": len(payload)}
            except (ProtocolError, ValueError) as error:
                return {**_bytes(payload, most), "undecoded": f"{schema.type}: {error}"}
        return _bytes(payload, most)

    def _schema(self, entry: OpenedEntry, metadata: pb.MessageMetadata) -> SchemaData | None:
        if not metadata.HasField("schema_version") or len(metadata.schema_version) != 8:
            return None
        version = int.from_bytes(metadata.schema_version, "big")
        stored = self._broker.schemas.get(entry.topic.schema_name, version)
        return None if stored is None else stored.schema


def state_of(subscription: PersistentSubscription, found: FoundMessage) -> Json:
    """Return what became of a message in a subscription."""
    position, cursor = found.entry.position, subscription.cursor
    left = cursor.left_of(position)
    if cursor.is_acked(position):
        passed = _passed_by(subscription, found)
        return {ACKNOWLEDGED: True, "state": PASSED, "by": passed} if passed else _told(ACKNOWLEDGED)
    if cursor.is_settled(position) or (
        found.batch_index >= 0 and left is not None and not left >> found.batch_index & 1
    ):
        return _told(ACKNOWLEDGED)
    dispatcher = subscription.dispatcher
    try:
        reason = subscription.why(position)
    except StorageError:
        return _told(WAITING)
    if reason in (Reason.ABORTED, Reason.COMPACTED_AWAY):
        return {**_told(PASSED), "by": reason.value}
    told = _told(
        {Reason.DELIVERED: DELIVERED, Reason.PENDING_ACK: DELIVERED, Reason.DELAYED: DELAYED}.get(reason, WAITING)
    )
    if dispatcher is None:
        return told
    again = dispatcher.redeliveries.get(position, 0)
    if told["state"] == DELIVERED:
        holder = dispatcher.holder(position) or dispatcher.active
        told |= {"to": None if holder is None else holder.name, "deliveries": again + 1}
    elif again:
        told["deliveries"] = again
    return told


def _told(state: str) -> Json:
    return {ACKNOWLEDGED: state == ACKNOWLEDGED, "state": state}


def _passed_by(subscription: PersistentSubscription, found: FoundMessage) -> str:
    """Return what passed a message without an acknowledgement of it, or "" if nothing is known to have."""
    moves, position = subscription.mark_moves, found.entry.position
    move = moves.of(position)
    if move is not None:
        return "" if move.by is CUMULATIVE else move.by.value
    return "the start of the subscription" if position <= min(moves.start, subscription.cursor.start) else ""


def _about(entry: OpenedEntry, metadata: pb.MessageMetadata) -> Json:
    """Return the fields that all messages of an entry share."""
    found: Json = {
        "producer": _text(metadata.producer_name),
        "sequenceId": signed(metadata.sequence_id),
        "publishMs": signed(metadata.publish_time),
    }
    stamp = parse_broker_metadata(entry.entry)
    if stamp is not None and stamp.HasField("index"):
        found["index"] = signed(stamp.index)
    if stamp is not None and stamp.HasField("broker_timestamp"):
        found["brokerMs"] = signed(stamp.broker_timestamp)
    if metadata.compression:
        found["compression"] = pb.CompressionType.Name(metadata.compression)
    if metadata.HasField("deliver_at_time"):
        found["deliverAtMs"] = signed(metadata.deliver_at_time)
    if metadata.HasField("num_chunks_from_msg"):
        found["chunk"] = {"id": metadata.chunk_id, "of": metadata.num_chunks_from_msg, "uuid": _text(metadata.uuid)}
    if metadata.encryption_keys:
        some = islice(metadata.encryption_keys, PAIRS)
        keys = [{"name": _text(each.key), "value": _base64(each.value)} for each in some]
        found["encryption"] = {"algorithm": _text(metadata.encryption_algo), "keys": keys}
        found["encryption"]["parameter"] = _base64(metadata.encryption_param)
    if metadata.HasField("txnid_most_bits"):
        ledger = entry.topic.ledger
        state = "open" if entry.position > ledger.max_read else "committed"
        aborted = ledger.transactions.hides(entry.position, entry.entry)
        txn = f"({metadata.txnid_most_bits},{metadata.txnid_least_bits})"
        found["transaction"] = {"id": txn, "state": "aborted" if aborted else state}
    if metadata.HasField("schema_version"):
        found["schemaVersion"] = int.from_bytes(metadata.schema_version, "big")
    if metadata.HasField("replicated_from"):
        found["replicatedFrom"] = _text(metadata.replicated_from)
    return found


def _of_message(single: pb.MessageMetadata | pb.SingleMessageMetadata) -> Json:
    """Return the fields that each message of a batch has of its own."""
    found: Json = {}
    if single.HasField("partition_key"):
        found["key"] = _text(single.partition_key)
        found["keyIsBase64"] = single.partition_key_b64_encoded
    if single.HasField("ordering_key"):
        found["orderingKey"] = _base64(single.ordering_key)
    if single.HasField("event_time"):
        found["eventMs"] = signed(single.event_time)
    if single.properties:
        found["properties"] = [[_text(pair.key), _text(pair.value)] for pair in islice(single.properties, PAIRS)]
        if len(single.properties) > PAIRS:
            found["moreProperties"] = len(single.properties) - PAIRS
    return found


def _bytes(payload: bytes, most: int) -> Json:
    """Return a payload as JSON, text or hex, cut after `most` bytes."""
    shown = payload[:most]
    found: Json = {"bytes": len(payload), "cut": len(shown) < len(payload)}
    with suppress(UnicodeDecodeError):
        text = shown.decode("utf-8", "ignore" if found["cut"] else "strict")
        if text.translate(WHITE).isprintable():
            return found | {"kind": "text", "value": text}
    return found | {"kind": "hex", "value": shown.hex(" ")}


def _base64(data: bytes) -> str:
    return b64encode(data[:TEXT]).decode()


def _text(text: str | bytes) -> str:
    return text_of(text)[:TEXT]


def _preview(row: Json) -> str:
    """Return the value of a row in one line."""
    if "damage" in row:
        return str(row["damage"])[:PREVIEW]
    if "marker" in row:
        return f"marker {row['marker']}"
    value = row.get("value")
    if isinstance(value, dict | list | float | int | None):
        value = json.dumps(value, ensure_ascii=False)
    text = " ".join(str(value)[: 4 * PREVIEW].split())
    return text if len(text) <= PREVIEW else f"{text[: PREVIEW - 1]}…"
