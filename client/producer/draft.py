"""A message before it is encoded."""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypedDict

from typing_extensions import Unpack

from pulsarium.client.errors import InvalidMessage, MessageTooBig
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.client.producer.receipt import Receipt
from pulsarium.client.schema.schema import Schema, T
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import TxnId
from pulsarium.proto.numbers import LONG_MAX

_MOST_BYTES = 2**31 - 1  # of a content: Pulsar's sizes are 32-bit integers


class MessageOptions(TypedDict, total=False):
    """Options of one message, for `Producer.send`, `submit` and `send_nowait`."""

    partition_key: str | bytes | None
    """The key of the message. It chooses the partition, compaction keeps the newest message of each key, and Key_Shared
    uses the key unless the message has an ordering key. Bytes are sent in base64, as by Java's `keyBytes`, and are
    another key than a text of the same bytes."""
    ordering_key: str | None
    """The key that Key_Shared uses in place of `partition_key`."""
    properties: Mapping[str, str] | None
    """Properties of the application."""
    event_timestamp: int | None
    """The event time of the application, in milliseconds since the epoch."""
    sequence_id: int | None
    """The sequence id, in place of the producer's next one. A broker that deduplicates drops a message whose sequence
    id is not higher than all before. Such a message is sent outside batches."""
    deliver_at: int | datetime | None
    """The time of delivery, in milliseconds since the epoch or as a datetime."""
    deliver_after: float | timedelta | None
    """The delay of delivery, in seconds or as a timedelta."""


_OPTIONS = frozenset(MessageOptions.__annotations__)


@dataclass(slots=True)
class Draft:
    """A message before it is encoded, with its receipt."""

    metadata: pb.SingleMessageMetadata
    content: bytes
    deliver_at: int | None  # in milliseconds since the epoch
    receipt: Receipt
    txn: TxnId | None = None
    """The transaction of the message, or None."""
    bucket: int | None = None
    """The entry bucket of the key in a segment of a scalable topic (PIP-486), or None."""
    bucket_hash: int | None = None
    """The hash of the key that chose the bucket."""

    @property
    def sequence_id(self) -> int:
        """Return the sequence id of the message."""
        return self.metadata.sequence_id

    @property
    def key(self) -> str | None:
        """Return the partition key, or None without one."""
        return self.metadata.partition_key if self.metadata.HasField("partition_key") else None

    @property
    def batch_key(self) -> bytes | str | int | None:
        """Return what the messages of one batch share with `BatchingType.KeyBased`: the key, or the entry bucket."""
        if self.bucket is not None:
            return self.bucket
        return self.metadata.ordering_key if self.metadata.HasField("ordering_key") else self.key

    def message(self, topic: str) -> Message[Any]:
        """Return the message for a `message_router`, without an id and without the metadata of an entry."""
        return Message(topic, MessageId(-1, -1), pb.MessageMetadata(), self.metadata, self.content)


def draft(content: bytes | None, **options: Unpack[MessageOptions]) -> Draft:
    """Return a draft of these bytes. None is a message without a value.

    Raise `MessageTooBig` for more bytes than the protocol can count, and `InvalidMessage` for impossible options.
    """
    if content is not None and len(content) > _MOST_BYTES:
        raise MessageTooBig(f"the message has {len(content)} bytes, the protocol allows {_MOST_BYTES}")
    metadata = pb.SingleMessageMetadata(payload_size=0 if content is None else len(content))
    if content is None:
        metadata.null_value = True
    deliver_at = None
    if options:
        try:
            deliver_at = _fill(metadata, options)
        except (AttributeError, OverflowError, ValueError) as error:
            raise InvalidMessage(f"the options of the message are invalid: {error}") from None
    return Draft(metadata, content or b"", deliver_at, Receipt())


def draft_of(schema: Schema[T], value: T | None, options: MessageOptions) -> Draft:
    """Return a draft of a value. None is a message without a value.

    Raise `InvalidMessage` for impossible options, or for a `partition_key` beside a schema that separates the key.
    """
    if value is None or not schema.separates_key:
        return draft(None if value is None else schema.encode(value), **options)
    if options.get("partition_key") is not None:
        raise InvalidMessage("the key is in the value: leave out partition_key")
    key, content = schema.encode_apart(value)
    message = draft(content, **MessageOptions(**{**options, "partition_key": key}))
    if key is None:
        message.metadata.null_partition_key = True
    return message


def _fill(metadata: pb.SingleMessageMetadata, options: MessageOptions) -> int | None:
    """Set the fields of the metadata, and return the time of delivery in milliseconds since the epoch."""
    if not _OPTIONS.issuperset(options):
        raise TypeError(f"unknown options of a message: {', '.join(sorted(options.keys() - _OPTIONS))}")
    if (partition_key := options.get("partition_key")) is not None:
        if isinstance(partition_key, bytes):
            metadata.partition_key_b64_encoded = True
            partition_key = base64.b64encode(partition_key).decode()
        metadata.partition_key = partition_key
    if (ordering_key := options.get("ordering_key")) is not None:
        metadata.ordering_key = ordering_key.encode("utf-8", "surrogateescape")
    if properties := options.get("properties"):
        for key, value in properties.items():
            metadata.properties.add(key=key, value=value)
    if (event_timestamp := options.get("event_timestamp")) is not None:
        metadata.event_time = event_timestamp
    if (sequence_id := options.get("sequence_id")) is not None:
        metadata.sequence_id = sequence_id
    if "deliver_at" in options or "deliver_after" in options:
        return _deliver_at(options.get("deliver_at"), options.get("deliver_after"))
    return None


def now() -> int:
    """Return the time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def _deliver_at(at: int | datetime | None, after: float | timedelta | None) -> int | None:
    if at is not None and after is not None:
        raise InvalidMessage("deliver_at and deliver_after exclude each other: pass one of them")
    if isinstance(at, datetime):
        at = int(at.timestamp() * 1000)
    if isinstance(after, timedelta):
        after = after.total_seconds()
    if after is not None:
        at = now() + int(after * 1000)
    if at is not None and abs(at) > LONG_MAX:
        raise InvalidMessage(f"the time of delivery, {at} ms since the epoch, is out of range")
    return at
