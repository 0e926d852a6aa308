"""What keeps a consumer subscribed: opened once, again after each loss, and closed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import anyio

from pulsarium.client.connection.brokers import Brokers
from pulsarium.client.connection.connection import Connection
from pulsarium.client.connection.link import Link
from pulsarium.client.connection.service_url import BrokerUrls
from pulsarium.client.consumer import commands
from pulsarium.client.consumer.ack_group import AckGroup
from pulsarium.client.consumer.acknowledgements import Acknowledgements
from pulsarium.client.consumer.dead_letters import DeadLetters
from pulsarium.client.consumer.delayed import Delayed, Entry
from pulsarium.client.consumer.inbox import Inbox
from pulsarium.client.consumer.interceptors import Interceptors
from pulsarium.client.consumer.last_entry import LastMessageIds
from pulsarium.client.consumer.letters import Letters
from pulsarium.client.consumer.options import ConsumerOptions, ConsumerType
from pulsarium.client.consumer.receiver import Receiver
from pulsarium.client.consumer.retry import of_topic
from pulsarium.client.consumer.start import Start
from pulsarium.client.errors import AlreadyClosed, InvalidMessage, PulsarError
from pulsarium.client.message_id import MessageId
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName

IN_ORDER = frozenset({ConsumerType.Exclusive, ConsumerType.Failover})


class Subscribed(ABC):
    """The parts of a consumer of one topic, and its being open."""

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
    ) -> None:
        """Nothing is sent yet. `topic` is a full name; `reading_from`: of a reader, whose subscription is not kept."""
        self.topic = topic
        self._brokers = brokers
        self._options = options
        self.partition: int = TopicName.parse(topic).partition_index
        self._durable = reading_from is None
        self._inbox = inbox
        self._id = brokers.next_consumer_id()
        self._link = Link(brokers, topic, self._open, on_failed=self._failed, what="consumer of")
        self._acknowledgements = Acknowledgements(batch_index_ack_enabled=options.batch_index_ack_enabled)
        self.receiver: Receiver = Receiver(
            topic, self._id, options, self._acknowledgements, self._lost, inbox, brokers.task_group, reading_from
        )
        """What waits here."""
        self._last_ids = LastMessageIds(options.crypto_key_reader, options.payload_to_message_id_converter)
        self._interceptors = interceptors
        tasks = brokers.task_group
        self._nacks = Delayed(tasks, self._redeliver_refused)
        is_limited = options.unacked_messages_timeout is not None or options.ack_timeout_redelivery_backoff is not None
        self._unacknowledged = Delayed(tasks, self._redeliver_late) if is_limited else None
        if is_limited:
            self.receiver.on_error = self._wait_for_acknowledgement
        self._dead_letters: DeadLetters | None = None
        if options.dead_letter_policy is not None and options.consumer_type not in IN_ORDER:
            policy = of_topic(options.dead_letter_policy, topic, options.subscription_name)
            acknowledge, again = self._acknowledge_moved, self._nacks.add
            self._dead_letters = DeadLetters(tasks, topic, policy, letters, acknowledge, again)
            self.receiver.once_too_often = self._dead_letters.arrived
        if options.receiver_queue_size == 0:
            self.receiver.on_batch = self._refuse_batch
        delay, most = options.acknowledgement_group_time, options.max_acknowledgement_group_size
        self._group = AckGroup(tasks, self._acknowledge_group, delay, most)
        self._seeking = anyio.Lock()
        self._closed = False

    async def open(self) -> None:
        """Subscribe for the first time; raises what the broker refuses it with."""
        await self._link.start()
        self._inbox.add(self.receiver)

    # ---- the end

    async def unsubscribe(self, *, force: bool) -> None:
        """Delete the subscription, and close. Raises the broker's refusal, as while others are subscribed."""
        connection = await self._link.connection()
        self._group.flush()
        command = commands.unsubscribe(self._id, force=force)
        command.unsubscribe.request_id = connection.next_request_id()
        async with self._seeking:  # `force` closes this consumer, too, and it must not come back
            await connection.request(command)
            await self._end()

    async def aclose(self) -> None:
        """Leave the subscription; what is not acknowledged goes to others. A second call does nothing."""
        connection = self._link.current
        if self._closed:
            return
        self._close_timers()
        try:
            if connection is not None:
                self._group.flush()
                self.receiver.detach()
                await connection.request(self._close_command(connection))
        except PulsarError:
            pass  # closed with its connection
        finally:
            await self._end()

    async def _end(self) -> None:
        self._closed = True
        self.receiver.detach()
        self.receiver.fail(AlreadyClosed(f"{self.topic}: the consumer was closed"))
        self._close_timers()
        self._group.close()
        self._inbox.remove(self.receiver)
        await self._link.aclose()

    def _close_timers(self) -> None:
        """Nothing more is asked for again."""
        self._nacks.close()
        if self._unacknowledged is not None:
            self._unacknowledged.close()
        if self._dead_letters is not None:
            self._dead_letters.close()

    def _close_command(self, connection: Connection) -> pb.BaseCommand:
        command = commands.close(self._id)
        command.close_consumer.request_id = connection.next_request_id()
        return command

    # ---- for the link

    async def _open(self, connection: Connection) -> None:
        async with self._seeking:  # a SEEK under way decides where to begin
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
                if not connection.is_lost:  # it may be open all the same
                    connection.send_nowait(self._close_command(connection))
                raise
            if ids := self._group.take():  # of the connection before
                connection.send_nowait(commands.ack(self._id, pb.CommandAck.Individual, ids))
            self.receiver.opened()

    def _lost(self, error: PulsarError, owner: BrokerUrls | None) -> None:
        self._forget_all()
        self._link.lost(error, owner)

    def _failed(self, error: PulsarError) -> None:
        self.receiver.fail(error)

    # ---- what comes again

    def _redeliver_refused(self, entries: set[Entry]) -> None:
        if self._interceptors:
            self._interceptors.negative_acks(self._ids_of(entries))
        self._redeliver(entries)

    def _redeliver_late(self, entries: set[Entry]) -> None:
        if self._interceptors:
            self._interceptors.ack_timeouts(self._ids_of(entries))
        self._redeliver(entries)

    def _wait_for_acknowledgement(self, message_id: MessageId, redelivery_count: int = 0) -> None:
        waiting = self._unacknowledged
        if waiting is None or message_id.entry in waiting:
            return
        backoff, delay = self._options.ack_timeout_redelivery_backoff, self._options.unacked_messages_timeout
        if backoff is not None:
            delay = backoff.next(redelivery_count)
        assert delay is not None
        for entry in message_id.entries:
            waiting.add(entry, delay)

    def _ids_of(self, entries: set[Entry]) -> set[MessageId]:
        return {MessageId(*entry, self.partition) for entry in entries}

    def _redeliver(self, entries: set[Entry] | None) -> None:
        connection = self._link.current
        if connection is None:
            return  # all of it comes again with the next connection
        self._group.flush()
        # the command first, then the permits of what is dropped: a FLOW in front of it makes a Java broker read ahead,
        # and go on behind what it should deliver again
        if self._options.consumer_type in IN_ORDER:
            self.receiver.epoch += 1  # what is on its way is of one that is over (PIP-84)
            connection.send_nowait(commands.redeliver(self._id, consumer_epoch=self.receiver.epoch))
            self._drop_all()
        elif entries is None:
            connection.send_nowait(commands.redeliver(self._id))
            self._drop_all()
        else:
            again = entries if self._dead_letters is None else self._dead_letters.move(entries)
            if again:
                connection.send_nowait(commands.redeliver(self._id, sorted(again)))
            self.receiver.drop(entries)
            self._nacks.forget_all(entries)
            if self._unacknowledged is not None:
                self._unacknowledged.forget_all(entries)

    def _acknowledge_group(self, ids: list[pb.MessageIdData]) -> bool:
        connection = self._link.current
        if connection is None:
            return False
        connection.send_nowait(commands.ack(self._id, pb.CommandAck.Individual, ids))
        return True

    def _drop_all(self) -> None:
        self._forget_all()
        self.receiver.clear()

    def _forget_all(self) -> None:
        """Everything comes again."""
        self._nacks.clear()
        if self._unacknowledged is not None:
            self._unacknowledged.clear()
        if self._dead_letters is not None:
            self._dead_letters.clear()

    # ---- what is not received

    @abstractmethod
    async def _acknowledge_moved(self, message_id: MessageId) -> None:
        """An entry of dead letters."""

    def _refuse_batch(self, message_id: MessageId) -> None:
        """It would need a queue: nothing comes any more, and the message goes to another consumer."""
        connection = self._link.current
        self.receiver.detach()
        self.receiver.fail(InvalidMessage(f"{message_id}: batches cannot be received with receiver_queue_size 0"))
        self._link.close_nowait()
        if connection is not None:
            connection.send_nowait(self._close_command(connection))
