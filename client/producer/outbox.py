"""Entries that a producer has sent and that have no receipt yet, and the limits of their number and bytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from time import perf_counter

from pulsarium.client.connection.connection import Connection
from pulsarium.client.errors import (
    TRANSIENT,
    ConnectError,
    MessageTooBig,
    PulsarError,
    copy_of,
    error_of,
)
from pulsarium.client.message_id import MessageId
from pulsarium.client.producer.receipt import Receipt
from pulsarium.client.statistics import SentCounts
from pulsarium.proto.entry import checksum_matches
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import TxnId
from pulsarium.proto.numbers import NO_LEDGER


@dataclass(slots=True, eq=False)
class Messages:
    """The messages of one entry, or one message in several chunks."""

    sequence_id: int
    highest_sequence_id: int
    """Equal to `sequence_id` for an entry of one message."""
    receipts: list[Receipt]
    """One for each message, or one for all."""
    count: int
    """Number of messages."""
    size: int
    """Bytes of the contents, as the memory limit counts them."""
    chunks: int = 1
    """Number of entries without a receipt."""
    is_chunked: bool = False
    first_chunk: MessageId | None = None
    is_duplicate: bool = False
    txn: TxnId | None = None
    made: float = field(default_factory=perf_counter)
    """Time at which the entry was made, in seconds of a monotonic clock."""


def too_big(entry: bytes, most: int) -> MessageTooBig:
    """Return the error for an entry of more than `most` bytes, the broker's limit."""
    return MessageTooBig(f"the entry has {len(entry)} bytes, the broker accepts {most}: send less, or enable chunking")


@dataclass(slots=True, eq=False)
class _Unconfirmed:
    """An entry without its receipt."""

    messages: Messages
    entry: bytes


