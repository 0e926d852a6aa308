"""A received message."""

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
    """A received message, with the methods of the official Python client."""

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
        """Combine a message of the metadata of its entry, and of its own metadata (`single`) in a batch."""
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
        """Return the metadata of the message's entry, as it is stored."""
        return self._metadata

    def broker_metadata(self) -> pb.BrokerEntryMetadata | None:
        """Return the metadata that the broker added to the entry (PIP-70), or None if it does not show it (PIP-90)."""
        return self._broker_metadata

    @property
    def _own(self) -> pb.SingleMessageMetadata | pb.MessageMetadata:
        return self._metadata if self._single is None else self._single

    def data(self) -> bytes:
        """Return the content as bytes."""
        return self._data

    def value(self) -> T:
        """Return the content as a value of the consumer's or reader's schema.

        A message without a value raises `InvalidMessage`, see `has_null_value`. With a KeyValueSchema that separates
        the key, the result is a pair without a value, as in Java clients.

        Raises:
            InvalidMessage: The content does not fit the schema, or the message has no value. With AvroSchema, also
                when the broker did not send the writer's schema within `operation_timeout`.
        """
        null_value = self._own.null_value
        if null_value and self._schema is not BYTES and not self._schema.separates_key:
            raise InvalidMessage(f"{self._id}: the message has no value: check has_null_value() first")
        if isinstance(self._writer, PulsarError):
            raise InvalidMessage(f"{self._id}: the schema of the message is unknown: {self._writer}") from self._writer
        value: T
        if self._schema.separates_key:
            value = self._schema.decode_apart(self.key_bytes(), None if null_value else self._data, self._writer)
        else:
            value = self._schema.decode(self._data, self._writer)
        return value

    def _written_with(self, writer: SchemaInfo | PulsarError) -> None:
        """Set the schema of the message's `schema_version`, or the reason for its absence. Called by the consumer."""
        self._writer = writer

    def has_null_value(self) -> bool:
        """Return whether the message was sent without a value, which deletes its key from a compacted topic."""
        return self._own.null_value

    def properties(self) -> dict[str, str]:
        """Return the properties of the application."""
        pairs = self._own.properties
        # A slice, and none of no properties: an iterator of protobuf ends with an exception, which would cost the most.
        return {text_of(pair.key): text_of(pair.value) for pair in pairs[:]} if pairs else {}

    def partition_key(self) -> str:
        """Return the key, in base64 if it was sent as bytes, or "" without a key."""
        return text_of(self._own.partition_key)

    def has_partition_key(self) -> bool:
        """Return whether the message has a key, even an empty one."""
        return self._own.HasField("partition_key")

    def key_bytes(self) -> bytes | None:
        """Return the key as bytes, decoded from base64 if it was sent as bytes, or None without a key."""
        own = self._own
        if not own.HasField("partition_key"):
            return None
        key: str | bytes = own.partition_key  # bytes if the key is not valid UTF-8
        if own.partition_key_b64_encoded:
            with suppress(ValueError):
                return base64.b64decode(key, validate=True)
        return key if isinstance(key, bytes) else key.encode()

    def has_base64_encoded_key(self) -> bool:
        """Return whether the key was sent as bytes."""
        return self._own.partition_key_b64_encoded

    def ordering_key(self) -> str:
        """Return the key that Key_Shared uses in place of the partition key, or "".

        Bytes that are not UTF-8 become surrogates.
        """
        return self._own.ordering_key.decode("utf-8", "surrogateescape")

    def event_timestamp(self) -> int:
        """Return the event time of the application, in milliseconds since the epoch, or 0 without one."""
        return self._own.event_time

    def publish_timestamp(self) -> int:
        """Return the time at which the producer sent the message, in milliseconds since the epoch."""
        return self._metadata.publish_time

    def message_id(self) -> MessageId:
        """Return the id of the message."""
        return self._id

    def topic_name(self) -> str:
        """Return the full name of the topic, or of the partition."""
        return self._topic

    def redelivery_count(self) -> int:
        """Return the number of earlier deliveries.

        The broker counts them for Shared and Key_Shared subscriptions only.
        """
        return self._redelivery_count

    def index(self) -> int | None:
        """Return the index of the message in its topic or partition, from 0 (PIP-70).

        None if the broker does not count messages (brokerEntryMetadataInterceptors), or does not show the index to
        clients (exposingBrokerEntryMetadataToClientEnabled).
        """
        kept = self._broker_metadata
        if kept is None or not kept.HasField("index"):
            return None
        if self._id.batch_index < 0:
            return kept.index
        return kept.index - self._id.batch_size + 1 + self._id.batch_index  # a batch has the index of its last message

    def broker_publish_time(self) -> int | None:
        """Return the time of arrival at the broker, in milliseconds since the epoch, or None as for `index`."""
        kept = self._broker_metadata
        return kept.broker_timestamp if kept is not None and kept.HasField("broker_timestamp") else None

    def producer_name(self) -> str:
        """Return the name of the producer."""
        return text_of(self._metadata.producer_name)

    def sequence_id(self) -> int:
        """Return the sequence id that the producer gave the message."""
        single = self._single
        if single is not None and single.HasField("sequence_id"):
            return single.sequence_id
        return self._metadata.sequence_id

    def schema_version(self) -> bytes:
        """Return the version of the schema with which the message was sent, or b"" without a schema."""
        return self._metadata.schema_version

    def __repr__(self) -> str:
        return f"<Message {self._id} of {self._topic}: {len(self._data)} bytes>"
