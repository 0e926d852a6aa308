"""The sans-IO protocol: bytes in, events out, whatever the pieces of the bytes."""

from __future__ import annotations

import pytest

from pulsarium.client.connection.protocol import (
    AuthChallenge,
    ClientProtocol,
    Closed,
    ConnectionState,
    Event,
    HandshakeDone,
    ReceivedCommand,
)
from pulsarium.client.errors import (
    AuthenticationError,
    ConnectError,
    LocalProtocolError,
    UnsupportedVersionError,
)
from pulsarium.proto.commands import parse
from pulsarium.proto.framing import FrameDecoder
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import command, frame_of
from tests.client.peer import Type

CONNECTED = frame_of(Type.CONNECTED, server_version="b", protocol_version=21, max_message_size=1000)


def sent(protocol: ClientProtocol) -> list[pb.BaseCommand]:
    commands = []
    for encoded, _ in FrameDecoder().feed(protocol.take()):
        base = pb.BaseCommand()
        parse(encoded, base)
        commands.append(base)
    return commands


def connecting(**options: object) -> ClientProtocol:
    protocol = ClientProtocol(**options)  # type: ignore[arg-type]
    protocol.connect()
    return protocol


def connected() -> ClientProtocol:
    protocol = connecting()
    protocol.take()
    protocol.receive(CONNECTED)
    return protocol


def closing(events: list[Event]) -> Closed:
    """Return the last event, which must be `Closed`."""
    assert isinstance(events[-1], Closed)
    return events[-1]


def test_connect_says_what_we_are() -> None:
    protocol = connecting(max_protocol_version=21, proxy_to_broker_url="b:6650")
    (base,) = sent(protocol)
    connect = base.connect
    assert (connect.protocol_version, connect.proxy_to_broker_url, connect.auth_method_name) == (21, "b:6650", "none")
    assert connect.feature_flags.supports_broker_entry_metadata
    assert connect.feature_flags.supports_topic_watchers
    assert protocol.state is ConnectionState.CONNECTING
    assert not protocol.has_output


@pytest.mark.parametrize(("ours", "theirs", "agreed"), [(22, 21, 21), (21, 22, 21), (22, 22, 22), (22, 0, 0)])
def test_the_lower_version_holds(ours: int, theirs: int, agreed: int) -> None:
    protocol = connecting(max_protocol_version=ours)
    (event,) = protocol.receive(frame_of(Type.CONNECTED, server_version="b", protocol_version=theirs))
    assert isinstance(event, HandshakeDone)
    assert event.protocol_version == protocol.protocol_version == agreed


def test_connected_tells_version_size_and_features() -> None:
    (event,) = connecting().receive(
        frame_of(
            Type.CONNECTED,
            server_version="b",
            protocol_version=22,
            max_message_size=7,
            feature_flags={"supports_topic_watchers": True},
        )
    )
    assert event == HandshakeDone("b", 22, 7, frozenset({"supports_topic_watchers"}))


def test_events_are_the_same_byte_by_byte() -> None:
    """The pieces of the bytes do not matter. An event has its command and the bytes behind it."""
    stream = (
        CONNECTED
        + frame_of(Type.MESSAGE, b"entry", consumer_id=3, message_id={"ledgerId": 1, "entryId": 2})
        + frame_of(Type.PING)
        + frame_of(Type.SUCCESS, request_id=9)
        + frame_of(
            Type.GET_LAST_MESSAGE_ID_RESPONSE, b"last", request_id=1, last_message_id={"ledgerId": 1, "entryId": 2}
        )
    )
    whole, single = connecting(), connecting()
    expected = whole.receive(stream)
    events = [event for i in range(len(stream)) for event in single.receive(stream[i : i + 1])]
    assert events == expected
    assert [event.command.type for event in events if isinstance(event, ReceivedCommand)] == [
        Type.MESSAGE,
        Type.SUCCESS,
        Type.GET_LAST_MESSAGE_ID_RESPONSE,
    ]
    assert [event.trailing for event in events if isinstance(event, ReceivedCommand)] == [b"entry", b"", b"last"]
    assert single.take() == whole.take()


def test_ping_is_answered_by_itself() -> None:
    protocol = connected()
    assert protocol.receive(frame_of(Type.PING) + frame_of(Type.PONG)) == []
    assert [base.type for base in sent(protocol)] == [Type.PONG]


def test_pings_that_nobody_waits_for_share_an_answer() -> None:
    """A broker that sends PING and never reads does not fill the client's memory."""
    protocol = connected()
    for _ in range(2):
        assert protocol.receive(frame_of(Type.PING) * 1000) == []
    assert [base.type for base in sent(protocol)] == [Type.PONG]
    protocol.receive(frame_of(Type.PING))
    assert [base.type for base in sent(protocol)] == [Type.PONG]


def test_ping_before_connected_is_answered() -> None:
    protocol = connecting()
    protocol.take()
    assert protocol.receive(frame_of(Type.PING)) == []
    assert [base.type for base in sent(protocol)] == [Type.PONG]


