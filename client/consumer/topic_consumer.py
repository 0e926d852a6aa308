"""The consumer of one topic, or of one partition."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel

from pulsarium.client.connection.brokers import Brokers
from pulsarium.client.connection.connection import Connection
from pulsarium.client.connection.link import Link
from pulsarium.client.connection.service_url import BrokerUrls
from pulsarium.client.consumer import commands
from pulsarium.client.consumer.acknowledgements import AckGroup, Acknowledgements, ack_set
from pulsarium.client.consumer.delayed import Entry
from pulsarium.client.consumer.inbox import Inbox
from pulsarium.client.consumer.intercepting import Interceptors
from pulsarium.client.consumer.last_entry import LastMessageIds
from pulsarium.client.consumer.letters import Letters
from pulsarium.client.consumer.options import IN_ORDER, ConsumerOptions, ConsumerType, OrderedNegativeAckMode
from pulsarium.client.consumer.receiver import Receiver
from pulsarium.client.consumer.redelivery import Redelivery
from pulsarium.client.consumer.retrying_keys import FEATURE, order_key
from pulsarium.client.consumer.start import Start
from pulsarium.client.errors import AlreadyClosed, InvalidConfiguration, OperationNotSupported, PulsarError
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.client.statistics import ReceivedCounts
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName

if TYPE_CHECKING:
    from pulsarium.client.transaction.transaction import Transaction

logger: logging.Logger = logging.getLogger(__name__)

Individual: pb.CommandAck.AckType = pb.CommandAck.Individual
Cumulative: pb.CommandAck.AckType = pb.CommandAck.Cumulative


class TopicConsumer:
    """A consumer of one topic. The methods are documented in `Consumer`.

    The consumer subscribes once, and again after each loss of its connection, until it is closed.
    """

    def __init__(
        self,
        brokers: Brokers,
        topic: str,
        options: ConsumerOptions[Any],
        inbox: Inbox,
        reading_from: Start | None = None,
        *,
        letters: Letters,
        interceptors: Interceptors,
        counts: ReceivedCounts,
    ) -> None:
        """Make a consumer of `topic` (a full name), without sending anything.

        `reading_from` is the start of a reader, whose subscription is not durable.
        """
        self.topic = topic
        self._brokers = brokers
        self._counts = counts
        self._options = options
        self.partition: int = TopicName.parse(topic).partition_index
        self._durable = reading_from is None
        self._inbox = inbox
        self._id = brokers.next_consumer_id()
        self._link = Link(brokers, topic, self._open, counts, on_failed=self._failed, what="consumer of")
        self._acknowledgements = Acknowledgements(batch_index_ack_enabled=options.batch_index_ack_enabled)
        tasks = brokers.task_group
        self._redelivery = Redelivery(
            tasks,
            topic,
            options,
            letters,
            interceptors,
            ask_for=self._redeliver,
            acknowledge=self._acknowledge_moved,
        )
        self.receiver: Receiver = Receiver(
            topic,
            self._id,
            options,
            self._acknowledgements,
            self._redelivery,
            inbox.wake,
            inbox.onlooker,
            tasks,
            self,
            counts,
            reading_from,
        )
        """The queue of received messages."""
        self._last_ids = LastMessageIds(options.crypto_key_reader, options.payload_to_message_id_converter)
        delay, most = options.acknowledgement_group_time, options.max_acknowledgement_group_size
        self._group = AckGroup(tasks, self._acknowledge_group, delay, most)
        self._has_receipts = options.ack_receipt_enabled
        self._seeking = anyio.Lock()
        self._closed = False
        self._was_open = False
        self.is_suspended: bool = False
        """Says whether no message is asked for, because the broker does not keep the order that is required."""

    async def open(self) -> None:
        """Subscribe for the first time. Raise the broker's refusal."""
        await self._link.start()
        self._inbox.add(self.receiver)

    # ---- acknowledging

    async def acknowledge(self, message_id: MessageId, txn: Transaction | None = None) -> None:
        if txn is not None or not self.acknowledge_nowait(message_id):
            await self.acknowledge_all([message_id], txn)

    def acknowledge_nowait(self, message_id: MessageId) -> bool:
        """Acknowledge a message in a group. Return False, without an effect, when the call has to wait."""
        if self._has_receipts or message_id.first_chunk is not None or self._link.current is None:
            return False
        data = self._individual(message_id)
        if data is not None:
            self._group.add(data)
        return True

    async def acknowledge_all(self, message_ids: Sequence[MessageId], txn: Transaction | None = None) -> None:
        """Acknowledge several messages, with one receipt for all of them."""
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
        if data is None:
            return None
        if self._redelivery.keys:
            self._redelivery.keys.acknowledged(message_id)
        if message_id.batch_index < 0 or not data.ack_set or (was_known and entry not in self._acknowledgements):
            self._redelivery.done(entry)
        return data

    def _in_transaction(self, message_ids: Sequence[MessageId]) -> list[pb.MessageIdData]:
        batches = {one.entry for one in message_ids if one.entry in self._acknowledgements}
        found = self._acknowledgements.in_transaction(message_ids)
        entries = {(data.ledgerId, data.entryId) for data in found if not data.ack_set}
        for entry in entries | {entry for entry in batches if entry not in self._acknowledgements}:
            self._redelivery.done(entry)
        return found

    async def acknowledge_alone(self, message_id: MessageId) -> None:
        """Acknowledge one message, received or not. The broker is told of the batch index in any case."""
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
        self._redelivery.done_before(end)
        return data

    async def _acknowledge_in(
        self, txn: Transaction, kind: pb.CommandAck.AckType, found: Callable[[], list[pb.MessageIdData]]
    ) -> None:
        """Acknowledge in a transaction, at once, and wait for the answer.

        The broker refuses the acknowledgement when another transaction has it already.
        """
        with txn._operation():
            await anyio.lowlevel.checkpoint()  # inside the operation, so that a canceled call counts as failed
            await txn._acknowledges_on(self.topic, self._options.subscription_name)
            connection = await self._link.connection()
            data = found()
            self._counts.acknowledgements += len(data)
            command = commands.ack_in(txn.id(), self._id, kind, data)
            command.ack.request_id = connection.next_request_id()
            await connection.request(command)
            if self._options.consumer_type in IN_ORDER:
                txn._when_aborted(self._rewind)

    def _rewind(self) -> None:
        """Redeliver the messages of an aborted transaction. In order, this includes all messages after them."""
        self._redeliver(None)

    async def _acknowledge(
        self, connection: Connection, kind: pb.CommandAck.AckType, data: list[pb.MessageIdData]
    ) -> None:
        self._counts.acknowledgements += len(data)
        command = commands.ack(self._id, kind, data)
        if self._options.ack_receipt_enabled:
            command.ack.request_id = connection.next_request_id()
            await connection.request(command)
        else:
            connection.send_nowait(command)

    def _acknowledge_group(self, ids: list[pb.MessageIdData]) -> bool:
        connection = self._link.current
        if connection is None:
            return False
        self._counts.acknowledgements += len(ids)
        connection.send_nowait(commands.ack(self._id, Individual, ids))
        return True

    @property
    def pending_acknowledgements(self) -> int:
        """Return the number of acknowledgements that are not sent yet."""
        return len(self._group)

    def read_through(self, message_id: MessageId) -> None:
        """Acknowledge all entries of a reader up to this one, so that the broker knows the backlog."""
        connection = self._link.current
        if connection is not None:
            data = self._acknowledgements.cumulative(MessageId(*message_id.entry, message_id.partition))
            connection.send_nowait(commands.ack(self._id, Cumulative, [data]))

    def received(self, message: Message[Any]) -> None:
        """Start the acknowledgement timeout of a message. A batch has one timeout, from its first message."""
        self._redelivery.received(message.message_id(), message.redelivery_count())

    def negative_acknowledge(self, message: Message[Any] | MessageId) -> None:
        if self._closed:
            raise AlreadyClosed(f"{self.topic}: the consumer was closed")
        if isinstance(message, MessageId):
            self._refuse(message, 0)
            return
        message_id = message.message_id()
        left = self._acknowledgements.left(message_id.entry)
        delay = self._refuse(message_id, message.redelivery_count())
        if message_id.first_chunk is None:
            self._keep_order(message, left, delay)

    def _refuse(self, message_id: MessageId, redelivery_count: int) -> float:
        """Ask for the redelivery of a message after a delay, and return the delay in seconds."""
        self._acknowledgements.forget(message_id.entry)
        self._counts.refusals += 1
        return self._redelivery.refuse(message_id, redelivery_count)

    def _keep_order(self, message: Message[Any], left: Collection[int], delay: float) -> None:
        """Tell the broker of a negative acknowledgement at once, and return later messages of the key (PIP-493)."""
        connection, key, message_id = self._link.current, order_key(message), message.message_id()
        if key is None or connection is None or not self._orders_retries_on(connection):
            return
        self._redelivery.keys.refuse(key, message_id, left, delay)
        returned = self.receiver.too_early() - {message_id.entry}
        self._group.flush()  # so that the broker knows what is left of the batch
        refused = message_id.to_data()
        refused.ack_set.extend(ack_set(left))
        connection.send_nowait(commands.negative_ack(self._id, [refused], sorted(returned)))
        self.receiver.drop(returned)

    def _orders_retries_on(self, connection: Connection) -> bool:
        options, policy = self._options, self._options.key_shared_policy
        has_order = options.consumer_type is ConsumerType.KeyShared and not (
            policy is not None and (policy.allow_out_of_order_delivery or policy.entry_buckets)
        )
        wants_order = options.ordered_negative_ack is not OrderedNegativeAckMode.Disabled
        return has_order and wants_order and FEATURE in connection.feature_flags

    def redeliver(self, message_id: MessageId) -> None:
        """Ask the broker to redeliver the entries of a message now."""
        self._redeliver(set(message_id.entries))

    async def redeliver_unacknowledged_messages(self) -> None:
        await self._link.connection()
        self._redeliver(None)

    def _redeliver(self, entries: set[Entry] | None) -> None:
        connection = self._link.current
        if connection is None:
            return  # the broker redelivers everything on the next connection
        self._group.flush()
        # Send the command before the permits of dropped messages. After a FLOW, a Java broker reads ahead, and
        # continues behind the messages that it should redeliver.
        if self._options.consumer_type in IN_ORDER:
            self.receiver.epoch += 1  # the receiver drops messages of an older epoch, which are on their way (PIP-84)
            connection.send_nowait(commands.redeliver(self._id, consumer_epoch=self.receiver.epoch))
            self._drop_all()
        elif entries is None:
            connection.send_nowait(commands.redeliver(self._id))
            self._drop_all()
        else:
            if again := self._redelivery.without_dead_letters(entries):
                connection.send_nowait(commands.redeliver(self._id, sorted(again)))
            self.receiver.drop(entries)
            self._redelivery.asked_for(entries)

    def _drop_all(self) -> None:
        self._redelivery.clear()
        self.receiver.clear()

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
        """Send SEEK. Return False when the connection was lost before."""
        connection = await self._link.connection()
        async with self._seeking:  # the broker closes the consumer, which must not subscribe again before the answer
            if self._link.current is not connection:
                return False
            self._group.flush()
            seek.request_id = connection.next_request_id()
            await connection.request(pb.BaseCommand(type=pb.BaseCommand.SEEK, seek=seek))
            self._redelivery.clear()
            self.receiver.moved(start)
            return True

    async def last_message(self) -> tuple[MessageId, MessageId | None]:
        """Return the id of the last message, and the mark-delete position where the broker reports it."""
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
                continue  # the connection was lost: repeat the request on the next one
            answer = reply.command.getLastMessageIdResponse
            mark = answer.consumer_mark_delete_position
            done = MessageId.from_data(mark) if answer.HasField("consumer_mark_delete_position") else None
            return await self._last_ids.read_with_keys(answer, reply.trailing), done

    # ---- the end

    async def unsubscribe(self, *, force: bool) -> None:
        """Delete the subscription, and close. Raise the broker's refusal, for example because of other consumers."""
        connection = await self._link.connection()
        self._group.flush()
        command = commands.unsubscribe(self._id, force=force)
        command.unsubscribe.request_id = connection.next_request_id()
        async with self._seeking:  # `force` closes this consumer too, which must not subscribe again
            await connection.request(command)
            await self._end()

    async def aclose(self) -> None:
        """Close the consumer. A second call does nothing."""
        connection = self._link.current
        if self._closed:
            return
        self._redelivery.close()
        try:
            if connection is not None:
                self._group.flush()
                self.receiver.detach()
                await connection.request(self._close_command(connection))
        except PulsarError:
            pass  # the broker has closed the consumer with the connection
        finally:
            await self._end()

    async def _end(self) -> None:
        self._closed = True
        self.receiver.detach()
        self.receiver.fail(AlreadyClosed(f"{self.topic}: the consumer was closed"))
        self._redelivery.close()
        self._group.close()
        self._inbox.remove(self.receiver)
        await self._link.aclose()

    def _close_command(self, connection: Connection) -> pb.BaseCommand:
        command = commands.close(self._id)
        command.close_consumer.request_id = connection.next_request_id()
        return command

    # ---- for the link

    async def _open(self, connection: Connection) -> None:
        required = self._options.ordered_negative_ack is OrderedNegativeAckMode.Required
        self.is_suspended = required and FEATURE not in connection.feature_flags
        if self.is_suspended and not self._was_open:
            raise OperationNotSupported(
                f"{self.topic}: {connection.address} has no {FEATURE} (PIP-493), which ordered_negative_ack requires"
            )
        async with self._seeking:  # a SEEK under way decides the start
            command = commands.subscribe(self.topic, self._id, self._options, durable=self._durable)
            if not self._durable:
                start = self.receiver.start
                at = MessageId.earliest if start is None else start.first_entry
                command.subscribe.start_message_id.CopyFrom(at.to_data())
                if start is not None and start.rollback_duration:
                    command.subscribe.start_message_rollback_duration_sec = start.rollback_duration
            if self._options.consumer_type in IN_ORDER:
                command.subscribe.consumer_epoch = self.receiver.epoch
            command.subscribe.request_id = connection.next_request_id()
            self.receiver.attach(connection)
            try:
                await connection.request(command)
            except BaseException:
                self.receiver.detach()
                if not connection.is_lost:  # the broker may have opened the consumer nevertheless
                    connection.send_nowait(self._close_command(connection))
                raise
            if ids := self._group.take():  # of the last connection
                self._counts.acknowledgements += len(ids)
                connection.send_nowait(commands.ack(self._id, Individual, ids))
            self._was_open = True
            if self.is_suspended:
                logger.error("%s: the consumer waits for a broker with %s (PIP-493)", self.topic, FEATURE)
            else:
                self.receiver.opened()

    def _failed(self, error: PulsarError) -> None:
        self.receiver.fail(error)

    # ---- for the receiver

    def lost(self, error: PulsarError, owner: BrokerUrls | None) -> None:
        """Subscribe again, at broker `owner` if it is known."""
        self._redelivery.clear()
        self._link.lost(error, owner)

    def refuse(self, error: PulsarError) -> None:
        """Close the consumer after a message that it cannot receive. Another consumer gets the message."""
        connection = self._link.current
        self.receiver.detach()
        self.receiver.fail(error)
        self._link.close_nowait()
        if connection is not None:
            connection.send_nowait(self._close_command(connection))
