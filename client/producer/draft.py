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

_MOST_BYTES = 2**31 - 1  # of a content
_MOST_MILLISECONDS = 2**63 - 1  # that the protocol has room for


class MessageOptions(TypedDict, total=False):
    """What `Producer.send` takes beside the value."""

    partition_key: str | bytes | None
    """Chooses the partition, is what compaction goes by, and Key_Shared without an ordering key. Bytes travel in
    base64, as Java's `keyBytes`: not the same key as a text of these bytes."""
    ordering_key: str | None
    """What Key_Shared orders by in place of the key."""
    properties: Mapping[str, str] | None
    """The application's own."""
    event_timestamp: int | None
    """Milliseconds since the epoch, for the application."""
    sequence_id: int | None
    """Its number, in place of the producer's next one; a broker that deduplicates drops what is not higher than all
    before. It never shares a batch with higher ones."""
    deliver_at: int | datetime | None
    """When, in milliseconds since the epoch or as a datetime."""
    deliver_after: float | timedelta | None
    """How long from now on, in seconds or as a timedelta."""


_OPTIONS = frozenset(MessageOptions.__annotations__)


@dataclass(slots=True)
class Draft:
    """A message with what was said of it, and its receipt."""

    metadata: pb.SingleMessageMetadata
    content: bytes
    deliver_at: int | None  # ms since the epoch
    receipt: Receipt
    txn: TxnId | None = None
    """The transaction that it belongs to."""

    @property
    def sequence_id(self) -> int:
        return self.metadata.sequence_id

    @property
    def key(self) -> str | None:
        return self.metadata.partition_key if self.metadata.HasField("partition_key") else None

    @property
    def batch_key(self) -> bytes | str | None:
        """What messages of one batch have in common in BatchingType.KeyBased."""
        return self.metadata.ordering_key if self.metadata.HasField("ordering_key") else self.key

    def message(self, topic: str) -> Message[Any]:
        """What a `message_router` sees: it has no id yet, and nothing that its entry would say."""
        return Message(topic, MessageId(-1, -1), pb.MessageMetadata(), self.metadata, self.content)


def draft(content: bytes | None, **options: Unpack[MessageOptions]) -> Draft:
    """A message of these bytes, None: without a value. InvalidMessage if it makes no sense."""
    if content is not None and len(content) > _MOST_BYTES:
        raise MessageTooBig(f"{len(content)} bytes are more than the protocol has numbers for")
    metadata = pb.SingleMessageMetadata(payload_size=0 if content is None else len(content))
    if content is None:
        metadata.null_value = True
    deliver_at = None
    if options:
        try:
            deliver_at = _fill(metadata, options)
        except (AttributeError, OverflowError, ValueError) as error:
            raise InvalidMessage(f"a message cannot have these options: {error}") from None
    return Draft(metadata, content or b"", deliver_at, Receipt())


def draft_of(schema: Schema[T], value: T | None, options: MessageOptions) -> Draft:
    """A message of a value, None: without one. InvalidMessage if it makes no sense."""
    if value is None or not schema.separates_key:
        return draft(None if value is None else schema.encode(value), **options)
    if options.get("partition_key") is not None:
        raise InvalidMessage("the key is in the value: there cannot be another partition_key")
    key, content = schema.encode_apart(value)
    message = draft(content, **MessageOptions(**{**options, "partition_key": key}))
    if key is None:
        message.metadata.null_partition_key = True
    return message


def _fill(metadata: pb.SingleMessageMetadata, options: MessageOptions) -> int | None:
    """Put the options where they belong, and return when it is to be delivered."""
    if not _OPTIONS.issuperset(options):
        raise TypeError(f"no options of a message: {', '.join(sorted(options.keys() - _OPTIONS))}")
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
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def _deliver_at(at: int | datetime | None, after: float | timedelta | None) -> int | None:
    if at is not None and after is not None:
        raise InvalidMessage("deliver_at or deliver_after, not both")
    if isinstance(at, datetime):
        at = int(at.timestamp() * 1000)
    if isinstance(after, timedelta):
        after = after.total_seconds()
    if after is not None:
        at = now() + int(after * 1000)
    if at is not None and abs(at) > _MOST_MILLISECONDS:
        raise InvalidMessage(f"{at} ms since the epoch are out of range")
    return at
