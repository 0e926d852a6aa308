"""A consumer: one member of a subscription."""

from __future__ import annotations

from datetime import datetime

from pulsarium.client import consumer_commands as commands
from pulsarium.client.acknowledgements import ack_set
from pulsarium.client.errors import InvalidConfiguration, PulsarError
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.client.start import Start
from pulsarium.client.subscribed import IN_ORDER, Subscribed
from pulsarium.proto.generated import PulsarApi_pb2 as pb

Individual = pb.CommandAck.Individual
Cumulative = pb.CommandAck.Cumulative


class Consumer(Subscribed):
    """Receives the messages of a subscription, and acknowledges them; made by `Client.subscribe`.

    It is open inside its `async with` block. When its connection is lost, or the broker closes it, it subscribes again
    by itself; what was not acknowledged then comes again. AlreadyClosed after the block.
    """

    async def __aenter__(self) -> Consumer:
        await self._link.start()
        return self

    def __aiter__(self) -> Consumer:
        return self

    async def __anext__(self) -> Message:
        if not await self._receiver.arrival(until_end=True):
            raise StopAsyncIteration
        return self._receiver.take()

    # ---- receiving

    async def receive(self) -> Message:
        """The next message, as soon as there is one; at the end of a terminated topic it waits for a seek.

        CryptoError for a message that cannot be decrypted, and what a `message_payload_processor` raises for its entry:
        the next call goes on behind it. Otherwise whatever ended the consumer for good. `async for` does the same, and
        ends at the end of a terminated topic.
        """
        await self._receiver.arrival()
        return self._receiver.take()

    # ---- acknowledging

    async def acknowledge(self, message: Message | MessageId) -> None:
        """Never deliver this message again.

        Of a batch the broker is told when all its messages are acknowledged, or of each with `batch_index_ack_enabled`
        (PIP-54). It goes out together with others, some milliseconds later. Only with `ack_receipt_enabled` it goes at
        once and waits for the broker's answer; then it raises its refusal, and ConnectError when the connection was
        lost, so that nobody knows.
        """
        message_id = _id(message)
        self._nacks.forget(message_id.entry)
        data = self._acknowledgements.individual(message_id)
        await self._link.connection()
        if data is None:
            return
        if self._options.ack_receipt_enabled:
            await self._acknowledge(Individual, data)
        else:
            self._group.add(data)

    async def acknowledge_cumulative(self, message: Message | MessageId) -> None:
        """Never deliver this message again, nor any before it.

        InvalidConfiguration on Shared and KeyShared subscriptions, where "before" means nothing.
        """
        if self._options.consumer_type not in IN_ORDER:
            raise InvalidConfiguration(f"no cumulative acknowledgement on {self._options.consumer_type.name}")
        await self._acknowledge(Cumulative, self._acknowledgements.cumulative(_id(message)))

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

    def negative_acknowledge(self, message: Message | MessageId) -> None:
        """Deliver this message again, after `negative_ack_redelivery_delay` seconds; of a batch all of it.

        On Exclusive and Failover, which keep their order, everything unacknowledged comes again then.
        """
        entry = _id(message).entry
        self._acknowledgements.forget(entry)
        self._nacks.add(entry)

    async def redeliver_unacknowledged_messages(self) -> None:
        """Deliver everything again, now, that this consumer got and did not acknowledge."""
        await self._link.connection()
        self._redeliver(None)

    # ---- moving about

    async def seek(self, target: MessageId | datetime | int) -> None:
        """Go on behind a message, or at the first one published at a time: milliseconds since the epoch, or a datetime.

        With `start_message_id_inclusive` at the message itself. It moves the whole subscription: what is behind the
        target comes again, acknowledged or not, and what is before it does not. Raises the broker's refusal.
        """
        seek = pb.CommandSeek(consumer_id=self._id)
        start: Start | None = None
        if isinstance(target, MessageId):
            start = Start(target, self._options.start_message_id_inclusive)
            seek.message_id.CopyFrom(target.to_data())
            if self._options.durable and 0 < target.batch_index < target.batch_size:
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
            self._receiver.moved(start)
            return True

    async def get_last_message_ids(self) -> list[MessageId]:
        """The last message of the topic, as a list of one; of a compacted topic the last that is left (PIP-429).

        Ledger and entry are -1 if there is none. Raises what a `payload_to_message_id_converter` raises.
        """
        return [(await self.last_message())[0]]

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


def _id(message: Message | MessageId) -> MessageId:
    return message if isinstance(message, MessageId) else message.message_id()
