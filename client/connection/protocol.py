"""The client's side of the protocol without I/O: it turns bytes into events, and commands into bytes.

    protocol = ClientProtocol()
    protocol.connect()
    write(protocol.take())
    for event in protocol.receive(read()): ...

Each connection has one object. The object answers PING by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from pulsarium.client.errors import ConnectError, LocalProtocolError, PulsarError, error_of
from pulsarium.proto.commands import COMMANDS, Direction, parse
from pulsarium.proto.errors import CommandError
from pulsarium.proto.framing import FRAME_PADDING, MAX_MESSAGE_SIZE, FrameDecoder, frame
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import text_of

MAX_PROTOCOL_VERSION = 22
CLIENT_VERSION = "Pulsarium-Python"
MOST_MESSAGE_SIZE = 256 * 1024 * 1024  # most bytes that the client accepts, whatever the broker's limit is
FIRST = 16  # most bytes that tell protocols apart, and that an error shows


class ConnectionState(Enum):
    """State of a connection, in the order of its changes."""

    NEW = "new"
    CONNECTING = "connecting"  # CONNECT is sent
    CONNECTED = "connected"
    CLOSED = "closed"


_HANDSHAKE = frozenset({pb.BaseCommand.CONNECT, pb.BaseCommand.CONNECTED})
_FROM_BROKER = frozenset(n for n, spec in COMMANDS.items() if spec.direction is not Direction.CLIENT)
_FROM_CLIENT = frozenset(n for n, spec in COMMANDS.items() if spec.direction is not Direction.BROKER)
_ALIVE = frozenset({pb.BaseCommand.PING, pb.BaseCommand.PONG})
_OWN = _ALIVE | {pb.BaseCommand.AUTH_CHALLENGE}  # received commands that are no event for users of the connection


class _Allowed(NamedTuple):
    sent: frozenset[int]
    received: frozenset[int]


# The commands that may be sent and received in each state.
_TABLE: Mapping[ConnectionState, _Allowed] = MappingProxyType(
    {
        ConnectionState.NEW: _Allowed(frozenset({pb.BaseCommand.CONNECT}), frozenset()),
        ConnectionState.CONNECTING: _Allowed(
            _ALIVE | {pb.BaseCommand.AUTH_RESPONSE},
            _ALIVE | {pb.BaseCommand.CONNECTED, pb.BaseCommand.ERROR, pb.BaseCommand.AUTH_CHALLENGE},
        ),
        ConnectionState.CONNECTED: _Allowed(_FROM_CLIENT - _HANDSHAKE, _FROM_BROKER - _HANDSHAKE),
        ConnectionState.CLOSED: _Allowed(frozenset(), frozenset()),
    }
)


class HandshakeDone(NamedTuple):
    """The broker has accepted the connection."""

    server_version: str
    protocol_version: int  # the lower of both sides
    max_message_size: int  # bytes
    feature_flags: frozenset[str]


class AuthChallenge(NamedTuple):
    """An AUTH_CHALLENGE, in the handshake or when credentials expire (PIP-55), to be met with `answer_challenge`."""


class ReceivedCommand(NamedTuple):
    """A command for the users of the connection, and the bytes behind it."""

    command: pb.BaseCommand
    trailing: bytes


class Closed(NamedTuple):
    """The last event: the broker closed the connection, refused the handshake, or broke the protocol."""

    error: PulsarError


Event: TypeAlias = HandshakeDone | AuthChallenge | ReceivedCommand | Closed


class ClientProtocol:
    """The state of one connection."""

    def __init__(
        self,
        *,
        max_protocol_version: int = MAX_PROTOCOL_VERSION,
        proxy_to_broker_url: str | None = None,
        description: str = "",
    ) -> None:
        """Prepare the handshake. `proxy_to_broker_url` is the broker to which a proxy shall connect, as host:port."""
        self._become(ConnectionState.NEW)
        self.protocol_version: int = max_protocol_version
        self.max_message_size: int = MAX_MESSAGE_SIZE  # of old brokers, which do not send their limit
        self.frames: int = 0
        """Number of received frames."""
        self.first: bytes = b""
        """The first received bytes, which tell protocols apart."""
        self._proxy_to = proxy_to_broker_url
        self._client_version = f"{CLIENT_VERSION}-{description}" if description else CLIENT_VERSION
        self._has_pong = False
        self._decoder = FrameDecoder()
        self._parts: list[bytes] = []

    def _become(self, state: ConnectionState) -> None:
        self.state: ConnectionState = state
        self._allowed = _TABLE[state]

    @property
    def has_output(self) -> bool:
        """Return whether bytes wait to be written."""
        return bool(self._parts)

    @property
    def waiting(self) -> int:
        """Return the number of commands that wait to be written."""
        return len(self._parts)

    def take(self) -> bytes:
        """Remove and return all bytes that wait to be written."""
        data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        self._has_pong = False
        return data

    def put_back(self, rest: bytes) -> None:
        """Put bytes of `take` that could not be written in front of all others."""
        self._parts.insert(0, rest)

    def connect(self, auth_method_name: str = "none", auth_data: bytes = b"") -> None:
        """Enqueue CONNECT, with credentials if there is a method."""
        connect = pb.CommandConnect(
            client_version=self._client_version,
            protocol_version=self.protocol_version,
            auth_method_name=auth_method_name,
            feature_flags=pb.FeatureFlags(
                supports_topic_watchers=True,
                supports_auth_refresh=auth_method_name != "none",
                supports_broker_entry_metadata=True,
                supports_get_partitioned_metadata_without_auto_creation=True,
                supports_scalable_topics=True,
                supports_tc_metadata_discovery=True,
            ),
        )
        if auth_method_name != "none":
            connect.auth_data = auth_data
        if self._proxy_to is not None:
            connect.proxy_to_broker_url = self._proxy_to
        self.send(pb.BaseCommand(type=pb.BaseCommand.CONNECT, connect=connect))
        self._become(ConnectionState.CONNECTING)

    def answer_challenge(self, auth_method_name: str, auth_data: bytes) -> None:
        """Enqueue AUTH_RESPONSE with credentials."""
        response = pb.CommandAuthResponse(
            client_version=self._client_version,
            protocol_version=self.protocol_version,
            response=pb.AuthData(auth_method_name=auth_method_name, auth_data=auth_data),
        )
        self.send(pb.BaseCommand(type=pb.BaseCommand.AUTH_RESPONSE, authResponse=response))

    def send(self, command: pb.BaseCommand, trailing: bytes = b"") -> None:
        """Enqueue a command. Raise `LocalProtocolError` if the state does not allow it."""
        if command.type not in self._allowed.sent:
            raise LocalProtocolError(f"{COMMANDS[command.type].name} must not be sent: {self.state.value}")
        self._parts.append(frame(command.SerializeToString(), trailing))

    def receive(self, data: bytes) -> list[Event]:
        """Return the events in the next bytes. b"" is the end of the stream. No event follows `Closed`."""
        events: list[Event] = []
        if self.state is ConnectionState.CLOSED:
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
        """Send and receive nothing more."""
        self._become(ConnectionState.CLOSED)

    def _close(self, events: list[Event], error: PulsarError) -> None:
        self._become(ConnectionState.CLOSED)
        events.append(Closed(error))

    def _frame(self, encoded: bytes, trailing: bytes, events: list[Event]) -> None:
        command = pb.BaseCommand()
        try:
            spec = parse(encoded, command, trailing)
        except CommandError as error:
            self._close(events, _broken(str(error)))
            return
        if spec.type not in self._allowed.received:
            self._close(events, _broken(f"{spec.name} while {self.state.value}"))
        elif spec.type in _OWN:
            self._own(command, events)
        elif self.state is ConnectionState.CONNECTING:
            self._handshake(command, events)
        else:
            events.append(ReceivedCommand(command, trailing))

    def _own(self, command: pb.BaseCommand, events: list[Event]) -> None:
        if command.type == pb.BaseCommand.PING:
            if not self._has_pong:  # one answer is enough for a broker that sends PINGs and does not read
                self.send(_PONG)
                self._has_pong = True
        elif command.type == pb.BaseCommand.AUTH_CHALLENGE:
            events.append(AuthChallenge())
        # PONG is a sign of life, which `frames` counts

    def _handshake(self, command: pb.BaseCommand, events: list[Event]) -> None:
        if command.type == pb.BaseCommand.ERROR:
            self._close(events, error_of(command.error.error, text_of(command.error.message)))
        else:
            self._connected(command.connected, events)

    def _connected(self, connected: pb.CommandConnected, events: list[Event]) -> None:
        self._become(ConnectionState.CONNECTED)
        self.protocol_version = min(self.protocol_version, connected.protocol_version)
        if connected.max_message_size > 0:
            self.max_message_size = connected.max_message_size
            self._decoder.allow(min(connected.max_message_size, MOST_MESSAGE_SIZE) + FRAME_PADDING)
        flags = frozenset(field.name for field, value in connected.feature_flags.ListFields() if value)
        events.append(
            HandshakeDone(text_of(connected.server_version), self.protocol_version, self.max_message_size, flags)
        )


def _broken(reason: str) -> ConnectError:
    return ConnectError(f"the broker broke the protocol: {reason}")


_PONG = pb.BaseCommand(type=pb.BaseCommand.PONG, pong=pb.CommandPong())
