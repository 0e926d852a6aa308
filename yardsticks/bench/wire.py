"""A bare connection to a broker, lighter than any client, so that the broker is the limit and not the driver."""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from urllib.parse import urlsplit

from pulsarium.proto import entry
from pulsarium.proto.framing import FrameDecoder, frame
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand, CommandAck, CommandSubscribe, MessageMetadata

READ = 256 * 1024
FRAMES_PER_SEGMENT = 64
WINDOW = 1000  # messages without a receipt, the size of an official producer's queue
WINDOW_BYTES = 8 << 20
ASKED_AT_ONCE = 100
SETTLE_SECONDS = 0.25  # the broker saves a cursor a tenth of a second later, which belongs to the cost
SUBSCRIPTION = "bench"
VERSION = 21
PING = BaseCommand(type=BaseCommand.PING, ping={}).SerializeToString()
PONG = BaseCommand(type=BaseCommand.PONG, pong={})
# The first bytes of a serialized command: its type.
SEND_RECEIPT, MESSAGE = bytes((0x08, BaseCommand.SEND_RECEIPT)), bytes((0x08, BaseCommand.MESSAGE))


class WireError(RuntimeError):
    """The broker closed the connection or refused a command. The text says which."""


class Connection:
    """A blocking connection after its CONNECT."""

    def __init__(self, service_url: str, version: int = VERSION) -> None:
        url = urlsplit(service_url)
        self.socket = socket.create_connection((url.hostname, url.port), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._decoder = FrameDecoder()
        self._commands: deque[bytes] = deque()
        self.send(
            BaseCommand(type=BaseCommand.CONNECT, connect={"client_version": "bench", "protocol_version": version})
        )
        self.expect(BaseCommand.CONNECTED)

    def send(self, *commands: BaseCommand) -> None:
        """Send commands in one write."""
        self.socket.sendall(b"".join(frame(command.SerializeToString()) for command in commands))

    def read(self) -> list[bytes]:
        """Wait for the broker, and return the serialized commands of all received frames. Answer PINGs."""
        while True:
            data = self.socket.recv(READ)
            if not data:
                raise WireError("the broker closed the connection")
            if frames := self._decoder.feed(data):
                commands = [command for command, _ in frames]
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
        """Return the next command of one of these types. Raise `WireError` when an error arrives first."""
        for command in self.commands():
            if command.type in (BaseCommand.ERROR, BaseCommand.SEND_ERROR):
                raise WireError(str(command))
            if command.type in kinds:
                return command
        raise AssertionError("commands() never ends")

    def ask(self, answer: int, commands: Iterable[BaseCommand]) -> None:
        """Send requests, many at a time. Each must be answered with a command of type `answer`."""
        coming = iter(commands)
        while group := list(islice(coming, ASKED_AT_ONCE)):
            self.send(*group)
            for _ in group:
                self.expect(answer)

    def settle(self) -> None:
        """Wait until the broker has handled everything it was sent, and has done its delayed work."""
        self.socket.sendall(frame(PING))
        self.expect(BaseCommand.PONG)
        time.sleep(SETTLE_SECONDS)


# ---- commands


def lookup(topic: str, request: int = 0) -> BaseCommand:
    return BaseCommand(type=BaseCommand.LOOKUP, lookupTopic={"topic": topic, "request_id": request})


def producer(topic: str, number: int = 0) -> BaseCommand:
    told = {"topic": topic, "producer_id": number, "request_id": number}
    return BaseCommand(type=BaseCommand.PRODUCER, producer=told)


def consumer(topic: str, number: int = 0, kind: str = "Shared", subscription: str = SUBSCRIPTION) -> BaseCommand:
    told = {"topic": topic, "subscription": subscription, "consumer_id": number, "request_id": number}
    told["subType"] = CommandSubscribe.SubType.Value(kind)
    return BaseCommand(type=BaseCommand.SUBSCRIBE, subscribe=told)


def flow(number: int, permits: int) -> BaseCommand:
    return BaseCommand(type=BaseCommand.FLOW, flow={"consumer_id": number, "messagePermits": permits})


def empty_ack(number: int = 0) -> BaseCommand:
    return BaseCommand(type=BaseCommand.ACK, ack={"consumer_id": number, "ack_type": CommandAck.Individual})


def open_producer(connection: Connection, topic: str) -> None:
    """Look a topic up, because a real broker loads a topic at its lookup, and open its producer 0."""
    connection.ask(BaseCommand.LOOKUP_RESPONSE, [lookup(topic)])
    connection.ask(BaseCommand.PRODUCER_SUCCESS, [producer(topic)])


def subscribe(connection: Connection, topic: str, kind: str = "Shared", number: int = 0) -> None:
    connection.ask(BaseCommand.LOOKUP_RESPONSE, [lookup(topic)])
    connection.ask(BaseCommand.SUCCESS, [consumer(topic, number, kind)])


def leave_subscription(service_url: str, topic: str, kind: str = "Shared") -> None:
    """Create a subscription without consumers, so that later messages are its backlog."""
    subscribe(connection := Connection(service_url), topic, kind)
    connection.socket.close()


# ---- messages


def send_frame(size: int, number: int = 0) -> bytes:
    """Return a SEND frame that can be sent repeatedly. Without deduplication its sequence id does not matter."""
    command = BaseCommand(type=BaseCommand.SEND, send={"producer_id": number, "sequence_id": 0})
    metadata = MessageMetadata(producer_name="bench", sequence_id=0, publish_time=1)
    return frame(command.SerializeToString(), entry.build(metadata, b"x" * size))


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
    command = BaseCommand(type=BaseCommand.SEND, send={"producer_id": 0, "sequence_id": 0})
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


def send_all(connection: Connection, segments: Iterable[tuple[bytes, int]], window: int = WINDOW) -> int:
    """Send all segments, wait for their receipts, and return the number of messages."""
    confirmed = sent = 0
    for segment, messages in segments:
        while sent + messages - confirmed > window:
            confirmed += _receipts(connection, confirmed)
        connection.socket.sendall(segment)
        sent += messages
    while confirmed < sent:
        confirmed += _receipts(connection, confirmed)
    return sent


def _receipts(connection: Connection, first: int) -> int:
    """Return the number of receipts, which must be those of the messages from number `first` on, in order."""
    count, receipt = 0, BaseCommand()
    for command in connection.read():
        receipt.ParseFromString(command)
        if receipt.type == BaseCommand.SEND_RECEIPT and receipt.send_receipt.sequence_id == first + count:
            count += 1
        elif receipt.type != BaseCommand.PING:
            raise WireError(f"the answer to message {first + count} is {receipt}")
    return count


def publish(service_url: str, topic: str, count: int, size: int) -> None:
    """Publish messages of any size, with a limit of bytes without a receipt."""
    window = max(2, min(WINDOW, WINDOW_BYTES // size))
    connection = Connection(service_url)
    with connection.socket:
        open_producer(connection, topic)
        send_all(connection, send_segments(count, size, together=min(FRAMES_PER_SEGMENT, window // 2)), window)


def count_commands(commands: Iterable[bytes], kind: bytes) -> int:
    """Return the number of commands of one type, without parsing them.

    Raise `WireError` for any other command except PING.
    """
    count = 0
    for command in commands:
        if command.startswith(kind):
            count += 1
        elif command != PING:
            raise WireError(str(BaseCommand.FromString(command)))
    return count
