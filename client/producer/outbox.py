"""What a producer has sent, until the broker has it, and the room for that."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from time import perf_counter

import anyio

from pulsarium.client.connection.connection import Connection
from pulsarium.client.errors import (
    TRANSIENT,
    ConnectError,
    MemoryBufferIsFull,
    MessageTooBig,
    ProducerQueueIsFull,
    PulsarError,
    copy_of,
    error_of,
)
from pulsarium.client.message_id import MessageId
from pulsarium.client.producer.receipt import Receipt
from pulsarium.client.statistics import Sent
from pulsarium.proto.entry import checksum_matches
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import TxnId

NOWHERE = 2**64 - 1  # as the ledger of what the broker had stored before


@dataclass(slots=True, eq=False)
class Messages:
    """What an entry holds, or several that are the chunks of one message."""

    sequence_id: int
    highest_sequence_id: int
    """The same where the entry has only one number."""
    receipts: list[Receipt]
    size: int
    """Bytes of the client's memory."""
    chunks: int = 1
    """How many of its entries have no receipt yet."""
    is_chunked: bool = False
    first_chunk: MessageId | None = None
    is_duplicate: bool = False
    txn: TxnId | None = None
    made: float = field(default_factory=perf_counter)
    """Seconds, of a clock that only runs forward."""


def too_big(entry: bytes, most: int) -> MessageTooBig:
    """For a broker that takes so many bytes."""
    return MessageTooBig(f"{len(entry)} bytes are more than the broker's {most}")


@dataclass(slots=True, eq=False)
class _Unconfirmed:
    """An entry without its receipt."""

    messages: Messages
    entry: bytes


