"""Programs on bare sockets."""

from __future__ import annotations

import selectors
import time
from dataclasses import replace

from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand, MessageMetadata
from yardsticks.bench.wire import (
    Connection,
    empty_ack,
    flow,
    leave_subscription,
    open_producer,
    send_all,
    send_segments,
    subscribe,
)
from yardsticks.bench.work import Done, Timed, Work, one_by_one

IDS_PER_ACK = 100  # the group size of official clients
PERMITS = 1000
CONNECTIONS = 2  # of many consumers
KEYS = 1000
RATE = 5_000
"""Messages a second. Both brokers keep up with this rate on two cores that they share with the driver."""
TOGETHER = 10  # messages of one write at this rate


def publish(work: Work) -> Timed:
    """Publish one frame per message, many frames a segment, with a limited number of messages without a receipt."""
    open_producer(connection := Connection(work.service_url), work.topic)
    segments = list(send_segments(work.count, work.size))
    return lambda: Done(send_all(connection, segments))


def send_and_wait(work: Work) -> Timed:
    """Send one message at a time."""
    open_producer(connection := Connection(work.service_url), work.topic)
    frames = iter([segment for segment, _ in send_segments(work.count, work.size, together=1)])

    def send() -> None:
        connection.socket.sendall(next(frames))
        connection.expect(BaseCommand.SEND_RECEIPT)

    return lambda: one_by_one(work.count, send)


def last_message_id(work: Work) -> Timed:
    """Ask for the last message id, one call at a time, as a consumer of a topic with one message."""
    publish(replace(work, count=1))()
    subscribe(connection := Connection(work.service_url), work.topic)
    command = BaseCommand(type=BaseCommand.GET_LAST_MESSAGE_ID, getLastMessageId={"consumer_id": 0, "request_id": 2})

    def ask() -> None:
        connection.send(command)
        connection.expect(BaseCommand.GET_LAST_MESSAGE_ID_RESPONSE)

    return lambda: one_by_one(work.count, ask)


def consume(work: Work, *, kind: str) -> Timed:
    """Consume a backlog of `count` messages with one consumer, which acknowledges a hundred ids at a time."""
    leave_subscription(work.service_url, work.topic, kind)
    publish(work)()

    def timed() -> Done:
        subscribe(connection := Connection(work.service_url), work.topic, kind)
        connection.send(flow(0, PERMITS))
        more = flow(0, PERMITS // 2)
        ack = empty_ack()
        received = 0
        for command in connection.commands():
            if command.type != BaseCommand.MESSAGE:
                continue
            received += 1
            told = command.message.message_id
            ack.ack.message_id.add(ledgerId=told.ledgerId, entryId=told.entryId)
            if received % (PERMITS // 2) == 0:
                connection.send(more)
            if received == work.count:
                break
            if received % IDS_PER_ACK == 0:
                connection.send(ack)
                ack = empty_ack()
        # Only the last group asks for a response, which comes after the broker has handled all groups.
        ack.ack.request_id = 2
        connection.send(ack)
        connection.expect(BaseCommand.ACK_RESPONSE)
        return Done(received)

    return timed


def consume_as_many(work: Work, *, kind: str, consumers: int) -> Timed:
    """Consume a backlog of `count` messages of a thousand keys, with consumers that exist already."""
    groups = [Group(work, kind, range(place, consumers, CONNECTIONS)) for place in range(min(CONNECTIONS, consumers))]
    open_producer(producer := Connection(work.service_url), work.topic)
    send_all(producer, send_segments(work.count, work.size, set_key))

    def timed() -> Done:
        with selectors.DefaultSelector() as selector:
            for group in groups:
                group.ask()
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
        self._acks = {number: empty_ack(number) for number in consumers}
        self._command = BaseCommand()
        for number in consumers:
            subscribe(self.connection, work.topic, kind, number)

    def ask(self) -> None:
        self.connection.send(*(flow(number, PERMITS) for number in self._counts))

    def take(self) -> None:
        """Handle one read, and send the consumers' permits and acknowledgements."""
        answers: list[BaseCommand] = []
        command = self._command
        for data in self.connection.read():
            command.ParseFromString(data)
            if command.type == BaseCommand.MESSAGE:
                self._message(command.message.consumer_id, answers)
        if answers:
            self.connection.send(*answers)

    def _message(self, number: int, answers: list[BaseCommand]) -> None:
        self.received += 1
        self._counts[number] += 1
        ack, told = self._acks[number], self._command.message.message_id
        ack.ack.message_id.add(ledgerId=told.ledgerId, entryId=told.entryId)
        if len(ack.ack.message_id) == IDS_PER_ACK:
            answers.append(ack)
            self._acks[number] = empty_ack(number)
        if self._counts[number] % (PERMITS // 2) == 0:
            answers.append(flow(number, PERMITS // 2))

    def finish(self) -> None:
        """Send the remaining acknowledgements, and wait for the response to the last one, which covers all."""
        left = [ack for ack in self._acks.values() if ack.ack.message_id] or [empty_ack(next(iter(self._acks)))]
        left[-1].ack.request_id = 1_000_000
        self.connection.send(*left)
        self.connection.expect(BaseCommand.ACK_RESPONSE)
        self._acks = {number: empty_ack(number) for number in self._acks}

    def consume(self, count: int) -> None:
        """Receive `count` messages more, and wait until their acknowledgements are stored."""
        until = self.received + count
        while self.received < until:
            self.take()
        self.finish()


def tail(work: Work, *, kind: str) -> Timed:
    """Publish at RATE while one consumer receives and acknowledges.

    A latency is the time from a SEND to its MESSAGE.
    """
    group = Group(work, kind, range(1))
    group.ask()
    open_producer(producer := Connection(work.service_url), work.topic)
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
