"""A message as the application gets it."""

from __future__ import annotations

import base64
from contextlib import suppress
from typing import Any, Generic

from pulsarium.client.errors import InvalidMessage, PulsarError
from pulsarium.client.message_id import MessageId
from pulsarium.client.schema.schema import BYTES, Schema, SchemaInfo, T
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import text_of


class Message(Generic[T]):
    """A received message; methods as in the official Python client."""

    __slots__ = (
        "_broker_metadata",
        "_data",
        "_id",
        "_metadata",
        "_redelivery_count",
        "_schema",
        "_single",
        "_topic",
        "_writer",
    )

    def __init__(
        self,
        topic: str,
        message_id: MessageId,
        metadata: pb.MessageMetadata,
        single: pb.SingleMessageMetadata | None,
        data: bytes,
        redelivery_count: int = 0,
        *,
        schema: Schema[Any] = BYTES,
        broker_metadata: pb.BrokerEntryMetadata | None = None,
    ) -> None:
        """`metadata` is the entry's; `single` that of the message where it has its own, in a batch."""
        self._topic = topic
        self._id = message_id
        self._metadata = metadata
        self._single = single
        self._data = data
        self._redelivery_count = redelivery_count
        self._schema = schema
        self._broker_metadata = broker_metadata
        self._writer: SchemaInfo | PulsarError | None = None

    def entry_metadata(self) -> pb.MessageMetadata:
        """What holds for all of its entry, as it was stored."""
        return self._metadata

    def broker_metadata(self) -> pb.BrokerEntryMetadata | None:
        """What the broker wrote in front of its entry (PIP-70), where it shows that (PIP-90)."""
        return self._broker_metadata

    @property
    def _own(self) -> pb.SingleMessageMetadata | pb.MessageMetadata:
        return self._metadata if self._single is None else self._single

    def data(self) -> bytes:
        """What was sent."""
        return self._data

    def value(self) -> T:
        """What was sent, as the schema of the consumer or reader gives it.

        InvalidMessage if the bytes are no such value, or there is none: `has_null_value` tells (of a separated
        KeyValueSchema it is a pair without a value, as in Java clients); and with AvroSchema if
        the broker did not say, within `operation_timeout`, with which schema it was written.
        """
        null_value = self._own.null_value
        if null_value and self._schema is not BYTES and not self._schema.separates_key:
            raise InvalidMessage(f"{self._id}: sent without a value")
        if isinstance(self._writer, PulsarError):
            raise InvalidMessage(f"{self._id}: nobody knows the schema it was written with: {self._writer}")
        value: T
        if self._schema.separates_key:
            value = self._schema.decode_apart(self.key_bytes(), None if null_value else self._data, self._writer)
        else:
            value = self._schema.decode(self._data, self._writer)
        return value

    def _written_with(self, writer: SchemaInfo | PulsarError) -> None:
        """For the consumer: the schema of the message's `schema_version`, or why there is none."""
        self._writer = writer

    def has_null_value(self) -> bool:
        """Whether it was sent without a value, which deletes its key in a compacted topic."""
        return self._own.null_value

    def properties(self) -> dict[str, str]:
        """The application's own properties of it."""
        pairs = self._own.properties
        # a slice, and none of nothing: protobuf's iteration ends with an exception, which costs more than all else here
        return {text_of(pair.key): text_of(pair.value) for pair in pairs[:]} if pairs else {}

    def partition_key(self) -> str:
        """The key, "" without one; in base64 where it was sent as bytes."""
        return text_of(self._own.partition_key)

    def has_partition_key(self) -> bool:
        """Whether it has a key, even an empty one."""
        return self._own.HasField("partition_key")

    def key_bytes(self) -> bytes | None:
        """The key as bytes, also where it was sent as such; None without one."""
        own = self._own
        if not own.HasField("partition_key"):
            return None
        key: str | bytes = own.partition_key  # bytes where it is no UTF-8
        if own.partition_key_b64_encoded:
            with suppress(ValueError):
                return base64.b64decode(key, validate=True)
        return key if isinstance(key, bytes) else key.encode()

    def has_base64_encoded_key(self) -> bool:
        """Whether the key was sent as bytes."""
        return self._own.partition_key_b64_encoded

    def ordering_key(self) -> str:
        """What Key_Shared orders by in place of the key, "" without one; bytes that are no UTF-8 as surrogates."""
        return self._own.ordering_key.decode("utf-8", "surrogateescape")

    def event_timestamp(self) -> int:
        """Milliseconds since the epoch as the application said, 0 if it did not."""
        return self._own.event_time

    def publish_timestamp(self) -> int:
        """When it was sent, in milliseconds since the epoch."""
        return self._metadata.publish_time

    def message_id(self) -> MessageId:
        """Where it stands."""
        return self._id

    def topic_name(self) -> str:
        """Its topic, in full."""
        return self._topic

    def redelivery_count(self) -> int:
        """How often the broker had delivered it before, as far as it counts that: on Shared and Key_Shared."""
        return self._redelivery_count

    def index(self) -> int | None:
        """Its number in its topic or partition, from 0 (PIP-70).

        None from a broker that does not count (brokerEntryMetadataInterceptors), or does not tell clients
        (exposingBrokerEntryMetadataToClientEnabled).
        """
        kept = self._broker_metadata
        if kept is None or not kept.HasField("index"):
            return None
        if self._id.batch_index < 0:
            return kept.index
        return kept.index - self._id.batch_size + 1 + self._id.batch_index  # an entry's index is its last message's

    def broker_publish_time(self) -> int | None:
        """When it came to the broker, in milliseconds since the epoch; None as of `index`."""
        kept = self._broker_metadata
        return kept.broker_timestamp if kept is not None and kept.HasField("broker_timestamp") else None

    def producer_name(self) -> str:
        """Who sent it."""
        return text_of(self._metadata.producer_name)

    def sequence_id(self) -> int:
        """Its number among those of its producer."""
        single = self._single
        if single is not None and single.HasField("sequence_id"):
            return single.sequence_id
        return self._metadata.sequence_id

    def schema_version(self) -> bytes:
        """The version of the schema it was sent with, b"" without one."""
        return self._metadata.schema_version

    def __repr__(self) -> str:
        return f"<Message {self._id} of {self._topic}: {len(self._data)} bytes>"
