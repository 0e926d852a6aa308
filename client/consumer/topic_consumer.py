"""A member of the subscription of one topic, or of one partition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import anyio

from pulsarium.client.connection.connection import Connection
from pulsarium.client.consumer import commands
from pulsarium.client.consumer.acknowledgements import Acknowledgements, ack_set
from pulsarium.client.consumer.delayed import Entry
from pulsarium.client.consumer.start import Start
from pulsarium.client.consumer.subscribed import IN_ORDER, Subscribed
from pulsarium.client.errors import AlreadyClosed, InvalidConfiguration, PulsarError
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.proto.generated import PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from pulsarium.client.transaction.transaction import Transaction

Individual: pb.CommandAck.AckType = pb.CommandAck.Individual
Cumulative: pb.CommandAck.AckType = pb.CommandAck.Cumulative


class TopicConsumer(Subscribed):
    """What a Consumer does, for one topic: it says what each of these is for."""

    async def acknowledge(self, message_id: MessageId, txn: Transaction | None = None) -> None:
        if txn is not None:
            await self.acknowledge_all([message_id], txn)
            return
        if message_id.first_chunk is not None:
            await self.acknowledge_all([message_id])
            return
        connection = await self._link.connection()
        data = self._individual(message_id)
        if data is None:
            return
        if self._options.ack_receipt_enabled:
            await self._acknowledge(connection, Individual, [data])
        else:
            self._group.add(data)

    async def acknowledge_all(self, message_ids: Sequence[MessageId], txn: Transaction | None = None) -> None:
        """With receipts, or in a transaction, it is one for all."""
        ids: list[MessageId] = []
        for message_id in message_ids:
            entries = message_id.entries
            ids += [message_id] if len(entries) == 1 else [MessageId(*one, message_id.partition) for one in entries]
        if txn is not None:
            await self._acknowledge_in(txn, Individual, lambda: self._in_transaction(ids))
            return
        connection = await self._link.connection()
        found = [data for data in map(self._individual, ids) if data is not None]
        if not self._options.ack_receipt_enabled:
            for data in found:
                self._group.add(data)
        elif found:
            await self._acknowledge(connection, Individual, found)

    def _individual(self, message_id: MessageId) -> pb.MessageIdData | None:
        entry = message_id.entry
        was_known = entry in self._acknowledgements
        data = self._acknowledgements.individual(message_id)
        if data is not None and (not data.ack_set or (was_known and entry not in self._acknowledgements)):
            self._entry_done(entry)
        return data

    def _entry_done(self, entry: Entry) -> None:
        self._nacks.forget(entry)
        if self._unacknowledged is not None:
            self._unacknowledged.forget(entry)
        if self._dead_letters is not None:
            self._dead_letters.forget(entry)

    def _in_transaction(self, message_ids: Sequence[MessageId]) -> list[pb.MessageIdData]:
        batches = {one.entry for one in message_ids if one.entry in self._acknowledgements}
        found = self._acknowledgements.in_transaction(message_ids)
        entries = {(data.ledgerId, data.entryId) for data in found if not data.ack_set}
        for entry in entries | {entry for entry in batches if entry not in self._acknowledgements}:
            self._entry_done(entry)
        return found

    async def acknowledge_alone(self, message_id: MessageId) -> None:
        """One message, received or not; of a batch the broker is told of it whether that is enabled or not."""
        connection = await self._link.connection()
        self.receiver.skip(message_id)
        data = self._individual(message_id) or Acknowledgements(batch_index_ack_enabled=True).individual(message_id)
        if data is not None:
            await self._acknowledge(connection, Individual, [data])

    async def _acknowledge_moved(self, message_id: MessageId) -> None:
        await self.acknowledge(replace(message_id, batch_index=-1, batch_size=0))

    async def acknowledge_cumulative(self, message_id: MessageId, txn: Transaction | None = None) -> None:
        if self._options.consumer_type not in IN_ORDER:
            raise InvalidConfiguration(f"no cumulative acknowledgement on {self._options.consumer_type.name}")
        if txn is not None:
            await self._acknowledge_in(txn, Cumulative, lambda: [self._cumulative(message_id, in_transaction=True)])
            return
        connection = await self._link.connection()
        await self._acknowledge(connection, Cumulative, [self._cumulative(message_id)])

    def _cumulative(self, message_id: MessageId, *, in_transaction: bool = False) -> pb.MessageIdData:
        data = self._acknowledgements.cumulative(message_id, in_transaction=in_transaction)
        end = message_id.ledger_id, message_id.entry_id + (data.entryId == message_id.entry_id and not data.ack_set)
        for waiting in (self._nacks, self._unacknowledged):
            if waiting:
                waiting.forget_before(end)
        return data

    async def _acknowledge_in(
        self, txn: Transaction, kind: pb.CommandAck.AckType, found: Callable[[], list[pb.MessageIdData]]
    ) -> None:
        """At once, and always with the broker's answer: another transaction may have it."""
        with txn._operation():
            await txn._acknowledges_on(self.topic, self._options.subscription_name)
            connection = await self._link.connection()
            command = commands.ack_in(txn.id(), self._id, kind, found())
            command.ack.request_id = connection.next_request_id()
            await connection.request(command)
            if self._options.consumer_type in IN_ORDER:
                txn._when_aborted(self._rewind)

    def _rewind(self) -> None:
        """A transaction was aborted, and what it acknowledged comes again; in order, with all that is behind it."""
        self._redeliver(None)

    async def _acknowledge(
        self, connection: Connection, kind: pb.CommandAck.AckType, data: list[pb.MessageIdData]
    ) -> None:
        command = commands.ack(self._id, kind, data)
        if self._options.ack_receipt_enabled:
            command.ack.request_id = connection.next_request_id()
            await connection.request(command)
        else:
            connection.send_nowait(command)

    def read_through(self, message_id: MessageId) -> None:
        """For a reader: it is done with everything up to this entry, which lets the broker count what is left."""
        connection = self._link.current
        if connection is not None:
            data = self._acknowledgements.cumulative(MessageId(*message_id.entry, message_id.partition))
            connection.send_nowait(commands.ack(self._id, Cumulative, [data]))

    def received(self, message: Message[Any]) -> None:
        """The application has it from now on: the time for its acknowledgement runs, of a batch from its first one."""
        self._wait_for_acknowledgement(message.message_id(), message.redelivery_count())

    def negative_acknowledge(self, message_id: MessageId, redelivery_count: int) -> None:
        if self._closed:
            raise AlreadyClosed(f"{self.topic}: the consumer was closed")
        self._acknowledgements.forget(message_id.entry)
        backoff, delay = self._options.negative_ack_redelivery_backoff, self._options.negative_ack_redelivery_delay
        if backoff is not None:
            delay = backoff.next(redelivery_count)
        for entry in message_id.entries:
            self._nacks.add(entry, delay)
            if self._unacknowledged is not None:
                self._unacknowledged.forget(entry)

    def redeliver(self, message_id: MessageId) -> None:
        """Deliver this entry again, now."""
        self._redeliver(set(message_id.entries))

    async def redeliver_unacknowledged_messages(self) -> None:
        await self._link.connection()
        self._redeliver(None)

    # ---- moving about

    async def seek(self, target: MessageId | datetime | int, *, inclusive: bool | None = None) -> None:
        seek = pb.CommandSeek(consumer_id=self._id)
        start: Start | None = None
        if isinstance(target, MessageId):
            start = Start(target, self._options.start_message_id_inclusive if inclusive is None else inclusive)
            seek.message_id.CopyFrom(start.first_entry.to_data())
            if self._durable and 0 < target.batch_index < target.batch_size:
                seek.message_id.ack_set.extend(ack_set(range(target.batch_index, target.batch_size)))
        else:
            at = int(target.timestamp() * 1000) if isinstance(target, datetime) else target
            seek.message_publish_time = at
        while not await self._seek(seek, start):
            pass
        await self._link.connection()

    async def _seek(self, seek: pb.CommandSeek, start: Start | None) -> bool:
        """False if the consumer was lost before the command went out."""
        connection = await self._link.connection()
        async with self._seeking:  # the broker closes the consumer; it is opened again when the answer is there
            if self._link.current is not connection:
                return False
            self._group.flush()
            seek.request_id = connection.next_request_id()
            await connection.request(pb.BaseCommand(type=pb.BaseCommand.SEEK, seek=seek))
            self._forget_all()
            self.receiver.moved(start)
            return True

    async def last_message(self) -> tuple[MessageId, MessageId | None]:
        """The last message's id, and the entry up to which the subscription is done, where the broker says that."""
        deadline = anyio.current_time() + self._brokers.operation_timeout
        while True:
            connection = await self._link.connection()
            command = commands.get_last_message_id(self._id)
            command.getLastMessageId.request_id = connection.next_request_id()
            try:
                reply = await connection.request(command)
            except PulsarError:
                if self._link.current is connection or anyio.current_time() >= deadline:
                    raise
                continue  # lost: ask again on the next
            answer = reply.command.getLastMessageIdResponse
            mark = answer.consumer_mark_delete_position
            done = MessageId.from_data(mark) if answer.HasField("consumer_mark_delete_position") else None
            return self._last_ids.read(answer, reply.trailing), done
