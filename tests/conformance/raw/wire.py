"""Connections of the raw client: a socket, and a thread that sorts what the broker says."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, Queue
from typing import Any
from urllib.parse import urlsplit

from pulsarium.conformance.adapters.lines import Refusal
from pulsarium.proto.commands import COMMANDS, parse
from pulsarium.proto.framing import FrameDecoder, frame
from pulsarium.proto.generated import PulsarApi_pb2 as pb

SECONDS = 20.0
KINDS = {
    "TopicNotFound": "NotFound",
    "AuthorizationError": "Authorization",
    "AuthenticationError": "Authentication",
    "ProducerBusy": "ProducerBusy",
    "ProducerFenced": "Fenced",
    "ConsumerBusy": "ConsumerBusy",
    "IncompatibleSchema": "IncompatibleSchema",
    "TopicTerminatedError": "TopicTerminated",
}
T = pb.BaseCommand


class Lost(Exception):
    """The connection has ended."""


def refusal(body: Any) -> Refusal:
    name = pb.ServerError.Name(body.error)
    return Refusal(KINDS.get(name, "Other"), f"{name}: {body.message}")


class Connection:
    """A connection. Its thread calls `hear` with each command that answers no request, and with None at the end."""

    def __init__(self, url: str, hear: Callable[[Connection, Any, bytes], None]) -> None:
        place = urlsplit(url)
        self._hear = hear
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Queue[Any]] = {}
        self._lock = threading.Lock()
        self.lost = False
        self.server = ""
        try:
            self._socket = socket.create_connection((place.hostname, place.port or 6650), SECONDS)
        except OSError as error:
            raise Lost(str(error)) from None
        self._socket.settimeout(None)
        self._greeting: Queue[Any] = Queue()
        flags = pb.FeatureFlags(supports_scalable_topics=True)
        self.say(T.CONNECT, client_version="Pulsar-Raw-v1.0", protocol_version=21, feature_flags=flags)
        threading.Thread(target=self._read, daemon=True).start()
        connected = self._taken(self._greeting)
        self.server = connected.server_version

    def number(self) -> int:
        return next(self._numbers)

    def say(self, command: int, entry: bytes = b"", **fields: Any) -> None:
        said = T(type=T.Type.Name(T.Type.ValueType(command)))
        body: Any = getattr(said, COMMANDS[command].field)
        body.SetInParent()
        for name, value in fields.items():
            if isinstance(value, list):
                getattr(body, name).extend(value)
            elif hasattr(value, "DESCRIPTOR"):
                getattr(body, name).CopyFrom(value)
            else:
                setattr(body, name, value)
        data = frame(said.SerializeToString(), entry)
        try:
            with self._lock:
                self._socket.sendall(data)
        except OSError:
            self.lost = True
            raise Lost("the connection has ended") from None

    def ask(self, command: int, **fields: Any) -> Any:
        """Return the body of the answer, or raise `Refusal` or `Lost`."""
        number = self.number()
        answer = self._waiting[number] = Queue()
        self.say(command, request_id=number, **fields)
        if self.lost:
            answer.put(None)
        body = self._taken(answer)
        if "error" in body.DESCRIPTOR.fields_by_name and body.HasField("error"):
            raise refusal(body)
        return body

    def _taken(self, answer: Queue[Any]) -> Any:
        try:
            body = answer.get(timeout=SECONDS)
        except Empty:
            raise Refusal("Timeout", "the broker did not answer") from None
        if body is None:
            raise Lost("the connection has ended")
        return body

    def _read(self) -> None:
        decoder = FrameDecoder()
        try:
            while data := self._socket.recv(1 << 16):
                for command, entry in frames(decoder, data):
                    self._sort(command, entry)
        except OSError:
            pass
        self.lost = True
        for answer in (self._greeting, *list(self._waiting.values())):
            answer.put(None)
        self._hear(self, None, b"")

    def _sort(self, command: T, entry: bytes) -> None:
        body = getattr(command, COMMANDS[command.type].field)
        if command.type == T.CONNECTED:
            self._greeting.put(body)
        elif command.type == T.PING:
            self.say(T.PONG)
        elif "request_id" in body.DESCRIPTOR.fields_by_name and body.request_id in self._waiting:
            if command.type == T.PRODUCER_SUCCESS and not body.producer_ready:
                return
            self._waiting.pop(body.request_id).put(body)
        else:
            self._hear(self, command, entry)

    def close(self) -> None:
        self.lost = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def frames(decoder: FrameDecoder, data: bytes) -> list[tuple[T, bytes]]:
    found = []
    for told, entry in decoder.feed(data):
        command = T()
        parse(told, command)
        found.append((command, entry))
    return found
