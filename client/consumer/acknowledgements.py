"""What of each received batch is not acknowledged (PIP-54), and what the broker is told, in groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import anyio
from anyio.abc import TaskGroup

from pulsarium.client.errors import InvalidMessage
from pulsarium.client.message_id import MessageId
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import words_of


class _Batch:
    __slots__ = ("in_transactions", "left", "size")

    def __init__(self, size: int, left: Iterable[int]) -> None:
        self.size = size
        self.left = set(left)
        self.in_transactions: set[int] = set()
        """Those of `left` that were acknowledged in transactions: it is not for others to say."""

    @property
    def is_done(self) -> bool:
        """Whether nothing is to be acknowledged any more."""
        return self.left <= self.in_transactions


class Acknowledgements:
    """Turns acknowledged messages into what ACK says: entries, or with batch index acks what is left of a batch."""

    def __init__(self, *, batch_index_ack_enabled: bool = False) -> None:
        self._by_index = batch_index_ack_enabled
        self._batches: dict[tuple[int, int], _Batch] = {}

    def __contains__(self, entry: tuple[int, int]) -> bool:
        """Whether it is a batch with something unacknowledged."""
        return entry in self._batches

    def __len__(self) -> int:
        """Batches with something unacknowledged."""
        return len(self._batches)

    def received(self, entry: tuple[int, int], size: int, indexes: Iterable[int]) -> None:
        """A batch came, of whose `size` messages these go to the application; again, if it is redelivered."""
        self._batches[entry] = _Batch(size, indexes)

    def individual(self, message_id: MessageId) -> pb.MessageIdData | None:
        """Acknowledge one message, or an entry; what to tell the broker, None for nothing yet.

        A message of a batch that is not known here, because its id was kept by the application or its connection was
        lost, is acknowledged only with batch index acks; otherwise the batch comes again.
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
        """Acknowledge messages, or entries, in a transaction: of batches always single messages.

        InvalidMessage for an id of a batch of which nobody knows the size.
        """
        indexes: dict[MessageId, set[int]] = {}
        for message_id in message_ids:
            entry = MessageId(*message_id.entry, message_id.partition, batch_size=self._size(message_id))
            indexes.setdefault(entry, set()).add(message_id.batch_index)
        return [self._in_transaction(entry, acknowledged) for entry, acknowledged in indexes.items()]

    def cumulative(self, message_id: MessageId, *, in_transaction: bool = False) -> pb.MessageIdData:
        """Acknowledge everything up to a message, with it.

        Without batch index acks only the entries before an unfinished batch; `in_transaction`: also single messages.
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
                ledgerId=message_id.ledger_id, entryId=(message_id.entry_id - 1) % 2**64, partition=message_id.partition
            )
        return rest

    def forget(self, entry: tuple[int, int]) -> None:
        """The batch will come again."""
        self._batches.pop(entry, None)

    def clear(self) -> None:
        """Every batch will come again."""
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
        """Of its batch."""
        batch = self._batches.get(message_id.entry)
        size = message_id.batch_size if batch is None else batch.size
        if not size and message_id.batch_index >= 0:
            raise InvalidMessage(f"{message_id} does not say how many messages its batch has")
        return size


def ack_set(indexes: Iterable[int]) -> list[int]:
    """The bits of these messages, as they go over the wire."""
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
    data = pb.MessageIdData(ledgerId=message_id.ledger_id % 2**64, entryId=message_id.entry_id % 2**64)
    if message_id.partition >= 0:
        data.partition = message_id.partition
    return data


class AckGroup:
    """Collects the ids of individual acknowledgements; a task runs only while there are any."""

    def __init__(
        self, tasks: TaskGroup, send: Callable[[list[pb.MessageIdData]], bool], delay: float = 0.01, most: int = 1000
    ) -> None:
        """`send` must not wait; where it says False there is no connection, and the ids wait for the next.

        `delay`: seconds an acknowledgement may wait for others; `most`: how many wait.
        """
        self._delay = delay
        self._most = most if delay else 1
        self._tasks = tasks
        self._send = send
        self._ids: list[pb.MessageIdData] = []
        self._scope: anyio.CancelScope | None = None

    def __len__(self) -> int:
        """How many wait."""
        return len(self._ids)

    def add(self, message_id: pb.MessageIdData) -> None:
        """Send it soon."""
        self._ids.append(message_id)
        if len(self._ids) >= self._most:
            self.flush()
        elif self._scope is None:
            self._scope = anyio.CancelScope()
            self._tasks.start_soon(self._flush_soon, self._scope)

    def take(self) -> list[pb.MessageIdData]:
        """All of them, for a caller who sends them."""
        ids, self._ids = self._ids, []
        return ids

    def flush(self) -> None:
        """Send what there is."""
        ids = self.take()
        if ids and not self._send(ids):
            self._ids = ids

    def close(self) -> None:
        """Send nothing more."""
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
