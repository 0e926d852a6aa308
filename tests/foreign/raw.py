"""A consumer made of frames, for what no official Python client shows: the AckResponse."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Iterable
from types import TracebackType

from pulsarium.proto.framing import FrameDecoder, frame
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand, CommandAck, CommandSubscribe, MessageIdData

from .broker_process import Address


class RawConsumer:
    """A Shared consumer of `topic` from its earliest message on, on a connection of its own."""

    def __init__(self, address: Address, topic: str, subscription: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", address.port), timeout=30)
        self._decoder = FrameDecoder()
        self._frames: deque[BaseCommand] = deque()
        connect = BaseCommand(type=BaseCommand.CONNECT)
        connect.connect.client_version = "raw"
        connect.connect.protocol_version = 21
        self._send([connect])
        self._next(BaseCommand.CONNECTED)
        subscribe = BaseCommand(type=BaseCommand.SUBSCRIBE)
        subscribe.subscribe.topic = topic
        subscribe.subscribe.subscription = subscription
        subscribe.subscribe.subType = CommandSubscribe.Shared
        subscribe.subscribe.initialPosition = CommandSubscribe.Earliest
        subscribe.subscribe.consumer_id = 1
        subscribe.subscribe.request_id = 1
        self._send([subscribe])
        self._next(BaseCommand.SUCCESS)

    def __enter__(self) -> RawConsumer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def receive(self, count: int) -> list[MessageIdData]:
        """The ids of the next `count` entries."""
        flow = BaseCommand(type=BaseCommand.FLOW)
        flow.flow.consumer_id = 1
        flow.flow.messagePermits = count
        self._send([flow])
        return [self._next(BaseCommand.MESSAGE).message.message_id for _ in range(count)]

    def acknowledge(self, ids: Iterable[MessageIdData], first_request: int) -> None:
        """One ACK each, all in one go, with request ids from `first_request` on."""
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
        """The request id of the next AckResponse; None when the connection ends first."""
        try:
            return self._next(BaseCommand.ACK_RESPONSE).ackResponse.request_id
        except ConnectionError:
            return None

    def _send(self, commands: Iterable[BaseCommand]) -> None:
        self._socket.sendall(b"".join(frame(command.SerializeToString()) for command in commands))

    def _next(self, kind: BaseCommand.Type) -> BaseCommand:
        while True:
            while not self._frames:
                data = self._socket.recv(1 << 16)
                if not data:
                    raise ConnectionError("closed by the broker")
                self._frames.extend(BaseCommand.FromString(command) for command, _ in self._decoder.feed(data))
            command = self._frames.popleft()
            if command.type == BaseCommand.PING:
                self._send([BaseCommand(type=BaseCommand.PONG, pong={})])
            elif command.type == kind:
                return command
            elif command.type not in (BaseCommand.ACTIVE_CONSUMER_CHANGE,):
                raise AssertionError(f"not what was asked for: {command}")
