"""A receiver that a test feeds with entries, and the commands that it sends."""

from __future__ import annotations

from typing import Any, cast

from anyio.abc import TaskGroup

from pulsarium.client import MessageId
from pulsarium.client.connection.connection import Connection
from pulsarium.client.connection.service_url import BrokerUrls
from pulsarium.client.consumer.acknowledgements import Acknowledgements
from pulsarium.client.consumer.inbox import Inbox
from pulsarium.client.consumer.options import ConsumerOptions
from pulsarium.client.consumer.receiver import Receiver
from pulsarium.client.consumer.redelivery import Redelivery
from pulsarium.client.consumer.retrying_keys import RetryingKeys
from pulsarium.client.consumer.start import Start
from pulsarium.client.errors import PulsarError
from pulsarium.client.statistics import ReceivedCounts
from pulsarium.proto.generated import PulsarApi_pb2 as pb


class Recorder:
    """A connection that keeps the commands that were sent."""

    max_message_size = 100

    def __init__(self) -> None:
        self.sent: list[pb.BaseCommand] = []

    def send_nowait(self, command: pb.BaseCommand) -> None:
        self.sent.append(command)

    def attach_consumer(self, consumer_id: int, handler: object) -> None:
        pass

    @property
    def permits(self) -> int:
        return sum(command.flow.messagePermits for command in self.sent)

    @property
    def acked(self) -> list[tuple[int, int | None]]:
        """Return the entry id and the validation error of each ACK."""
        acks = [command.ack for command in self.sent if command.type == pb.BaseCommand.ACK]
        return [
            (ack.message_id[0].entryId, ack.validation_error if ack.HasField("validation_error") else None)
            for ack in acks
        ]


class Fed:
    """An open receiver, with a recording connection."""

    def __init__(self, reading_from: Start | None = None, tasks: TaskGroup | None = None, **options: Any) -> None:
        self.losses = 0
        self.connection = Recorder()
        self.acknowledgements = Acknowledgements()
        inbox = Inbox()
        self.receiver = Receiver(
            "t",
            0,
            ConsumerOptions("t", "s", **options),
            self.acknowledgements,
            cast(Redelivery, self),
            inbox.wake,
            inbox.onlooker,
            tasks or cast(TaskGroup, self),
            self,
            ReceivedCounts(),
            reading_from,
        )
        self.open()

    keys = RetryingKeys()  # of the stub of Redelivery

    def lost(self, error: PulsarError, owner: BrokerUrls | None) -> None:
        self.losses += 1

    def refuse(self, error: PulsarError) -> None:
        raise error

    def received(self, message_id: MessageId) -> None:
        """Ignore the message, because the stub has no acknowledgement timeout."""

    def open(self) -> None:
        self.receiver.attach(cast(Connection, self.connection))
        self.receiver.opened()

    def feed(self, entry: bytes, number: int = 0, **fields: Any) -> None:
        where = pb.MessageIdData(ledgerId=1, entryId=number)
        self.receiver.on_message(pb.CommandMessage(consumer_id=0, message_id=where, **fields), entry)

    def data(self) -> list[bytes]:
        return [self.receiver.take().data() for _ in range(len(self.receiver))]
