"""A member of the subscription of one topic, or of one partition."""

from __future__ import annotations

from datetime import datetime

from pulsarium.client.consumer import commands
from pulsarium.client.consumer.acknowledgements import ack_set
from pulsarium.client.consumer.start import Start
from pulsarium.client.consumer.subscribed import IN_ORDER, Subscribed
from pulsarium.client.errors import InvalidConfiguration, PulsarError
from pulsarium.client.message_id import MessageId
from pulsarium.proto.generated import PulsarApi_pb2 as pb

Individual = pb.CommandAck.Individual
Cumulative = pb.CommandAck.Cumulative


class TopicConsumer(Subscribed):
    """What a Consumer does, for one topic: it says what each of these is for."""

    async def acknowledge(self, message_id: MessageId) -> None:
        self._nacks.forget(message_id.entry)
        data = self._acknowledgements.individual(message_id)
        await self._link.connection()
        if data is None:
            return
        if self._options.ack_receipt_enabled:
            await self._acknowledge(Individual, data)
        else:
            self._group.add(data)

    async def acknowledge_cumulative(self, message_id: MessageId) -> None:
        if self._options.consumer_type not in IN_ORDER:
            raise InvalidConfiguration(f"no cumulative acknowledgement on {self._options.consumer_type.name}")
        await self._acknowledge(Cumulative, self._acknowledgements.cumulative(message_id))

    async def _acknowledge(self, kind: pb.CommandAck.AckType, data: pb.MessageIdData) -> None:
        command = commands.ack(self._id, kind, [data])
        connection = await self._link.connection()
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

    def negative_acknowledge(self, message_id: MessageId) -> None:
        entry = message_id.entry
        self._acknowledgements.forget(entry)
        self._nacks.add(entry)

    async def redeliver_unacknowledged_messages(self) -> None:
        await self._link.connection()
        self._redeliver(None)

    # ---- moving about

    async def seek(self, target: MessageId | datetime | int) -> None:
        seek = pb.CommandSeek(consumer_id=self._id)
        start: Start | None = None
        if isinstance(target, MessageId):
            start = Start(target, self._options.start_message_id_inclusive)
            seek.message_id.CopyFrom(target.to_data())
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
            self._nacks.clear()
            self.receiver.moved(start)
            return True

    async def last_message(self) -> tuple[MessageId, MessageId | None]:
        """The last message's id, and the entry up to which the subscription is done, where the broker says that."""
        while True:
            connection = await self._link.connection()
            command = commands.get_last_message_id(self._id)
            command.getLastMessageId.request_id = connection.next_request_id()
            try:
                reply = await connection.request(command)
            except PulsarError:
                if self._link.current is connection:
                    raise
                continue  # lost: ask again on the next
            answer = reply.command.getLastMessageIdResponse
            mark = answer.consumer_mark_delete_position
            done = MessageId.from_data(mark) if answer.HasField("consumer_mark_delete_position") else None
            return self._last_ids.read(answer, reply.trailing), done
