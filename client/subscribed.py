"""What keeps a consumer subscribed: opened once, again after each loss, and closed."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

import anyio

from pulsarium.client import consumer_commands as commands
from pulsarium.client.ack_group import AckGroup
from pulsarium.client.acknowledgements import Acknowledgements
from pulsarium.client.connection import Connection
from pulsarium.client.consumer_options import ConsumerOptions, ConsumerType
from pulsarium.client.errors import AlreadyClosed, PulsarError
from pulsarium.client.last_entry import LastMessageIds
from pulsarium.client.link import Link
from pulsarium.client.message_id import MessageId
from pulsarium.client.nacks import NegativeAcks
from pulsarium.client.receiver import Receiver
from pulsarium.proto.generated import PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from pulsarium.client.client import Client

IN_ORDER = frozenset({ConsumerType.Exclusive, ConsumerType.Failover})


class Subscribed:
    """The parts of a consumer, and its being open."""

    def __init__(self, client: Client, topic: str, subscription_name: str, options: ConsumerOptions) -> None:
        """Nothing is sent yet. InvalidTopicName if `topic` is no name."""
        self._topic = client.full_name(topic)
        self._subscription_name = subscription_name
        self._options = options
        self._id = client.next_consumer_id()
        self._link = Link(client, self._topic, self._open, on_failed=self._failed)
        self._acknowledgements = Acknowledgements(batch_index_ack_enabled=options.batch_index_ack_enabled)
        self._receiver = Receiver(self._topic, self._id, options, self._acknowledgements, self._lost)
        self._last_ids = LastMessageIds(options.crypto_key_reader, options.payload_to_message_id_converter)
        self._nacks = NegativeAcks(client.task_group, options.negative_ack_redelivery_delay, self._redeliver)
        self._group = AckGroup(client.task_group, self._acknowledge_group)
        self._seeking = anyio.Lock()
        self._closed = False

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    def topic(self) -> str:
        """The topic, in full."""
        return self._topic

    def subscription_name(self) -> str:
        """The subscription it belongs to."""
        return self._subscription_name

    def consumer_name(self) -> str:
        """Its own name, "" where the broker is to find one."""
        return self._options.consumer_name

    @property
    def is_active(self) -> bool | None:
        """Whether this is the one of a Failover subscription that gets the messages; None: the broker said nothing."""
        return self._receiver.is_active

    @property
    def has_reached_end_of_topic(self) -> bool:
        """Whether the topic is terminated and everything in it was acknowledged."""
        return self._receiver.end_of_topic

    @property
    def receiver(self) -> Receiver:
        """What waits here, for a reader."""
        return self._receiver

    # ---- the end

    async def unsubscribe(self) -> None:
        """Delete the subscription, and close. Raises the broker's refusal, as while others are subscribed."""
        connection = await self._link.connection()
        self._group.flush()
        command = commands.unsubscribe(self._id)
        command.unsubscribe.request_id = connection.next_request_id()
        await connection.request(command)
        await self._end()

    async def aclose(self) -> None:
        """Leave the subscription; what is not acknowledged goes to others. A second call does nothing."""
        connection = self._link.current
        if self._closed:
            return
        try:
            if connection is not None:
                self._group.flush()
                self._receiver.detach()
                await connection.request(self._close_command(connection))
        except PulsarError:
            pass  # closed with its connection
        finally:
            await self._end()

    async def _end(self) -> None:
        self._closed = True
        self._receiver.detach()
        self._receiver.fail(AlreadyClosed(f"{self._topic}: the consumer was closed"))
        self._nacks.close()
        self._group.close()
        await self._link.aclose()

    def _close_command(self, connection: Connection) -> pb.BaseCommand:
        command = commands.close(self._id)
        command.close_consumer.request_id = connection.next_request_id()
        return command

    # ---- for the link

    async def _open(self, connection: Connection) -> None:
        async with self._seeking:  # a SEEK under way decides where to begin
            command = commands.subscribe(self._topic, self._subscription_name, self._id, self._options)
            if not self._options.durable:
                start = self._receiver.start
                at = MessageId.earliest if start is None else start.message_id
                command.subscribe.start_message_id.CopyFrom(at.to_data())
            if self._options.consumer_type in IN_ORDER:
                command.subscribe.consumer_epoch = self._receiver.epoch
            command.subscribe.request_id = connection.next_request_id()
            self._receiver.attach(connection)
            try:
                await connection.request(command)
            except BaseException:
                self._receiver.detach()
                if not connection.is_lost:  # it may be open all the same
                    connection.send_nowait(self._close_command(connection))
                raise
            if ids := self._group.take():  # of the connection before
                connection.send_nowait(commands.ack(self._id, pb.CommandAck.Individual, ids))
            self._receiver.opened()

    def _lost(self) -> None:
        self._nacks.clear()
        self._link.lost()

    def _failed(self, error: PulsarError) -> None:
        self._receiver.fail(error)

    # ---- what comes again

    def _redeliver(self, entries: set[tuple[int, int]] | None) -> None:
        connection = self._link.current
        if connection is None:
            return  # all of it comes again with the next connection
        self._group.flush()
        # the command first, then the permits of what is dropped: a FLOW in front of it makes a Java broker read ahead,
        # and go on behind what it should deliver again
        if self._options.consumer_type in IN_ORDER:
            self._receiver.epoch += 1  # what is on its way is of one that is over (PIP-84)
            connection.send_nowait(commands.redeliver(self._id, consumer_epoch=self._receiver.epoch))
            self._drop_all()
        elif entries is None:
            connection.send_nowait(commands.redeliver(self._id))
            self._drop_all()
        else:
            connection.send_nowait(commands.redeliver(self._id, sorted(entries)))
            self._receiver.drop(entries)

    def _acknowledge_group(self, ids: list[pb.MessageIdData]) -> bool:
        connection = self._link.current
        if connection is None:
            return False
        connection.send_nowait(commands.ack(self._id, pb.CommandAck.Individual, ids))
        return True

    def _drop_all(self) -> None:
        self._nacks.clear()
        self._receiver.clear()