def test_a_refused_handshake_closes_with_its_error() -> None:
    refusal = frame_of(Type.ERROR, request_id=2**64 - 1, error=pb.UnsupportedVersionError, message="too old")
    error = closing(connecting().receive(refusal)).error
    assert isinstance(error, UnsupportedVersionError)
    assert error.args == ("too old",)
    refusal = frame_of(Type.ERROR, request_id=0, error=pb.AuthenticationError, message="")
    assert isinstance(closing(connecting().receive(refusal)).error, AuthenticationError)


def test_connect_carries_credentials() -> None:
    protocol = ClientProtocol()
    protocol.connect("token", b"secret")
    (base,) = sent(protocol)
    assert (base.connect.auth_method_name, base.connect.auth_data) == ("token", b"secret")
    assert base.connect.feature_flags.supports_auth_refresh
    (base,) = sent(connecting())
    assert not base.connect.HasField("auth_data")
    assert not base.connect.feature_flags.supports_auth_refresh


@pytest.mark.parametrize("before", [b"", CONNECTED], ids=["in the handshake", "later"])
def test_a_challenge_is_answered(before: bytes) -> None:
    protocol = ClientProtocol()
    protocol.connect("token", b"old")
    protocol.take()
    if before:
        protocol.receive(before)
    challenge = frame_of(Type.AUTH_CHALLENGE, challenge={"auth_method_name": "token", "auth_data": b"refresh"})
    assert [event for i in range(len(challenge)) for event in protocol.receive(challenge[i : i + 1])] == [
        AuthChallenge()
    ]
    protocol.answer_challenge("token", b"new")
    (base,) = sent(protocol)
    response = base.authResponse.response
    assert (base.type, response.auth_method_name, response.auth_data) == (Type.AUTH_RESPONSE, "token", b"new")
    assert base.authResponse.protocol_version == protocol.protocol_version
    if not before:
        (event,) = protocol.receive(CONNECTED)
        assert isinstance(event, HandshakeDone)


@pytest.mark.parametrize(
    ("protocol", "data"),
    [
        (connecting(), frame_of(Type.SUCCESS, request_id=1)),  # before CONNECTED
        (connected(), CONNECTED),  # twice
        (connected(), frame_of(Type.LOOKUP, topic="t", request_id=1)),  # a client's command
        (connected(), b"\xff\xff\xff\xff"),  # a frame of 4 GB
        (connected(), b"\x00\x00\x00\x08\x00\x00\x00\x0fabcd"),  # a command beyond its frame
        (connected(), b"\x00\x00\x00\x06\x00\x00\x00\x02\x08\x7f"),  # an unknown command
        (connected(), b""),  # the end of the stream
    ],
    ids=["early", "twice", "ours", "huge", "overlong", "unknown", "end"],
)
def test_the_broker_breaks_the_protocol(protocol: ClientProtocol, data: bytes) -> None:
    good = frame_of(Type.SUCCESS, request_id=5) if protocol.state is ConnectionState.CONNECTED and data else b""
    events = protocol.receive(good + data)
    assert [type(event) for event in events] == [ReceivedCommand, Closed] if good else [Closed]
    assert isinstance(closing(events).error, ConnectError)
    assert protocol.state is ConnectionState.CLOSED
    assert protocol.receive(CONNECTED) == []


def test_a_frame_limit_follows_max_message_size() -> None:
    protocol = connecting()
    protocol.receive(frame_of(Type.CONNECTED, server_version="b", max_message_size=100))
    big = frame_of(Type.SUCCESS, bytes(11 * 1024), request_id=1)
    assert isinstance(closing(protocol.receive(big)).error, ConnectError)
    protocol = connecting()
    protocol.receive(frame_of(Type.CONNECTED, server_version="b", max_message_size=8 * 1024 * 1024))
    (event,) = protocol.receive(frame_of(Type.SUCCESS, bytes(7 * 1024 * 1024), request_id=1))
    assert isinstance(event, ReceivedCommand)


def test_a_broker_that_claims_to_take_anything() -> None:
    protocol = connecting()
    protocol.receive(frame_of(Type.CONNECTED, server_version="b", max_message_size=2**31 - 1))
    assert protocol.max_message_size == 2**31 - 1
    (closed,) = protocol.receive((2**30).to_bytes(4, "big") + (4).to_bytes(4, "big"))
    assert isinstance(closed, Closed)


def test_commands_that_must_not_be_sent_are_refused() -> None:
    lookup = command(Type.LOOKUP, topic="t", request_id=1)
    closed = connected()
    closed.close()
    for protocol, base in [
        (ClientProtocol(), lookup),
        (connecting(), lookup),
        (connected(), command(Type.CONNECT, client_version="x")),
        (connected(), command(Type.SUCCESS, request_id=1)),  # a broker's command
        (closed, lookup),
    ]:
        with pytest.raises(LocalProtocolError, match=r"[A-Z]+ must not be sent"):
            protocol.send(base)
    with pytest.raises(LocalProtocolError):
        connecting().connect()


def test_commands_wait_in_order_until_taken() -> None:
    protocol = connected()
    protocol.send(command(Type.FLOW, consumer_id=1, messagePermits=2))
    protocol.send(command(Type.SEND, producer_id=1, sequence_id=2), b"entry")
    frames = FrameDecoder().feed(protocol.take())
    assert [trailing for _, trailing in frames] == [b"", b"entry"]
    assert not protocol.has_output
