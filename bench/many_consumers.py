"""Programs with consumers on few bare sockets: the cost of their number, and the latency from end to end."""

from __future__ import annotations

import selectors
import time

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
    """Consume a backlog of `count` messages of a thousand keys, with consumers that exist already."""
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
    """The consumers of one connection. Each grants permits and acknowledges as an official client's consumer does."""

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
        """Handle one read, and send the consumers' permits and acknowledgements."""
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
        """Send the remaining acknowledgements, and wait for the response to the last one, which covers all."""
        left = [ack for ack in self._acks.values() if ack.ack.message_id]
        if not left:
            left = [empty_ack(next(iter(self._acks)))]
        left[-1].ack.request_id = 1_000_000
        self._send(left)
        self.connection.expect(BaseCommand.ACK_RESPONSE)

    def _send(self, commands: list[BaseCommand]) -> None:
        if commands:
            self.connection.socket.sendall(b"".join(frame(command.SerializeToString()) for command in commands))


RATE = 5_000
"""Messages a second. Both brokers keep up with this rate on two cores that they share with the driver."""

TOGETHER = 10  # messages of one write


def tail(work: Work, *, kind: str) -> Timed:
    """Publish at RATE while one consumer receives and acknowledges.

    A latency is the time from a SEND to its MESSAGE.
    """
    group = Group(work, kind, range(1))
    group.ask()
    producer = Connection(work.service_url)
    open_producer(producer, work.topic)
    segments = list(send_segments(work.count, work.size, together=TOGETHER))

    def timed() -> Done:
        due = time.perf_counter()
        sent: list[float] = []
        latencies: list[float] = []
        left = iter(segments)
        with selectors.DefaultSelector() as selector:
            selector.register(group.connection.socket, selectors.EVENT_READ)
            selector.register(producer.socket, selectors.EVENT_READ)
            while len(latencies) < work.count:
                now = time.perf_counter()
                if now >= due and len(sent) < work.count:
                    segment, messages = next(left)
                    producer.socket.sendall(segment)
                    sent += [now] * messages
                    due += messages / RATE
                for key, _ in selector.select(max(0.0, due - now) if len(sent) < work.count else None):
                    if key.fileobj is producer.socket:
                        producer.read()
                        continue
                    group.take()
                    now = time.perf_counter()
                    latencies += [now - begin for begin in sent[len(latencies) : group.received]]
        group.finish()
        return Done(work.count, latencies)

    return timed
