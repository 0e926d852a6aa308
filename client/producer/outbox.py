"""What a producer has sent, until the broker has it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from pulsarium.client.connection.connection import Connection
from pulsarium.client.errors import ConnectError, PulsarError, copy_of, error_of
from pulsarium.client.message_id import MessageId
from pulsarium.client.producer.batching import Draft, Receipt
from pulsarium.proto.entry import checksum_matches
from pulsarium.proto.generated import PulsarApi_pb2 as pb


@dataclass(slots=True)
class _Unconfirmed:
    """An entry without its receipt."""

    sequence_id: int
    highest_sequence_id: int
    entry: bytes
    receipts: list[Receipt]


class Outbox:
    """Entries without a receipt, in the order in which they were sent."""

    def __init__(self, producer_id: int, partition: int, release: Callable[[], None]) -> None:
        """`release` is called for each message that is published or has failed."""
        self.connection: Connection | None = None
        """Where the producer is open now."""
        self.last_sequence_id = -1
        # One for all entries: it is serialized at once.
        self._command = pb.BaseCommand(type=pb.BaseCommand.SEND, send=pb.CommandSend(producer_id=producer_id))
        self._partition = partition
        self._release = release
        self._unconfirmed: deque[_Unconfirmed] = deque()

    @property
    def last(self) -> Receipt | None:
        """Of the last message that has none yet."""
        return self._unconfirmed[-1].receipts[-1] if self._unconfirmed else None

    def add(self, drafts: list[Draft], entry: bytes) -> None:
        """Send an entry, now or as soon as there is a connection."""
        receipts = [message.receipt for message in drafts]
        unconfirmed = _Unconfirmed(drafts[0].sequence_id, drafts[-1].sequence_id, entry, receipts)
        self._unconfirmed.append(unconfirmed)
        self._transmit(unconfirmed)

    def send_all_on(self, connection: Connection) -> None:
        """Send everything again: the producer was opened on this connection."""
        self.connection = connection
        for unconfirmed in self._unconfirmed:
            self._transmit(unconfirmed)

    def on_receipt(self, receipt: pb.CommandSendReceipt) -> None:
        """The oldest entry has its receipt now."""
        head = self._unconfirmed[0] if self._unconfirmed else None
        if head is None or receipt.sequence_id < head.sequence_id:
            return  # of an entry that was sent twice
        if receipt.sequence_id > head.sequence_id:
            # Something between was lost: only a new connection makes that good.
            if self.connection is not None:
                self.connection.abort(ConnectError(f"the receipt of message {head.sequence_id} is missing"))
            return
        self._unconfirmed.popleft()
        self.last_sequence_id = max(self.last_sequence_id, head.highest_sequence_id)
        where = MessageId.from_data(receipt.message_id)
        count = len(head.receipts)
        for index, one in enumerate(head.receipts):
            in_batch = (index, count) if count > 1 else (-1, 0)
            one.settle(MessageId(where.ledger_id, where.entry_id, self._partition, *in_batch))
            self._release()

    def on_send_error(self, error: pb.CommandSendError) -> None:
        """An entry was refused: it fails, unless it was only damaged on its way."""
        refused = next((one for one in self._unconfirmed if one.sequence_id == error.sequence_id), None)
        if refused is None:
            return
        if error.error == pb.ChecksumError and self.connection is not None and checksum_matches(refused.entry):
            self.send_all_on(self.connection)
            return
        self._unconfirmed.remove(refused)
        self.fail(refused.receipts, error_of(error.error, str(error.message)))

    def fail(self, receipts: list[Receipt], error: PulsarError) -> None:
        """These messages are not published."""
        for receipt in receipts:
            receipt.fail(copy_of(error))
            self._release()

    def fail_all(self, error: PulsarError) -> None:
        """Nothing more is sent."""
        self.connection = None
        while self._unconfirmed:
            self.fail(self._unconfirmed.popleft().receipts, error)

    def _transmit(self, unconfirmed: _Unconfirmed) -> None:
        if self.connection is None or self.connection.is_lost:
            return  # `send_all_on` comes
        send = self._command.send
        send.sequence_id = unconfirmed.sequence_id
        count = len(unconfirmed.receipts)
        send.num_messages = count
        send.highest_sequence_id = unconfirmed.highest_sequence_id if count > 1 else 0
        self.connection.send_nowait(self._command, unconfirmed.entry)