class Outbox:
    """Entries without a receipt, in the order in which they were sent."""

    def __init__(self, partition: int, release: Callable[[int, int], None], counts: Sent) -> None:
        """`release` is told how many messages, of how many bytes, are published or have failed."""
        self._counts = counts
        self.connection: Connection | None = None
        """Where the producer is open now."""
        self.last_sequence_id: int = -1
        self._was_repeated = False  # all of it, on this connection
        self._oldest: _Unconfirmed | None = None  # at the last look
        # One for all entries: it is serialized at once.
        self._command = pb.BaseCommand(type=pb.BaseCommand.SEND)
        self._partition = partition
        self._release = release
        self._unconfirmed: deque[_Unconfirmed] = deque()
        # On a connection the first in a transaction goes alone: brokers may still have to make ready for it, and what
        # is in no transaction would overtake it.
        self._first: _Unconfirmed | None = None
        self._held: list[_Unconfirmed] = []  # behind it
        self._takes_transactions = False

    def pending(self) -> list[Receipt]:
        """One of each entry that has none yet."""
        return [one.messages.receipts[-1] for one in self._unconfirmed]

    def is_torn(self, last: int) -> bool:
        """Whether an entry has numbers up to `last` and others."""
        return any(one.messages.sequence_id <= last < one.messages.highest_sequence_id for one in self._unconfirmed)

    def add(self, messages: Messages, entry: bytes) -> None:
        """Send an entry, now or as soon as there is a connection."""
        unconfirmed = _Unconfirmed(messages, entry)
        self._unconfirmed.append(unconfirmed)
        # As Nagle: alone it goes out now, in a row together with those behind it.
        self._post(unconfirmed, at_once=len(self._unconfirmed) == 1)

    def add_chunks(self, messages: Messages, entries: list[bytes]) -> None:
        """The same for a message in several entries."""
        messages.is_chunked = True
        messages.chunks = len(entries)
        for entry in entries:
            self.add(messages, entry)

    def open_on(self, connection: Connection, producer_id: int) -> None:
        """Send everything again: the producer was opened on this connection."""
        self._command.send.producer_id = producer_id
        self.send_all_on(connection)

    def send_all_on(self, connection: Connection) -> None:
        """Send everything again."""
        self._was_repeated = connection is self.connection
        self._oldest = None
        self.connection = connection
        self._takes_transactions = False
        self._go_on(self._unconfirmed)

    def is_stuck(self) -> bool:
        """Whether the oldest entry is the one of the last call: its receipt is lost, and nothing else will tell."""
        oldest, self._oldest = self._oldest, self._unconfirmed[0] if self._unconfirmed else None
        return oldest is not None and oldest is self._oldest

    def on_receipt(self, receipt: pb.CommandSendReceipt) -> None:
        """The oldest entry has its receipt now, or any that the broker had stored before."""
        if receipt.message_id.ledgerId == NOWHERE:
            self._on_duplicate(receipt.sequence_id)
            return
        head = self._unconfirmed[0].messages if self._unconfirmed else None
        if head is None or receipt.sequence_id < head.sequence_id:
            return  # of an entry that was sent twice
        if receipt.sequence_id > head.sequence_id:
            # Something between was lost: only a new connection makes that good.
            self._reconnect(ConnectError(f"the receipt of message {head.sequence_id} is missing"))
            return
        self._arrived(self._unconfirmed.popleft())
        self._has_receipt(head, MessageId(receipt.message_id.ledgerId, receipt.message_id.entryId, self._partition))

    def on_send_error(self, error: pb.CommandSendError) -> None:
        """An entry was refused: it fails, unless that may pass or it was only damaged on its way.

        A batch is named by its highest number.
        """
        number = error.sequence_id
        refused = next((one for one in self._unconfirmed if one.messages.highest_sequence_id == number), None)
        if refused is None:
            return
        reason = error_of(error.error, str(error.message))
        messages = refused.messages
        if error.error == pb.ChecksumError and not messages.is_chunked and checksum_matches(refused.entry):
            if self.connection is not None and not self._was_repeated:
                self.send_all_on(self.connection)
            else:  # a connection that damages everything, or a broker that only says so
                self._reconnect(ConnectError(*reason.args))
        elif isinstance(reason, TRANSIENT) or (error.error == pb.ChecksumError and messages.is_chunked):
            self._reconnect(ConnectError(*reason.args))  # which sends everything again, as Java clients do
        else:
            self._drop(messages, reason)

    def fail_larger(self, most: int) -> None:
        """Entries that were made for a broker that takes more bytes fail: this one would close the connection."""
        while large := next((one for one in self._unconfirmed if len(one.entry) > most), None):
            self._drop(large.messages, too_big(large.entry, most))

    def fail(self, messages: Messages, error: PulsarError) -> None:
        """These messages are not published."""
        for receipt in messages.receipts:
            receipt._fail(copy_of(error))
        self._counts.errors += len(messages.receipts)
        self._release(len(messages.receipts), messages.size)

    def fail_all(self, error: PulsarError) -> None:
        """Nothing more is sent."""
        self.connection = None
        self._go_on(())
        while self._unconfirmed:
            messages = self._unconfirmed.popleft().messages
            if messages.receipts and not messages.receipts[0].is_done():  # of chunks only once
                self.fail(messages, error)

    def _drop(self, messages: Messages, error: PulsarError) -> None:
        self._unconfirmed = deque(one for one in self._unconfirmed if one.messages is not messages)
        self._held = [one for one in self._held if one.messages is not messages]
        self.fail(messages, error)
        if self._first is not None and self._first.messages is messages:
            self._go_on(self._held)

    def _arrived(self, unconfirmed: _Unconfirmed) -> None:
        """The broker has it."""
        if unconfirmed is self._first:
            self._takes_transactions = True
            self._go_on(self._held)

    def _go_on(self, entries: Iterable[_Unconfirmed]) -> None:
        """Send these, up to the next that has to go alone."""
        self._first, self._held = None, []
        for unconfirmed in entries:
            self._post(unconfirmed)

    def _post(self, unconfirmed: _Unconfirmed, *, at_once: bool = False) -> None:
        if self._first is None:
            self._transmit(unconfirmed, at_once=at_once)
        else:
            self._held.append(unconfirmed)

    def _on_duplicate(self, sequence_id: int) -> None:
        """That is found out at once, before what was sent earlier is stored; of chunks only the last one is asked."""
        # Most often it is the oldest one, so that a long repetition does not look through all of them each time.
        entry = next((one for one in self._unconfirmed if one.messages.sequence_id == sequence_id), None)
        if entry is not None:
            messages = entry.messages
            if messages.is_chunked:
                entry = next(one for one in reversed(self._unconfirmed) if one.messages is messages)
            self._unconfirmed.remove(entry)
            self._arrived(entry)
            messages.is_duplicate = True
            self._has_receipt(messages, MessageId(-1, -1, self._partition))

    def _has_receipt(self, messages: Messages, where: MessageId) -> None:
        """One of their entries."""
        if messages.is_chunked:
            messages.first_chunk = messages.first_chunk or where
            messages.chunks -= 1
            if messages.chunks:
                return
            if messages.is_duplicate:
                where = MessageId(-1, -1, self._partition)
            else:
                where = replace(where, first_chunk=messages.first_chunk)
        self._published(messages, where)

    def _published(self, messages: Messages, where: MessageId) -> None:
        self.last_sequence_id = max(self.last_sequence_id, messages.highest_sequence_id)
        receipts = messages.receipts
        count = len(receipts)
        if count == 1:
            receipts[0]._settle(where)
        else:
            ledger_id, entry_id, partition = where.ledger_id, where.entry_id, where.partition
            for index, receipt in enumerate(receipts):
                receipt._settle(MessageId(ledger_id, entry_id, partition, index, count))
        self._counts.published(count, messages.size, perf_counter() - messages.made)
        self._release(count, messages.size)

    def _reconnect(self, error: ConnectError) -> None:
        if self.connection is not None:
            self.connection.abort(error)

    def _transmit(self, unconfirmed: _Unconfirmed, *, at_once: bool = False) -> None:
        if self.connection is None or self.connection.is_lost:
            return  # `send_all_on` comes
        messages = unconfirmed.messages
        send = self._command.send
        send.sequence_id = messages.sequence_id
        send.num_messages = len(messages.receipts)
        several = messages.highest_sequence_id != messages.sequence_id
        send.highest_sequence_id = messages.highest_sequence_id if several else 0
        if messages.is_chunked:
            send.is_chunk = True
        elif send.is_chunk:
            send.ClearField("is_chunk")
        if messages.txn is not None:
            send.txnid_most_bits, send.txnid_least_bits = messages.txn
            if not self._takes_transactions:
                self._first = unconfirmed
        elif send.HasField("txnid_least_bits"):
            send.ClearField("txnid_most_bits")
            send.ClearField("txnid_least_bits")
        self.connection.send_nowait(self._command, unconfirmed.entry, at_once=at_once)


