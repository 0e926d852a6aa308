"""The client's side of the protocol, sans-IO: bytes go in and come out as events, commands wait to go out as bytes.

    protocol = ClientProtocol()
    protocol.connect()
    write(protocol.take())
    for event in protocol.receive(read()): ...

One object for one connection. It answers PING by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from pulsarium.client.errors import ConnectError, LocalProtocolError, PulsarError, error_of
from pulsarium.proto.commands import COMMANDS, CommandSpec, Direction, parse
from pulsarium.proto.errors import CommandError
from pulsarium.proto.framing import FrameDecoder, frame
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import text_of

MAX_PROTOCOL_VERSION = 22
CLIENT_VERSION = "Pulsarium-Python"
DEFAULT_MAX_MESSAGE_SIZE = 5 * 1024 * 1024  # of brokers too old to tell
MOST_MESSAGE_SIZE = 256 * 1024 * 1024  # bytes that are taken from brokers, whatever they say they take themselves
FIRST = 4  # bytes
FRAME_PADDING = 10 * 1024  # bytes a frame may have beyond max_message_size


class State(Enum):
    """Of a connection; it only moves down this list."""

    NEW = "new"
    CONNECTING = "connecting"  # CONNECT is sent
    CONNECTED = "connected"
    CLOSED = "closed"


_HANDSHAKE = frozenset({pb.BaseCommand.CONNECT, pb.BaseCommand.CONNECTED})
_FROM_BROKER = frozenset(n for n, spec in COMMANDS.items() if spec.direction is not Direction.CLIENT)
_FROM_CLIENT = frozenset(n for n, spec in COMMANDS.items() if spec.direction is not Direction.BROKER)
_ALIVE = frozenset({pb.BaseCommand.PING, pb.BaseCommand.PONG})


class _Allowed(NamedTuple):
    sent: frozenset[int]
    received: frozenset[int]


# The one table: what may be sent and received in which state.
_TABLE: Mapping[State, _Allowed] = MappingProxyType(
    {
        State.NEW: _Allowed(frozenset({pb.BaseCommand.CONNECT}), frozenset()),
        State.CONNECTING: _Allowed(
            _ALIVE | {pb.BaseCommand.AUTH_RESPONSE},
            _ALIVE | {pb.BaseCommand.CONNECTED, pb.BaseCommand.ERROR, pb.BaseCommand.AUTH_CHALLENGE},
        ),
        State.CONNECTED: _Allowed(_FROM_CLIENT - _HANDSHAKE, _FROM_BROKER - _HANDSHAKE),
        State.CLOSED: _Allowed(frozenset(), frozenset()),
    }
)


class Connected(NamedTuple):
    """The broker took us in."""

    server_version: str
    protocol_version: int  # the lower of both sides
    max_message_size: int  # bytes
    feature_flags: frozenset[str]


class Challenged(NamedTuple):
    """AUTH_CHALLENGE: the broker wants `answer_challenge`, in the handshake or later when credentials end (PIP-55)."""


class Received(NamedTuple):
    """A command for whoever uses the connection, and the bytes behind it."""

    spec: CommandSpec
    command: pb.BaseCommand
    trailing: bytes


class Closed(NamedTuple):
    """The last event: the other side went away, refused the handshake, or broke the protocol."""

    error: PulsarError


Event: TypeAlias = Connected | Challenged | Received | Closed


class ClientProtocol:
    """State of one connection."""

    def __init__(
        self,
        *,
        max_protocol_version: int = MAX_PROTOCOL_VERSION,
        proxy_to_broker_url: str | None = None,
        description: str = "",
    ) -> None:
        """`proxy_to_broker_url`: the broker a proxy at the other end shall connect us to, as host:port."""
        self.state: State = State.NEW
        self.protocol_version: int = max_protocol_version
        self.max_message_size: int = DEFAULT_MAX_MESSAGE_SIZE
        self.frames: int = 0
        """How many came."""
        self.first: bytes = b""
        """The first bytes that came: as many as tell protocols apart."""
        self._proxy_to = proxy_to_broker_url
        self._client_version = f"{CLIENT_VERSION}-{description}" if description else CLIENT_VERSION
        self._has_pong = False
        self._decoder = FrameDecoder()
        self._parts: list[bytes] = []

    @property
    def has_output(self) -> bool:
        """Whether bytes wait to be written."""
        return bool(self._parts)

    @property
    def waiting(self) -> int:
        """How many commands wait to be written."""
        return len(self._parts)

    def take(self) -> bytes:
        """Everything that waits to be written, once."""
        data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        self._has_pong = False
        return data

    def put_back(self, rest: bytes) -> None:
        """What `take` gave and could not be written: it comes first the next time."""
        self._parts.insert(0, rest)

    def connect(self, auth_method_name: str = "none", auth_data: bytes = b"") -> None:
        """Begin the handshake: CONNECT, with credentials if there is a method."""
        connect = pb.CommandConnect(
            client_version=self._client_version,
            protocol_version=self.protocol_version,
            auth_method_name=auth_method_name,
            feature_flags=pb.FeatureFlags(
                supports_topic_watchers=True,
                supports_auth_refresh=auth_method_name != "none",
                supports_broker_entry_metadata=True,
                supports_get_partitioned_metadata_without_auto_creation=True,
            ),
        )
        if auth_method_name != "none":
            connect.auth_data = auth_data
        if self._proxy_to is not None:
            connect.proxy_to_broker_url = self._proxy_to
        self.send(pb.BaseCommand(type=pb.BaseCommand.CONNECT, connect=connect))
        self.state = State.CONNECTING

    def answer_challenge(self, auth_method_name: str, auth_data: bytes) -> None:
        """AUTH_RESPONSE."""
        response = pb.CommandAuthResponse(
            client_version=self._client_version,
            protocol_version=self.protocol_version,
            response=pb.AuthData(auth_method_name=auth_method_name, auth_data=auth_data),
        )
        self.send(pb.BaseCommand(type=pb.BaseCommand.AUTH_RESPONSE, authResponse=response))

    def send(self, command: pb.BaseCommand, trailing: bytes = b"") -> None:
        """Queue a command; LocalProtocolError if a client must not send it in this state."""
        if command.type not in _TABLE[self.state].sent:
            raise LocalProtocolError(f"{COMMANDS[command.type].name} must not be sent: {self.state.value}")
        self._parts.append(frame(command.SerializeToString(), trailing))

    def receive(self, data: bytes) -> list[Event]:
        """The events of the next bytes; b"" is the end of the stream. Nothing follows `Closed`."""
        events: list[Event] = []
        if self.state is State.CLOSED:
            return events
        if not data:
            self._close(events, ConnectError("the broker closed the connection"))
            return events
        if len(self.first) < FIRST:
            self.first = (self.first + data[:FIRST])[:FIRST]
        frames = self._decoder.feed(data)
        self.frames += len(frames)
        for encoded, trailing in frames:
            self._frame(encoded, trailing, events)
            if events and isinstance(events[-1], Closed):
                return events
        if self._decoder.error is not None:
            self._close(events, _broken(str(self._decoder.error)))
        return events

    def close(self) -> None:
        """Nothing more is sent or received."""
        self.state = State.CLOSED

    def _close(self, events: list[Event], error: PulsarError) -> None:
        self.state = State.CLOSED
        events.append(Closed(error))

    def _frame(self, encoded: bytes, trailing: bytes, events: list[Event]) -> None:
        command = pb.BaseCommand()
        try:
            spec = parse(encoded, command, trailing)
        except CommandError as error:
            self._close(events, _broken(str(error)))
            return
        if command.type not in _TABLE[self.state].received:
            self._close(events, _broken(f"{spec.name} while {self.state.value}"))
        elif command.type == pb.BaseCommand.PING:
            if not self._has_pong:  # a broker that asks without reading is not answered without end
                self.send(_PONG)
                self._has_pong = True
        elif command.type == pb.BaseCommand.PONG:
            pass  # a sign of life; that bytes came in says as much
        elif command.type == pb.BaseCommand.AUTH_CHALLENGE:
            events.append(Challenged())
        elif self.state is State.CONNECTING:
            self._handshake(command, events)
        else:
            events.append(Received(spec, command, trailing))

    def _handshake(self, command: pb.BaseCommand, events: list[Event]) -> None:
        if command.type == pb.BaseCommand.ERROR:
            self._close(events, error_of(command.error.error, text_of(command.error.message)))
        else:
            self._connected(command.connected, events)

    def _connected(self, connected: pb.CommandConnected, events: list[Event]) -> None:
        self.state = State.CONNECTED
        self.protocol_version = min(self.protocol_version, connected.protocol_version)
        if connected.max_message_size > 0:
            self.max_message_size = connected.max_message_size
            self._decoder.allow(min(connected.max_message_size, MOST_MESSAGE_SIZE) + FRAME_PADDING)
        flags = frozenset(field.name for field, value in connected.feature_flags.ListFields() if value)
        events.append(Connected(text_of(connected.server_version), self.protocol_version, self.max_message_size, flags))


def _broken(reason: str) -> ConnectError:
    return ConnectError(f"the broker broke the protocol: {reason}")


_PONG = pb.BaseCommand(type=pb.BaseCommand.PONG, pong=pb.CommandPong())
