"""Track the unacknowledged messages of batches (PIP-54), and send acknowledgements in groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import anyio
from anyio.abc import TaskGroup

from pulsarium.client.errors import InvalidMessage
from pulsarium.client.message_id import MessageId
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import words_of
from pulsarium.proto.numbers import unsigned


class _Batch:
    __slots__ = ("in_transactions", "left", "size")

    def __init__(self, size: int, left: Iterable[int]) -> None:
        self.size = size
        self.left = set(left)
        self.in_transactions: set[int] = set()
        """Batch indexes of `left` that transactions have acknowledged. Other acknowledgements leave them alone."""

    @property
    def is_done(self) -> bool:
        """Return whether all messages are acknowledged, in a transaction or without."""
        return self.left <= self.in_transactions


class Acknowledgements:
    """Convert acknowledged messages to the ids of ACK: entries, or batches with their unacknowledged batch indexes."""

    def __init__(self, *, batch_index_ack_enabled: bool = False) -> None:
        self._by_index = batch_index_ack_enabled
        self._batches: dict[tuple[int, int], _Batch] = {}

    def __contains__(self, entry: tuple[int, int]) -> bool:
        """Return whether the entry is a batch with unacknowledged messages."""
        return entry in self._batches

    def __len__(self) -> int:
        """Return the number of batches with unacknowledged messages."""
        return len(self._batches)

    def received(self, entry: tuple[int, int], size: int, indexes: Iterable[int]) -> None:
        """Track a batch of `size` messages, of which these indexes are delivered.

        A redelivered batch is tracked anew.
        """
        self._batches[entry] = _Batch(size, indexes)

    def left(self, entry: tuple[int, int]) -> set[int]:
        """Return the unacknowledged indexes of a batch, or an empty set for other entries."""
        batch = self._batches.get(entry)
        return set() if batch is None else batch.left - batch.in_transactions

    def individual(self, message_id: MessageId) -> pb.MessageIdData | None:
        """Acknowledge one message or entry, and return the id for the broker.

        Return None while the batch has unacknowledged messages.

        A batch may be unknown here, because the application stored its id or the connection was lost. Its message is
        then acknowledged only with batch index acknowledgements. Otherwise the broker redelivers the batch.
        """
        entry, index = message_id.entry, message_id.batch_index
        if index < 0:
            self._batches.pop(entry, None)
            return _whole(message_id)
        batch = self._batches.get(entry)
        if batch is None:
            batch = _Batch(message_id.batch_size, range(message_id.batch_size))
            batch.left.discard(index)
            known = self._by_index or batch.size == 1
            return self._rest(message_id, batch) if known and batch.size else None
        batch.left.discard(index)
        if batch.is_done:
            del self._batches[entry]
        return self._rest(message_id, batch)

    def in_transaction(self, message_ids: Iterable[MessageId]) -> list[pb.MessageIdData]:
        """Acknowledge messages or entries in a transaction, and return the ids for the broker.

        An id in a batch has batch indexes.

        Raise `InvalidMessage` for an id without batch size of a batch that is unknown here.
        """
        indexes: dict[MessageId, set[int]] = {}
        for message_id in message_ids:
            entry = MessageId(*message_id.entry, message_id.partition, batch_size=self._size(message_id))
            indexes.setdefault(entry, set()).add(message_id.batch_index)
        return [self._in_transaction(entry, acknowledged) for entry, acknowledged in indexes.items()]

    def cumulative(self, message_id: MessageId, *, in_transaction: bool = False) -> pb.MessageIdData:
        """Acknowledge everything up to a message, the message included, and return the id for the broker.

        Without batch index acknowledgements, the id is that of the entry before an incomplete batch. With
        `in_transaction`, the id always has batch indexes.
        """
        entry, index = message_id.entry, message_id.batch_index
        for earlier in [other for other in self._batches if other < entry]:
            del self._batches[earlier]
        size = self._size(message_id) if in_transaction else message_id.batch_size
        batch = self._batches.get(entry) or _Batch(size, range(size))
        batch.left = {other for other in batch.left if other > index >= 0}
        if batch.is_done:
            self._batches.pop(entry, None)
        rest = _rest(message_id, batch) if in_transaction else self._rest(message_id, batch)
        if rest is None:
            return pb.MessageIdData(
                ledgerId=message_id.ledger_id, entryId=unsigned(message_id.entry_id - 1), partition=message_id.partition
            )
        return rest

    def forget(self, entry: tuple[int, int]) -> None:
        """Stop tracking a batch, because the broker redelivers the batch."""
        self._batches.pop(entry, None)

    def clear(self) -> None:
        """Stop tracking all batches, because the broker redelivers them."""
        self._batches.clear()

    def _rest(self, message_id: MessageId, batch: _Batch) -> pb.MessageIdData | None:
        return _rest(message_id, batch) if self._by_index or batch.is_done else None

    def _in_transaction(self, entry: MessageId, indexes: set[int]) -> pb.MessageIdData:
        if indexes == {-1}:
            self._batches.pop(entry.entry, None)
            return _whole(entry)
        batch = self._batches.get(entry.entry)
        if batch is not None:
            batch.in_transactions |= indexes
            if batch.is_done:
                del self._batches[entry.entry]
        return _rest(entry, _Batch(entry.batch_size, set(range(entry.batch_size)) - indexes))

    def _size(self, message_id: MessageId) -> int:
        """Return the size of the message's batch. Raise `InvalidMessage` when the size is unknown."""
        batch = self._batches.get(message_id.entry)
        size = message_id.batch_size if batch is None else batch.size
        if not size and message_id.batch_index >= 0:
            raise InvalidMessage(f"{message_id} lacks the size of its batch: acknowledge the message itself")
        return size