class Outbox:
    """Entries without a receipt, in the order in which they were sent."""

    def __init__(self, partition: int, release: Callable[[int, int], None], counts: SentCounts) -> None:
        """Call `release` with the number of messages and their bytes when they are published or have failed."""
        self._counts = counts
        self.connection: Connection | None = None
        """The connection on which the producer is open, or None."""
        self.last_sequence_id: int = -1
        self._was_repeated = False  # all entries were sent a second time on this connection
        self._oldest: _Unconfirmed | None = None  # at the last call of is_stuck
        # One command for all entries, because it is serialized at once.
        self._command = pb.BaseCommand(type=pb.BaseCommand.SEND)
        self._partition = partition
        self._release = release
        self._unconfirmed: deque[_Unconfirmed] = deque()
        # The first entry of a transaction on a connection is sent alone: the broker may have to open its transaction
        # buffer first, and entries outside transactions would overtake this one.
        self._first: _Unconfirmed | None = None
        self._held: list[_Unconfirmed] = []  # entries behind the first one
        self._takes_transactions = False

    def pending(self) -> list[Receipt]:
        """Return one receipt of each entry that has no receipt yet."""
        return [one.messages.receipts[-1] for one in self._unconfirmed]

    def is_torn(self, last: int) -> bool:
        """Return whether an entry has sequence ids up to `last` and higher ones."""
        return any(one.messages.sequence_id <= last < one.messages.highest_sequence_id for one in self._unconfirmed)

    def add(self, messages: Messages, entry: bytes) -> None:
        """Send an entry, now or as soon as the producer has a connection."""
        unconfirmed = _Unconfirmed(messages, entry)
        self._unconfirmed.append(unconfirmed)
        # As Nagle's algorithm: an entry alone is sent now, further ones together.
        self._post(unconfirmed, at_once=len(self._unconfirmed) == 1)

    def add_chunks(self, messages: Messages, entries: list[bytes]) -> None:
        """Send a message in several entries."""
        messages.is_chunked = True
        messages.chunks = len(entries)
        for entry in entries:
            self.add(messages, entry)

    def open_on(self, connection: Connection, producer_id: int) -> None:
        """Send all entries again on a connection on which the producer was opened."""
        self._command.send.producer_id = producer_id
        self.send_all_on(connection)

    def send_all_on(self, connection: Connection) -> None:
        """Send all entries again."""
        self._was_repeated = connection is self.connection
        self._oldest = None
        self.connection = connection
        self._takes_transactions = False
        self._go_on(self._unconfirmed)

    def is_stuck(self) -> bool:
        """Return whether the oldest entry is still that of the last call. Its receipt is lost then."""
        oldest, self._oldest = self._oldest, self._unconfirmed[0] if self._unconfirmed else None
        return oldest is not None and oldest is self._oldest

    def on_receipt(self, receipt: pb.CommandSendReceipt) -> None:
        """Settle the oldest entry, or the entry that the broker dropped as a duplicate."""
        if receipt.message_id.ledgerId == NO_LEDGER:
            self._on_duplicate(receipt.sequence_id)
            return
        head = self._unconfirmed[0].messages if self._unconfirmed else None
        if head is None or receipt.sequence_id < head.sequence_id:
            return  # the receipt of an entry that was sent twice
        if receipt.sequence_id > head.sequence_id:
            # A receipt was lost: only a new connection restores the order.
            self._reconnect(ConnectError(f"the receipt of message {head.sequence_id} is missing"))
            return
        self._arrived(self._unconfirmed.popleft())
        self._has_receipt(head, MessageId(receipt.message_id.ledgerId, receipt.message_id.entryId, self._partition))

    def on_send_error(self, error: pb.CommandSendError) -> None:
        """Fail the refused entry, or send it again after a transient error or damage on its way.

        The broker names a batch by its highest sequence id.
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
            else:  # the connection damages every entry, or the broker's claim is false
                self._reconnect(ConnectError(*reason.args))
        elif isinstance(reason, TRANSIENT) or (error.error == pb.ChecksumError and messages.is_chunked):
            self._reconnect(ConnectError(*reason.args))  # a new connection sends all entries again, as Java clients do
        else:
            self._drop(messages, reason)

    def fail_larger(self, most: int) -> None:
        """Fail the entries of more than `most` bytes, because this broker would close the connection.

        They were made for another broker with a higher maxMessageSize.
        """
        while large := next((one for one in self._unconfirmed if len(one.entry) > most), None):
            self._drop(large.messages, too_big(large.entry, most))

    def fail(self, messages: Messages, error: PulsarError) -> None:
        """Fail the receipts of these messages."""
        for receipt in messages.receipts:
            receipt._fail(copy_of(error))
        self._counts.errors += messages.count
        self._release(messages.count, messages.size)

    def fail_all(self, error: PulsarError) -> None:
        """Fail all entries, and send no more."""
        self.connection = None
        self._go_on(())
        while self._unconfirmed:
            messages = self._unconfirmed.popleft().messages
            if messages.receipts and not messages.receipts[0].is_done():  # the chunks of a message share it
                self.fail(messages, error)

    def _drop(self, messages: Messages, error: PulsarError) -> None:
        self._unconfirmed = deque(one for one in self._unconfirmed if one.messages is not messages)
        self._held = [one for one in self._held if one.messages is not messages]
        self.fail(messages, error)
        if self._first is not None and self._first.messages is messages:
            self._go_on(self._held)

    def _arrived(self, unconfirmed: _Unconfirmed) -> None:
        """Send the entries that waited for the first one of a transaction."""
        if unconfirmed is self._first:
            self._takes_transactions = True
            self._go_on(self._held)

    def _go_on(self, entries: Iterable[_Unconfirmed]) -> None:
        """Send these entries, up to the next one that has to be sent alone."""
        self._first, self._held = None, []
        for unconfirmed in entries:
            self._post(unconfirmed)

    def _post(self, unconfirmed: _Unconfirmed, *, at_once: bool = False) -> None:
        if self._first is None:
            self._transmit(unconfirmed, at_once=at_once)
        else:
            self._held.append(unconfirmed)

    def _on_duplicate(self, sequence_id: int) -> None:
        """Settle the entry of a duplicate, of a chunked message its last entry.

        The broker answers a duplicate at once, before it stores earlier entries.
        """
        # Most often the duplicate is the oldest entry, so that a long repetition needs no long searches.
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
        """Count the receipt of one entry of these messages."""
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
        receipts, count = messages.receipts, messages.count
        if len(receipts) == 1:
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
            return  # `send_all_on` sends the entry later
        messages = unconfirmed.messages
        send = self._command.send
        send.sequence_id = messages.sequence_id
        send.num_messages = messages.count
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
