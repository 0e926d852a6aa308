"""A consumer and a producer of plain frames. They show AckResponses and entries, which the official client hides."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Iterable
from types import TracebackType
from typing import TypeVar

from pulsarium.proto.framing import FrameDecoder, frame
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand, CommandAck, CommandSubscribe, MessageIdData

from .broker_process import Address

C = TypeVar("C", bound="RawConnection")


class RawConnection:
    """A connection that has received CONNECTED."""

    def __init__(self, address: Address) -> None:
        self._socket = socket.create_connection(("127.0.0.1", address.port), timeout=30)
        self._decoder = FrameDecoder()
        self._frames: deque[tuple[BaseCommand, bytes]] = deque()
        connect = BaseCommand(type=BaseCommand.CONNECT)
        connect.connect.client_version = "raw"
        connect.connect.protocol_version = 21
        self._send([connect])
        self._next(BaseCommand.CONNECTED)

    def __enter__(self: C) -> C:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def _send(self, commands: Iterable[BaseCommand], entry: bytes = b"") -> None:
        self._socket.sendall(b"".join(frame(command.SerializeToString(), entry) for command in commands))

    def _next(self, kind: BaseCommand.Type) -> tuple[BaseCommand, bytes]:
        """Return the next command of this kind, and the entry behind it."""
        while True:
            while not self._frames:
                data = self._socket.recv(1 << 16)
                if not data:
                    raise ConnectionError("closed by the broker")
                frames = self._decoder.feed(data)
                self._frames.extend((BaseCommand.FromString(command), trailing) for command, trailing in frames)
            command, trailing = self._frames.popleft()
            if command.type == BaseCommand.PING:
                self._send([BaseCommand(type=BaseCommand.PONG, pong={})])
            elif command.type == kind:
                return command, trailing
            elif command.type not in (BaseCommand.ACTIVE_CONSUMER_CHANGE,):
                raise AssertionError(f"not what was asked for: {command}")


class RawProducer(RawConnection):
    """A producer on `topic`, on a connection of its own."""

    def __init__(self, address: Address, topic: str) -> None:
        super().__init__(address)
        producer = BaseCommand(type=BaseCommand.PRODUCER)
        producer.producer.topic = topic
        producer.producer.producer_id = 1
        producer.producer.request_id = 1
        self._send([producer])
        self._next(BaseCommand.PRODUCER_SUCCESS)

    def publish(self, entry: bytes, messages: int = 1) -> None:
        """Publish an entry, and wait for its receipt."""
        send = BaseCommand(type=BaseCommand.SEND)
        send.send.producer_id = 1
        send.send.sequence_id = 0
        send.send.num_messages = messages
        self._send([send], entry)
        self._next(BaseCommand.SEND_RECEIPT)


class RawConsumer(RawConnection):
    """A Shared consumer that reads `topic` from the earliest message, on a connection of its own."""

    def __init__(self, address: Address, topic: str, subscription: str) -> None:
        super().__init__(address)
        subscribe = BaseCommand(type=BaseCommand.SUBSCRIBE)
        subscribe.subscribe.topic = topic
        subscribe.subscribe.subscription = subscription
        subscribe.subscribe.subType = CommandSubscribe.Shared
        subscribe.subscribe.initialPosition = CommandSubscribe.Earliest
        subscribe.subscribe.consumer_id = 1
        subscribe.subscribe.request_id = 1
        self._send([subscribe])
        self._next(BaseCommand.SUCCESS)

    def receive(self, count: int) -> list[MessageIdData]:
        """Receive the next `count` entries, and return their ids."""
        return [command.message.message_id for command, _ in self._receive(count)]

    def entries(self, count: int) -> list[bytes]:
        """Receive the next `count` entries, and return their bytes."""
        return [entry for _, entry in self._receive(count)]

    def _receive(self, count: int) -> list[tuple[BaseCommand, bytes]]:
        flow = BaseCommand(type=BaseCommand.FLOW)
        flow.flow.consumer_id = 1
        flow.flow.messagePermits = count
        self._send([flow])
        return [self._next(BaseCommand.MESSAGE) for _ in range(count)]

    def acknowledge(self, ids: Iterable[MessageIdData], first_request: int) -> None:
        """Acknowledge each id by an ACK of its own. Send all at once, with request ids from `first_request` on."""
        commands = []
        for request, message_id in enumerate(ids, first_request):
            command = BaseCommand(type=BaseCommand.ACK)
            command.ack.consumer_id = 1
            command.ack.ack_type = CommandAck.Individual
            command.ack.message_id.add(ledgerId=message_id.ledgerId, entryId=message_id.entryId)
            command.ack.request_id = request
            commands.append(command)
        self._send(commands)

    def acknowledged(self) -> int | None:
        """Return the request id of the next AckResponse, or None when the connection ends first."""
        try:
            return self._next(BaseCommand.ACK_RESPONSE)[0].ackResponse.request_id
        except ConnectionError:
            return None
