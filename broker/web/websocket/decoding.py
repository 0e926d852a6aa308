"""Messages of an entry, as WebSocket consumers see them."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pulsarium.broker.web.websocket.java import time_text
from pulsarium.proto import batch, entry
from pulsarium.proto.compression import AT_ONCE, decompress
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import MessageId
from pulsarium.proto.text import text_of

MOST_CHUNKED = 10  # messages whose chunks are not complete
MOST_CHUNKED_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """A message for a client. `context` is what the client needs to decrypt the payload itself."""

    id: MessageId
    metadata: pb.MessageMetadata
    single: pb.SingleMessageMetadata | None
    payload: bytes
    redelivery_count: int
    context: dict[str, Any] | None = None

    @property
    def key(self) -> str | None:
        described = self.metadata if self.single is None else self.single
        return text_of(described.partition_key) if described.HasField("partition_key") else None

    @property
    def properties(self) -> dict[str, str]:
        described = self.metadata if self.single is None else self.single
        return {text_of(each.key): text_of(each.value) for each in described.properties}

    @property
    def event_time(self) -> int:
        """Return the event time in milliseconds since the epoch, or 0."""
        return self.metadata.event_time if self.single is None else self.single.event_time

    def json(self, *, with_context: bool) -> dict[str, Any]:
        """Return the frame of this message."""
        frame: dict[str, Any] = {
            "messageId": base64.b64encode(self.id.to_bytes()).decode(),
            "payload": base64.b64encode(self.payload).decode(),
            "properties": self.properties,
            "publishTime": time_text(self.metadata.publish_time),
            "redeliveryCount": self.redelivery_count,
        }
        if self.event_time:
            frame["eventTime"] = time_text(self.event_time)
        if with_context and self.context is not None:
            frame["encryptionContext"] = self.context
        if self.key is not None:
            frame["key"] = self.key
        return frame


class EntryPlace(NamedTuple):
    """The place of an entry, and what else its MESSAGE says of it."""

    ledger_id: int
    entry_id: int
    partition: int
    redelivery_count: int
    ack_set: Sequence[int]
    permits: int = 1  # to give back for an entry that cannot be read: what MESSAGE says (PIP-491), or 1

    def id(self, batch_index: int = -1, batch_size: int = 0) -> MessageId:
        return MessageId(self.ledger_id, self.entry_id, self.partition, batch_index, batch_size)


class EntryDecoder:
    """Messages of entries, and chunks that wait for the rest of their message."""

    def __init__(self) -> None:
        self._chunked: dict[str, list[tuple[MessageId, bytes]]] = {}

    @staticmethod
    def takes_long(stored: bytes) -> bool:
        """Return whether a step of the event loop cannot take an entry apart. Raise `EntryError` for a broken one."""
        metadata = entry.parse_metadata(stored)
        return metadata.num_messages_in_batch > batch.MOST_AT_ONCE or metadata.uncompressed_size > AT_ONCE

    def messages(self, place: EntryPlace, stored: bytes) -> Iterator[ReceivedMessage]:
        """Yield the messages of an entry that are to be delivered. Raise `EntryError` and its kin for a broken one."""
        parts = entry.split(stored)
        metadata, payload = entry.parse_metadata(stored), parts.payload
        if metadata.encryption_keys:
            yield ReceivedMessage(place.id(), metadata, None, payload, place.redelivery_count, _context(metadata))
            return
        message_id = place.id()
        if metadata.num_chunks_from_msg > 1:
            whole = self._joined(place, metadata, payload)
            if whole is None:
                return
            message_id, payload = whole
        payload = decompress(metadata.compression, payload, metadata.uncompressed_size)
        if not metadata.HasField("num_messages_in_batch"):
            yield ReceivedMessage(message_id, metadata, None, payload, place.redelivery_count)
            return
        count = metadata.num_messages_in_batch
        for index, (single, data) in enumerate(batch.messages_of(payload, count)):
            if not single.compacted_out and _is_due(index, place.ack_set):
                yield ReceivedMessage(place.id(index, count), metadata, single, data, place.redelivery_count)

    def _joined(
        self, place: EntryPlace, metadata: pb.MessageMetadata, payload: bytes
    ) -> tuple[MessageId, bytes] | None:
        """Return a chunked message whose last chunk this is, with the first chunk in its id."""
        name = metadata.uuid
        if metadata.chunk_id == 0:
            self._chunked.pop(name, None)
            if len(self._chunked) >= MOST_CHUNKED:
                del self._chunked[next(iter(self._chunked))]
            self._chunked[name] = []
        chunks = self._chunked.get(name)
        if chunks is None or len(chunks) != metadata.chunk_id:
            self._chunked.pop(name, None)
            return None
        chunks.append((place.id(), payload))
        if sum(len(data) for _, data in chunks) > MOST_CHUNKED_BYTES:
            del self._chunked[name]
            return None
        if len(chunks) < metadata.num_chunks_from_msg:
            return None
        del self._chunked[name]
        last = MessageId(place.ledger_id, place.entry_id, place.partition, first_chunk=chunks[0][0])
        return last, b"".join(data for _, data in chunks)


def _is_due(index: int, ack_set: Sequence[int]) -> bool:
    if not ack_set:
        return True
    word, bit = divmod(index, 64)
    return word < len(ack_set) and bool(ack_set[word] >> bit & 1)


def _context(metadata: pb.MessageMetadata) -> dict[str, Any]:
    keys = {
        text_of(key.key): {
            "keyValue": base64.b64encode(key.value).decode(),
            "metadata": {text_of(each.key): text_of(each.value) for each in key.metadata},
        }
        for key in metadata.encryption_keys
    }
    return {
        "keys": keys,
        "param": base64.b64encode(metadata.encryption_param).decode(),
        "compressionType": pb.CompressionType.Name(metadata.compression),
        "uncompressedMessageSize": metadata.uncompressed_size,
        "batchSize": metadata.num_messages_in_batch if metadata.HasField("num_messages_in_batch") else None,
        "encrypted": True,
    }
