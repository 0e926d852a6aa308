"""Measuring programs with many consumers on one subscription, on few bare sockets: what does their number cost?"""

from __future__ import annotations

import selectors

from bench.raw_driver import (
    IDS_PER_ACK,
    PERMITS,
    Connection,
    empty_ack,
    flow,
    open_producer,
    send_all,
    send_segments,
    subscribe,
)
from bench.work import Done, Timed, Work
from pulsarium.proto.framing import frame
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand, MessageMetadata

CONNECTIONS = 2
KEYS = 1000


def consume(work: Work, *, kind: str, consumers: int) -> Timed:
    """A backlog of `count` messages of a thousand keys, taken and acknowledged by consumers that are there already."""
    groups = [Group(work, kind, range(place, consumers, CONNECTIONS)) for place in range(min(CONNECTIONS, consumers))]
    producer = Connection(work.service_url)
    open_producer(producer, work.topic)
    send_all(producer, send_segments(work.count, work.size, set_key))

    def timed() -> Done:
        for group in groups:
            group.ask()
        with selectors.DefaultSelector() as selector:
            for group in groups:
                selector.register(group.connection.socket, selectors.EVENT_READ, group)
            while sum(group.received for group in groups) < work.count:
                for key, _ in selector.select():
                    key.data.take()
        for group in groups:
            group.finish()
        return Done(work.count)

    return timed


def set_key(metadata: MessageMetadata, number: int) -> None:
    metadata.partition_key = f"key-{number % KEYS}"


class Group:
    """The consumers of one connection; each grants permits and acknowledges as an official client's would."""

    def __init__(self, work: Work, kind: str, consumers: range) -> None:
        self.connection = Connection(work.service_url)
        self.received = 0
        self._counts = dict.fromkeys(consumers, 0)
        self._acks = {consumer: empty_ack(consumer) for consumer in consumers}
        self._command = BaseCommand()
        for consumer in consumers:
            subscribe(self.connection, work.topic, kind, consumer)

    def ask(self) -> None:
        self._send([flow(consumer, PERMITS) for consumer in self._counts])

    def take(self) -> None:
        """What one read brings, and what it makes the consumers send."""
        answers: list[BaseCommand] = []
        command = self._command
        for data in self.connection.read():
            command.ParseFromString(data)
            if command.type == BaseCommand.MESSAGE:
                self._message(command.message.consumer_id, answers)
        self._send(answers)

    def _message(self, consumer: int, answers: list[BaseCommand]) -> None:
        self.received += 1
        self._counts[consumer] += 1
        ack, told = self._acks[consumer], self._command.message.message_id
        ack.ack.message_id.add(ledgerId=told.ledgerId, entryId=told.entryId)
        if len(ack.ack.message_id) == IDS_PER_ACK:
            answers.append(ack)
            self._acks[consumer] = empty_ack(consumer)
        if self._counts[consumer] % (PERMITS // 2) == 0:
            answers.append(flow(consumer, PERMITS // 2))

    def finish(self) -> None:
        """The acknowledgements that are left; the last one's response says that the broker has taken all."""
        left = [ack for ack in self._acks.values() if ack.ack.message_id]
        if not left:
            left = [empty_ack(next(iter(self._acks)))]
        left[-1].ack.request_id = 1_000_000
        self._send(left)
        self.connection.expect(BaseCommand.ACK_RESPONSE)

    def _send(self, commands: list[BaseCommand]) -> None:
        if commands:
            self.connection.socket.sendall(b"".join(frame(command.SerializeToString()) for command in commands))