class MemoryLimit:
    """Counts the bytes of all producers of a client; who asks for more than are left waits, first come, first served.

    As in other Pulsar clients one message may go beyond the limit: it is enough that something is left.
    """

    def __init__(self, limit: int = 0) -> None:
        """`limit` in bytes, 0: none."""
        self.limit = limit
        self.used: int = 0
        self._waiting: deque[tuple[int, anyio.Event]] = deque()

    def acquire_nowait(self, size: int) -> bool:
        """Take so many bytes, if that is possible at once."""
        if self.limit and size and (self._waiting or self.used >= self.limit):
            return False
        self.used += size
        return True

    async def acquire(self, size: int) -> None:
        """Take so many bytes, as soon as they are there; cancelled, nothing is taken."""
        if self.acquire_nowait(size):
            return
        turn = size, anyio.Event()
        self._waiting.append(turn)
        try:
            await turn[1].wait()
        except BaseException:
            if turn[1].is_set():
                self.release(size)
            else:
                self._waiting.remove(turn)
                self._admit()
            raise

    def release(self, size: int) -> None:
        """Give so many bytes back."""
        self.used -= size
        self._admit()

    def _admit(self) -> None:
        while self._waiting and self.used < self.limit:
            size, turn = self._waiting.popleft()
            self.used += size
            turn.set()


class Room:
    """Places for the messages to one topic or partition, and bytes of the client's memory for their contents.

    A message has both from before it is numbered until its receipt.
    """

    def __init__(self, topic: str, places: int, memory: MemoryLimit) -> None:
        self.topic = topic
        self._most = places
        self._places = anyio.Semaphore(places, fast_acquire=True)
        self._memory = memory
        self.messages: int = 0
        """Messages that have their place."""
        self.bytes: int = 0
        """Bytes of these."""

    def acquire_nowait(self, size: int) -> None:
        """A place, and so many bytes; ProducerQueueIsFull or MemoryBufferIsFull."""
        try:
            self._places.acquire_nowait()
        except anyio.WouldBlock:
            raise ProducerQueueIsFull(f"{self.topic}: {self._most} messages pending") from None
        if not self._memory.acquire_nowait(size):
            self._places.release()
            raise MemoryBufferIsFull(f"{self.topic}: {self._memory.limit} bytes of messages pending")
        self.messages += 1
        self.bytes += size

    async def acquire(self, size: int) -> None:
        """The same, as soon as there is room. Cancelled, nothing is taken."""
        await self._places.acquire()
        try:
            await self._memory.acquire(size)
        except BaseException:
            self._places.release()
            raise
        self.messages += 1
        self.bytes += size

    def release(self, messages: int, size: int) -> None:
        """So many messages, of so many bytes together, are published or have failed."""
        self.messages -= messages
        self.bytes -= size
        for _ in range(messages):
            self._places.release()
        self._memory.release(size)
