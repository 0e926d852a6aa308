"""Collect the chunks of messages (PIP-37)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import anyio
from anyio.abc import TaskGroup

from pulsarium.client.consumer.options import ReceivingOptions
from pulsarium.client.entry.decoding import Decoded, UnreadableEntry
from pulsarium.client.message_id import MessageId
from pulsarium.proto.generated import PulsarApi_pb2 as pb


class Whole(NamedTuple):
    """The chunks of a complete message, in their order, to be joined by `join`."""

    message_id: MessageId
    chunks: list[Decoded]


class _Pending:
    """A message of which the first chunks have arrived."""

    __slots__ = ("chunks", "count", "ids", "room", "since")

    def __init__(self, first: pb.MessageMetadata, since: float) -> None:
        self.count = first.num_chunks_from_msg
        self.room = first.total_chunk_msg_size  # bytes that are still to come
        self.since = since
        self.ids: list[MessageId] = []
        self.chunks: list[Decoded] = []


class Chunks:
    """Collect the chunks of messages, as Java's ConsumerImpl does. A task runs only while a message is incomplete."""

    def __init__(
        self, options: ReceivingOptions[Any], tasks: TaskGroup, acknowledge: Callable[[Sequence[MessageId]], None]
    ) -> None:
        """Make an empty collection. `acknowledge` acknowledges the chunks of a dropped message, and must not wait."""
        self._most = options.max_pending_chunked_message
        self._acknowledges_oldest = options.auto_ack_oldest_chunked_message_on_queue_full
        self._expiry = options.expire_time_of_incomplete_chunked_message
        self._tasks = tasks
        self._acknowledge = acknowledge
        self._pending: dict[str, _Pending] = {}  # by uuid, the oldest first
        self._scope: anyio.CancelScope | None = None

    def __len__(self) -> int:
        """Return the number of incomplete messages."""
        return len(self._pending)

    @property
    def first(self) -> MessageId | None:
        """Return the first chunk of all incomplete messages, or None."""
        return min((pending.ids[0] for pending in self._pending.values()), default=None)

    def add(self, message_id: MessageId, chunk: Decoded, max_message_size: int) -> Whole | None:
        """Add a chunk, and return its message if the chunk completes it.

        Raise `UnreadableEntry` when the chunk's sizes contradict `max_message_size` in bytes, the limit of the broker,
        and when the message has more bytes than its first chunk says. Its earlier chunks are then acknowledged.
        """
        metadata = chunk.metadata
        _check(chunk, max_message_size)
        uuid, number = metadata.uuid, metadata.chunk_id
        if number == 0:
            self._begin(message_id, metadata)
        pending = self._pending.get(uuid)
        if pending is None or number != len(pending.ids):
            self._out_of_order(message_id, metadata)
            return None
        if len(chunk.payload) > pending.room:
            self._drop(uuid, acknowledge=True)
            raise UnreadableEntry(f"{message_id}: the chunks have more bytes than their message", _CORRUPT)
        pending.room -= len(chunk.payload)
        pending.ids.append(message_id)
        pending.chunks.append(chunk)
        if len(pending.ids) < pending.count:
            return None
        self._drop(uuid, acknowledge=False)
        entries = tuple(one.entry for one in pending.ids)
        first = MessageId(*entries[0], message_id.partition)
        own = MessageId(*entries[-1], message_id.partition, first_chunk=first, chunks=entries)
        return Whole(own, pending.chunks)

    def fail(self, metadata: pb.MessageMetadata, *, acknowledge: bool) -> bool:
        """Drop the message of a chunk that cannot be decrypted. Return False when the message was dropped before."""
        if metadata.num_chunks_from_msg <= 1:
            return True
        known = metadata.uuid in self._pending
        if known:
            self._drop(metadata.uuid, acknowledge=acknowledge)
        return known or metadata.chunk_id == 0

    def clear(self) -> None:
        """Drop all incomplete messages, without acknowledging them."""
        self._pending.clear()
        self._rest()

    # ---- inside

    def _begin(self, message_id: MessageId, metadata: pb.MessageMetadata) -> None:
        """Begin a message.

        Drop an earlier one with the same uuid, which is redelivered, or sent again by its producer.
        """
        old = self._pending.get(metadata.uuid)
        if old is not None:
            self._drop(metadata.uuid, acknowledge=message_id not in old.ids)
        if 0 < self._most <= len(self._pending):
            self._drop(next(iter(self._pending)), acknowledge=self._acknowledges_oldest)
        self._pending[metadata.uuid] = _Pending(metadata, anyio.current_time())
        if self._expiry > 0 and self._scope is None:
            self._scope = anyio.CancelScope()
            self._tasks.start_soon(self._expire, self._scope)

    def _out_of_order(self, message_id: MessageId, metadata: pb.MessageMetadata) -> None:
        pending = self._pending.get(metadata.uuid)
        if pending is not None and metadata.chunk_id < len(pending.ids):
            if message_id not in pending.ids:  # sent twice; a chunk that was delivered twice is needed
                self._acknowledge([message_id])
            return
        if pending is not None:  # a chunk is missing
            self._drop(metadata.uuid, acknowledge=False)
        if 0 < self._expiry < time.time() - metadata.publish_time / 1000:
            self._acknowledge([message_id])

    def _drop(self, uuid: str, *, acknowledge: bool) -> None:
        pending = self._pending.pop(uuid)
        if not self._pending:
            self._rest()
        if acknowledge and pending.ids:
            self._acknowledge(pending.ids)

    def _rest(self) -> None:
        if self._scope is not None:
            self._scope.cancel()
            self._scope = None

    async def _expire(self, scope: anyio.CancelScope) -> None:
        with scope:
            while self._pending:
                oldest = next(iter(self._pending.values()))
                await anyio.sleep_until(oldest.since + self._expiry)
                end = anyio.current_time() - self._expiry
                for uuid in [uuid for uuid, pending in self._pending.items() if pending.since <= end]:
                    self._drop(uuid, acknowledge=True)


_CORRUPT = pb.CommandAck.UncompressedSizeCorruption


def _check(chunk: Decoded, max_message_size: int) -> None:
    """Raise `UnreadableEntry` for impossible sizes.

    No chunk is empty, so a message needs no more memory than the bytes it claims.
    """
    metadata = chunk.metadata
    count, total = metadata.num_chunks_from_msg, metadata.total_chunk_msg_size
    if not (0 <= metadata.chunk_id < count <= total <= count * max_message_size and chunk.payload):
        raise UnreadableEntry(f"chunk {metadata.chunk_id} of {count} with {total} bytes in all is impossible", _CORRUPT)
