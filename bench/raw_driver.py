"""Programs on a bare socket, lighter than any client, so that the broker is the limit and not the driver."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from urllib.parse import urlsplit

from bench.work import Done, Timed, Work, one_by_one
from pulsarium.proto import entry
from pulsarium.proto.framing import FrameDecoder, frame
from pulsarium.proto.generated.PulsarApi_pb2 import (
    BaseCommand,
    CommandAck,
    CommandSubscribe,
    MessageMetadata,
)

READ = 256 * 1024
FRAMES_PER_SEGMENT = 64
WINDOW = 1000  # messages without a receipt, the size of an official producer's queue
IDS_PER_ACK = 100  # the group size of official clients
PERMITS = 1000
PRODUCER_ID = CONSUMER_ID = 0
SUBSCRIPTION = "bench"
VERSION = 21
PING = BaseCommand(type=BaseCommand.PING, ping={}).SerializeToString()
PONG = BaseCommand(type=BaseCommand.PONG, pong={})
_KINDS = {
    "Exclusive": CommandSubscribe.Exclusive,
    "Shared": CommandSubscribe.Shared,
    "Key_Shared": CommandSubscribe.Key_Shared,
}


class RawDriverError(RuntimeError):
    """The broker closed the connection or refused a command. The text says which."""


class Connection:
    """A blocking connection after its CONNECT. `version` is the negotiated protocol version.

    `trailing` holds the bytes after the last command.
    """

    def __init__(self, service_url: str, version: int = VERSION) -> None:
        url = urlsplit(service_url)
        self.socket = socket.create_connection((url.hostname, url.port), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._decoder = FrameDecoder()
        self._commands: deque[bytes] = deque()
        self.trailing = b""
        connect = BaseCommand(type=BaseCommand.CONNECT)
        connect.connect.client_version = "bench"
        connect.connect.protocol_version = version
        self.send(connect)
        self.version = self.expect(BaseCommand.CONNECTED).connected.protocol_version

    def send(self, command: BaseCommand) -> None:
        self.socket.sendall(frame(command.SerializeToString()))

    def read(self) -> list[bytes]:
        """Wait for the broker, and return the serialized commands of all received frames. Answer PINGs."""
        while True:
            data = self.socket.recv(READ)
            if not data:
                raise RawDriverError("the broker closed the connection")
            if frames := self._decoder.feed(data):
                commands = [command for command, _ in frames]
                self.trailing = frames[-1][1]
                if PING in commands:
                    self.send(PONG)
                return commands
            if self._decoder.error is not None:
                raise self._decoder.error

    def commands(self) -> Iterator[BaseCommand]:
        """Yield received commands forever. Each is parsed into the same object."""
        command = BaseCommand()
        while True:
            while not self._commands:
                self._commands.extend(self.read())
            command.ParseFromString(self._commands.popleft())
            yield command

    def expect(self, *kinds: int) -> BaseCommand:
        """Return the next command of one of these types. Raise `RawDriverError` when an error arrives first."""
        for command in self.commands():
            if command.type in (BaseCommand.ERROR, BaseCommand.SEND_ERROR):
                raise RawDriverError(str(command))
            if command.type in kinds:
                return command
        raise AssertionError("commands() never ends")


def publish_unbatched(work: Work) -> Timed:
    """Publish one frame per message, many frames a segment, with at most WINDOW messages without a receipt."""
    connection = Connection(work.service_url)
    open_producer(connection, work.topic)
    segments = list(send_segments(work.count, work.size))
    return lambda: Done(send_all(connection, segments))


Told = Callable[[BaseCommand], object]


def send_all(connection: Connection, segments: Iterable[tuple[bytes, int]], told: Told | None = None) -> int:
    """Send all segments, wait for their receipts, and return the number of messages.

    `told` is called with each receipt.
    """
    confirmed = sent = 0
    receipt = BaseCommand()
    for segment, messages in segments:
        while sent + messages - confirmed > WINDOW:
            confirmed += count_receipts(connection.read(), confirmed, receipt, told)
        connection.socket.sendall(segment)
        sent += messages
    while confirmed < sent:
        confirmed += count_receipts(connection.read(), confirmed, receipt, told)
    return sent


def count_receipts(commands: list[bytes], first: int, into: BaseCommand, told: Told | None) -> int:
    """Return the number of receipts.

    They must be those of the messages from number `first` on, in order. Otherwise raise `RawDriverError`.
    """
    count = 0
    for command in commands:
        into.ParseFromString(command)
        if into.type == BaseCommand.SEND_RECEIPT and into.send_receipt.sequence_id == first + count:
            count += 1
            if told is not None:
                told(into)
        elif into.type != BaseCommand.PING:
            raise RawDriverError(f"the answer to message {first + count} is {into}")
    return count


def send_segments(
    count: int,
    size: int,
    shape: Callable[[MessageMetadata, int], object] | None = None,
    together: int = FRAMES_PER_SEGMENT,
) -> Iterator[tuple[bytes, int]]:
    """Yield the bytes of `together` SEND frames, and the number of frames.

    `shape` may change the metadata of each message, given its number.
    """
    payload = b"x" * size
    command = BaseCommand(type=BaseCommand.SEND)
    command.send.producer_id = PRODUCER_ID
    metadata = MessageMetadata(producer_name="bench", publish_time=1)
    for start in range(0, count, together):
        numbers = range(start, min(start + together, count))
        frames = []
        for number in numbers:
            command.send.sequence_id = metadata.sequence_id = number
            if shape is not None:
                shape(metadata, number)
            frames.append(frame(command.SerializeToString(), entry.build(metadata, payload)))
        yield b"".join(frames), len(numbers)


def send_and_wait(work: Work) -> Timed:
    """Send one message at a time."""
    connection = Connection(work.service_url)
    open_producer(connection, work.topic)
    frames = (segment for segment, _ in list(send_segments(work.count, work.size, together=1)))

    def send() -> None:
        connection.socket.sendall(next(frames))
        connection.expect(BaseCommand.SEND_RECEIPT)

    return lambda: one_by_one(work.count, send)


def last_message_id(work: Work) -> Timed:
    """Ask for the last message id, one call at a time, as a consumer of a topic with one message."""
    publish_unbatched(replace(work, count=1))()
    subscribe(connection := Connection(work.service_url), work.topic)
    command = BaseCommand(type=BaseCommand.GET_LAST_MESSAGE_ID)
    command.getLastMessageId.consumer_id = CONSUMER_ID
    command.getLastMessageId.request_id = 2

    def ask() -> None:
        connection.send(command)
        connection.expect(BaseCommand.GET_LAST_MESSAGE_ID_RESPONSE)

    return lambda: one_by_one(work.count, ask)


def consume(work: Work, kind: str) -> Timed:
    """Consume a backlog of `count` messages with one consumer, which acknowledges a hundred ids at a time."""
    subscribe(connection := Connection(work.service_url), work.topic, kind)
    connection.socket.close()
    publish_unbatched(work)()

    def timed() -> Done:
        connection = Connection(work.service_url)
        subscribe(connection, work.topic, kind)
        connection.send(flow(CONSUMER_ID, PERMITS))
        more = flow(CONSUMER_ID, PERMITS // 2)
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


def flow(consumer: int, permits: int) -> BaseCommand:
    command = BaseCommand(type=BaseCommand.FLOW)
    command.flow.consumer_id = consumer
    command.flow.messagePermits = permits
    return command


def empty_ack(consumer: int = CONSUMER_ID) -> BaseCommand:
    command = BaseCommand(type=BaseCommand.ACK)
    command.ack.consumer_id = consumer
    command.ack.ack_type = CommandAck.Individual
    return command


def look_up(connection: Connection, topic: str) -> None:
    """Look up a topic, because a real broker loads a topic at its lookup."""
    command = BaseCommand(type=BaseCommand.LOOKUP)
    command.lookupTopic.topic = topic
    command.lookupTopic.request_id = 0
    connection.send(command)
    connection.expect(BaseCommand.LOOKUP_RESPONSE)


def subscribe(connection: Connection, topic: str, kind: str = "Shared", consumer: int = CONSUMER_ID) -> None:
    look_up(connection, topic)
    command = BaseCommand(type=BaseCommand.SUBSCRIBE)
    command.subscribe.topic = topic
    command.subscribe.subscription = SUBSCRIPTION
    command.subscribe.subType = _KINDS[kind]
    command.subscribe.consumer_id = consumer
    command.subscribe.request_id = 1
    connection.send(command)
    connection.expect(BaseCommand.SUCCESS)


def open_producer(connection: Connection, topic: str) -> None:
    look_up(connection, topic)
    command = BaseCommand(type=BaseCommand.PRODUCER)
    command.producer.topic = topic
    command.producer.producer_id = PRODUCER_ID
    command.producer.request_id = 1
    connection.send(command)
    connection.expect(BaseCommand.PRODUCER_SUCCESS)
