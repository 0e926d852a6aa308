"""Browse the messages of a topic: with all that an entry says, decoded by its schema."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, Final

from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.sequence import Visible
from pulsarium.broker.model.schema.data import SchemaData
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.net.slices import Slice, aside
from pulsarium.broker.storage.interface import StorageError
from pulsarium.broker.web.admin.topic.message_ids import PEEK
from pulsarium.broker.web.admin.topic.messages import size_of
from pulsarium.broker.web.admin.topic.reading import entry_at
from pulsarium.broker.web.console.decode import decoded
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.broker.web.http.registry import route
from pulsarium.broker.web.http.reply import HttpReply, json_reply
from pulsarium.proto.batch import messages_of
from pulsarium.proto.compression import decompress
from pulsarium.proto.entry import parse_broker_metadata, parse_metadata, payload_of
from pulsarium.proto.errors import ProtocolError
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.numbers import signed
from pulsarium.proto.text import text_of

ENTRIES: Final = 50  # at once
MESSAGES: Final = 1000  # of all batches together
PAYLOAD: Final = 4096  # bytes of each message, unless ?full=true
FULL: Final = 1 << 20  # bytes of each message with ?full=true
BYTES: Final = 4 << 20  # of payloads, keys and properties in one answer, and a message more
TEXT: Final = 4096  # characters of a key, name or property
PAIRS: Final = 100  # properties of a message, or keys of its encryption
WHITE: Final = dict.fromkeys(map(ord, "\n\r\t"))  # characters that are printable, for a reader

POSITION: Final = re.compile(r"(-?[0-9]{1,18}):(-?[0-9]{1,18})(?::([0-9]{1,9}))?")

Json = dict[str, Any]


@route("GET", "/pulsarium/messages/{domain}/{tenant}/{namespace}/{topic}", needs=PEEK)
async def get_messages(call: Call) -> HttpReply:
    """Return messages from ?start= on: earliest, latest (the last page) or LEDGER:ENTRY[:BATCH]; ?limit= entries.

    With ?subscription=, say of each message whether the subscription has acknowledged it. ?full=true cuts payloads at
    1 MiB only. A page that ends inside a batch has a `next` there.
    """
    topic = call.broker.topics.find(call.topic_anywhere)
    if not isinstance(topic, PersistentTopic):
        raise AdminError(405, "A non-persistent topic keeps no messages; watch its consumers instead")
    entries = Visible(topic.ledger.ledgers.values())
    start = call.query.get("start", "latest")
    first, index = _number_of(topic, start, len(entries), _limit(call)), _batch_index(start)
    subscription = topic.subscriptions.get(call.query.get("subscription", ""))
    found: list[Json] = []
    number, slice_, left = first, Slice(), BYTES
    following: str | None = None
    while following is None and number < min(first + _limit(call), len(entries)) and len(found) < MESSAGES and left > 0:
        position = entries[number]
        number += 1
        try:
            entry = await entry_at(topic.ledger, position)
        except StorageError as error:
            found.append({"id": str(position), "damage": str(error)})
            continue
        if entry is not None:
            of = subscription if isinstance(subscription, PersistentSubscription) else None
            metadata, payload = await aside(partial(_opened, entry), size_of(entry))
            shown = _Entry(call, topic, position, entry, of)
            for message, size in shown.messages(metadata, payload, index):
                if message and (len(found) >= MESSAGES or left <= 0):
                    following = f"{position}:{message['batchIndex']}" if "batchIndex" in message else str(position)
                    break
                found += [message] if message else []
                left -= size
                await slice_.pause()
        index = 0
        await slice_.pause()
    if following is None and number < len(entries):
        following = str(entries[number])
    return json_reply(
        {
            "messages": found,
            "first": first,
            "total": len(entries),
            "next": following,
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
    found = POSITION.fullmatch(text)
    if found is None:
        raise AdminError(400, f"start is {text!r}; it must be earliest, latest or LEDGER:ENTRY[:BATCH]")
    return Position(int(found[1]), max(0, int(found[2])))


def _batch_index(start: str) -> int:
    found = POSITION.fullmatch(start)
    return 0 if found is None else int(found[3] or 0)


class _Entry:
    """An entry, which is a message, a batch, a chunk or a marker."""

    def __init__(
        self,
        call: Call,
        topic: PersistentTopic,
        position: Position,
        entry: bytes,
        subscription: PersistentSubscription | None,
    ) -> None:
        self._call = call
        self._topic = topic
        self._position = position
        self._entry = entry
        self._subscription = subscription

    def messages(
        self, metadata: pb.MessageMetadata | None, payload: bytes | ProtocolError, first: int
    ) -> Iterator[tuple[Json, int]]:
        """Yield the messages of the entry from batch index `first` on, each with its bytes, and {} for earlier ones.

        An entry without messages that clients see is shown itself.
        """
        base: Json = {"id": str(self._position), "size": len(self._entry)}
        if metadata is not None:
            base |= self._about(metadata)
            if metadata.HasField("marker_type"):
                yield base | {"marker": metadata.marker_type}, 0
                return
        if metadata is None or isinstance(payload, ProtocolError):
            yield base | {"damage": str(payload)}, 0
        elif metadata.encryption_keys:
            yield base | self._state(-1) | _bytes(payload, self._most), self._size(metadata, payload)
        elif not metadata.HasField("num_messages_in_batch"):
            value = self._value(metadata, metadata, payload)
            yield base | _of_message(metadata) | self._state(-1) | value, self._size(metadata, payload)
        else:
            try:
                yield from self._batch(base, metadata, payload, first)
            except ProtocolError as error:
                yield base | {"damage": str(error)}, 0

    def _batch(
        self, base: Json, metadata: pb.MessageMetadata, payload: bytes, first: int
    ) -> Iterator[tuple[Json, int]]:
        count = metadata.num_messages_in_batch
        for index, (single, body) in enumerate(messages_of(payload, count)):
            if index < first:
                yield {}, 0
                continue
            of_batch = {"batchIndex": index, "batchSize": count}
            value = self._value(metadata, single, body)
            yield base | of_batch | _of_message(single) | self._state(index) | value, self._size(single, body)

    def _size(self, single: pb.MessageMetadata | pb.SingleMessageMetadata, payload: bytes) -> int:
        return single.ByteSize() + min(len(payload), self._most)

    @property
    def _most(self) -> int:
        """Return the most bytes of a payload that are shown."""
        return FULL if self._call.flag("full") else PAYLOAD

    def _about(self, metadata: pb.MessageMetadata) -> Json:
        found: Json = {
            "producer": _text(metadata.producer_name),
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
            found["chunk"] = {"id": metadata.chunk_id, "of": metadata.num_chunks_from_msg, "uuid": _text(metadata.uuid)}
        if metadata.encryption_keys:
            some = islice(metadata.encryption_keys, PAIRS)
            keys = [{"name": _text(each.key), "value": _base64(each.value)} for each in some]
            found["encryption"] = {"algorithm": _text(metadata.encryption_algo), "keys": keys}
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
            found["replicatedFrom"] = _text(metadata.replicated_from)
        return found

    def _state(self, index: int) -> Json:
        """Return whether the subscription has acknowledged the message."""
        if self._subscription is None:
            return {}
        cursor = self._subscription.cursor
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
            return _bytes(payload, self._most)
        schema = self._schema(metadata)
        if schema is not None and len(payload) <= self._most:
            key = single.partition_key if single.HasField("partition_key") else None
            try:
                return {"kind": schema.type, "value": decoded(schema, payload, key), "bytes": len(payload)}
            except (ProtocolError, ValueError) as error:
                return {**_bytes(payload, self._most), "undecoded": f"{schema.type}: {error}"}
        return _bytes(payload, self._most)

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


def _opened(entry: bytes) -> tuple[pb.MessageMetadata | None, bytes | ProtocolError]:
    """Return the metadata of an entry and its decompressed payload, or the error in the place of either."""
    metadata = None
    try:
        metadata = parse_metadata(entry)
        payload = payload_of(entry)
        if not metadata.encryption_keys:
            payload = decompress(metadata.compression, payload, metadata.uncompressed_size)
    except ProtocolError as error:
        return metadata, error
    return metadata, payload