def ack_set(indexes: Iterable[int]) -> list[int]:
    """Return the bits of these batch indexes, in 64-bit words."""
    bits = 0
    for index in indexes:
        bits |= 1 << index
    return words_of(bits)


def _rest(message_id: MessageId, batch: _Batch) -> pb.MessageIdData:
    data = _whole(message_id)
    if batch.left:
        data.ack_set.extend(ack_set(batch.left))
        data.batch_size = batch.size
    return data


def _whole(message_id: MessageId) -> pb.MessageIdData:
    data = pb.MessageIdData(ledgerId=unsigned(message_id.ledger_id), entryId=unsigned(message_id.entry_id))
    if message_id.partition >= 0:
        data.partition = message_id.partition
    return data


class AckGroup:
    """Collect individual acknowledgements, and send them together. A task runs only while acknowledgements wait."""

    def __init__(
        self, tasks: TaskGroup, send: Callable[[list[pb.MessageIdData]], bool], delay: float = 0.01, most: int = 1000
    ) -> None:
        """Send acknowledgements after `delay` seconds, or when `most` of them wait.

        `send` must not wait. When `send` returns False, the connection is lost, and the acknowledgements wait for the
        next one.
        """
        self._delay = delay
        self._most = most if delay else 1
        self._tasks = tasks
        self._send = send
        self._ids: list[pb.MessageIdData] = []
        self._scope: anyio.CancelScope | None = None

    def __len__(self) -> int:
        """Return the number of acknowledgements that wait."""
        return len(self._ids)

    def add(self, message_id: pb.MessageIdData) -> None:
        """Add an acknowledgement, which is sent after the delay."""
        self._ids.append(message_id)
        if len(self._ids) >= self._most:
            self.flush()
        elif self._scope is None:
            self._scope = anyio.CancelScope()
            self._tasks.start_soon(self._flush_soon, self._scope)

    def take(self) -> list[pb.MessageIdData]:
        """Return all acknowledgements that wait, and forget them. The caller sends them."""
        ids, self._ids = self._ids, []
        return ids

    def flush(self) -> None:
        """Send all acknowledgements that wait."""
        ids = self.take()
        if ids and not self._send(ids):
            self._ids = ids

    def close(self) -> None:
        """Drop all acknowledgements, and stop the task."""
        self._ids.clear()
        if self._scope is not None:
            self._scope.cancel()

    async def _flush_soon(self, scope: anyio.CancelScope) -> None:
        try:
            with scope:
                await anyio.sleep(self._delay)
        finally:
            self._scope = None
        self.flush()
