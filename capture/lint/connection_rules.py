"""Rules of a connection: frames, the greeting, agreed versions, and answers that a side owes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from google.protobuf.unknown_fields import UnknownFieldSet

from pulsarium.capture.file import CaptureRecord
from pulsarium.capture.lint.exchanges import request_key
from pulsarium.capture.lint.frames import WITH_REQUEST_ID, Frame
from pulsarium.capture.lint.rule import RULES, LintRule, Section, Severity
from pulsarium.capture.lint.state import LintedConnection
from pulsarium.proto.commands import COMMANDS, Direction
from pulsarium.proto.entry import strip_checksum
from pulsarium.proto.framing import FRAME_PADDING, MAX_FRAME_SIZE
from pulsarium.proto.generated.PulsarApi_pb2 import NONE, BaseCommand, CommandSubscribe, Schema
from pulsarium.proto.numbers import NO_REQUEST
from pulsarium.proto.text import text_of

_T = BaseCommand
_BEFORE_CONNECT = {_T.CONNECT, _T.AUTH_RESPONSE, _T.PING, _T.PONG}
_BEFORE_CONNECTED = {_T.CONNECTED, _T.AUTH_CHALLENGE, _T.ERROR, _T.PING, _T.PONG}
_GREETING = "Binary protocol: connection establishment"
_REFUSED = re.compile(r"(frame|command) of \d+ bytes ")


CONNECTION_RULES = Section("Rules of the connection: frames, the greeting, and the order of commands")


@CONNECTION_RULES(
    "broken-frame",
    "A frame has two matching lengths, and a known command with its required fields.",
    "Binary protocol: framing; PulsarApi.proto",
    "Write both lengths big-endian, without the lengths' own bytes, and set every required field.",
    about=Direction.BOTH,
)
def _connection_broken(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if frame.broken is not None:
        yield frame.broken


@CONNECTION_RULES(
    "frame-too-big",
    "A frame has at most max_message_size of CONNECTED and 10 KiB more.",
    "broker.conf maxMessageSize; PIP-36",
    "Split a large message into chunks (PIP-37), or refuse it before sending.",
    about=Direction.BOTH,
)
def _connection_too_big(state: LintedConnection, frame: Frame) -> Iterator[str]:
    message_size = state.conversation.max_message_size
    limit = MAX_FRAME_SIZE if message_size is None else message_size + FRAME_PADDING
    if frame.record.size > limit:
        yield f"{frame.record.size} bytes, more than the {limit} allowed"


def refused_by(reason: str) -> LintRule | None:
    """Return the rule that a frame broke when the broker closed at its lengths, before the frame was captured."""
    if not _REFUSED.match(reason):
        return None
    return RULES["frame-too-big" if "over the limit" in reason else "broken-frame"]


@CONNECTION_RULES(
    "wrong-direction",
    "Only the side that a command belongs to sends it.",
    "PulsarApi.proto: BaseCommand",
    "Do not send the other side's commands.",
    about=Direction.BOTH,
)
def _connection_direction(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if frame.spec and frame.spec.direction not in (Direction.BOTH, frame.sender):
        yield f"{frame.name} from the {frame.sender.value}"


@CONNECTION_RULES(
    "command-before-connect",
    "A client's first command is CONNECT.",
    _GREETING,
    "Send CONNECT first: brokers close a connection that begins with any command except PING.",
)
def _connection_before_connect(state: LintedConnection, frame: Frame) -> Iterator[str]:
    early = frame.sender is Direction.CLIENT and not state.connects
    if early and frame.spec and frame.spec.type not in _BEFORE_CONNECT:
        yield f"{frame.name} on a connection without CONNECT"


@CONNECTION_RULES(
    "command-not-awaited",
    "Until CONNECTED, a client sends only answers and PING.",
    _GREETING,
    "Wait for CONNECTED: with authentication, an earlier command closes the connection.",
    severity=Severity.WARNING,
)
def _connection_not_awaited(state: LintedConnection, frame: Frame) -> Iterator[str]:
    early = frame.sender is Direction.CLIENT and state.connects and not state.connected
    if early and frame.spec and frame.spec.type not in _BEFORE_CONNECT:
        yield f"{frame.name} before CONNECTED"


@CONNECTION_RULES(
    "command-before-connected",
    "A broker's first command is CONNECTED.",
    _GREETING,
    "Answer CONNECT first.",
    about=Direction.BROKER,
)
def _connection_before_connected(state: LintedConnection, frame: Frame) -> Iterator[str]:
    early = frame.sender is Direction.BROKER and not state.connected
    if early and frame.spec and frame.spec.type not in _BEFORE_CONNECTED:
        yield f"{frame.name} before CONNECTED"


@CONNECTION_RULES(
    "second-connect",
    "A client sends CONNECT once.",
    _GREETING,
    "Open another connection, and send new credentials in AUTH_RESPONSE.",
    on=["CONNECT"],
)
def _connection_second_connect(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if state.connects:
        yield "a second CONNECT"


@CONNECTION_RULES(
    "second-connected",
    "A broker sends CONNECTED once.",
    _GREETING,
    "Answer CONNECT once.",
    on=["CONNECTED"],
    about=Direction.BROKER,
)
def _connection_second_connected(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if state.connected:
        yield "a second CONNECTED"


@CONNECTION_RULES(
    "client-version-missing",
    "CONNECT names the client in client_version, without blanks.",
    "PulsarApi.proto: CommandConnect; Pulsar's ServerCnx ignores other values",
    "Name client and version, as `Pulsar-Go-0.19.0` does: statistics show them.",
    on=["CONNECT"],
    severity=Severity.WARNING,
)
def _connection_client_version(state: LintedConnection, frame: Frame) -> Iterator[str]:
    text = text_of(frame.body.client_version)
    if not text or " " in text:
        yield f"client_version {text[:100]!r}"


@CONNECTION_RULES(
    "protocol-version-missing",
    "CONNECT names the protocol version of the client.",
    "PulsarApi.proto: CommandConnect.protocol_version",
    "Set protocol_version: without it the client has version 0, without batches and checksums.",
    on=["CONNECT"],
    severity=Severity.WARNING,
)
def _connection_protocol_version(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if not frame.body.HasField("protocol_version"):
        yield "no protocol_version"
    elif frame.body.protocol_version < 0:
        yield f"protocol_version {frame.body.protocol_version}"


@CONNECTION_RULES(
    "request-id-reserved",
    "The request_id 2^64-1 belongs to the broker, for commands that answer no request.",
    "Pulsar's Commands: ERROR and CLOSE_* with request_id -1",
    "Count request ids from 0 or 1.",
    on=WITH_REQUEST_ID,
    severity=Severity.WARNING,
)
def _connection_reserved(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if frame.request_id == NO_REQUEST and frame.sender is Direction.CLIENT:
        yield f"{frame.name} with request_id {NO_REQUEST}"


_VERSIONS = "PulsarApi.proto: ProtocolVersion"
_FROM_BROKER_SINCE: dict[int, int] = {_T.CLOSE_PRODUCER: 5, _T.CLOSE_CONSUMER: 5}


VERSION_RULES = Section("Rules of agreements: protocol versions and features")


@VERSION_RULES(
    "version-not-offered",
    "CONNECTED names no version above that of CONNECT.",
    _VERSIONS,
    "Answer with the lower of both versions.",
    on=["CONNECTED"],
    about=Direction.BROKER,
)
def _version_version(state: LintedConnection, frame: Frame) -> Iterator[str]:
    asked = state.conversation.asked_version
    if asked is not None and frame.body.protocol_version > asked:
        yield f"version {frame.body.protocol_version} to a client of version {asked}"


@VERSION_RULES(
    "newer-than-version",
    "A command is not newer than the other side's protocol version.",
    _VERSIONS,
    "Check protocol_version of CONNECTED before sending a newer command, and announce the version that you use.",
    about=Direction.BOTH,
)
def _version_newer(state: LintedConnection, frame: Frame) -> Iterator[str]:
    talk = state.conversation
    version = talk.protocol_version if state.connected else talk.asked_version
    # An answer is sent to requests of any version, and Pulsar pings clients of any version.
    if frame.spec is None or frame.spec.type == _T.PING or version is None:
        return
    from_broker = frame.sender is Direction.BROKER
    since = max(frame.spec.since, _FROM_BROKER_SINCE.get(frame.spec.type, 0) if from_broker else 0)
    if since > max(version, 0) and state.matcher.request_of(frame) is None:
        yield f"{frame.name}, of version {since}, on a connection of version {version}"


@VERSION_RULES(
    "feature-not-offered",
    "A command of a feature goes to a broker with that feature.",
    "PulsarApi.proto: FeatureFlags of CONNECTED",
    "Check feature_flags of CONNECTED first: brokers without the feature close the connection.",
    on=[spec.name for spec in COMMANDS.values() if spec.feature_flag],
)
def _version_feature(state: LintedConnection, frame: Frame) -> Iterator[str]:
    flag = frame.spec.feature_flag if frame.spec else None
    if flag and state.connected and frame.sender is Direction.CLIENT and flag not in state.conversation.broker_flags:
        yield f"{frame.name} without {flag}"


def _metadata(look: Callable[[Any], bool]) -> Callable[[LintedConnection, Frame], bool]:
    def there(state: LintedConnection, frame: Frame) -> bool:
        metadata = state.sent(frame).metadata
        return metadata is not None and look(metadata)

    return there


def _auto_consume(state: LintedConnection, frame: Frame) -> bool:
    return bool(frame.body.HasField("schema") and frame.body.schema.type == Schema.AutoConsume)


_NEWER_FIELDS: dict[str, list[tuple[int, str, Callable[[LintedConnection, Frame], bool]]]] = {
    "CONNECT": [(10, "proxy_to_broker_url", lambda _, frame: bool(frame.body.proxy_to_broker_url))],
    "SEND": [
        (3, "compression", _metadata(lambda metadata: metadata.compression != NONE)),
        (4, "num_messages_in_batch", _metadata(lambda metadata: metadata.HasField("num_messages_in_batch"))),
        (6, "a checksum", lambda _, frame: strip_checksum(frame.entry) is not frame.entry),
    ],
    "SUBSCRIBE": [
        (14, "Key_Shared", lambda _, frame: frame.body.subType == CommandSubscribe.Key_Shared),
        (21, "an AUTO_CONSUME schema", _auto_consume),
    ],
    "ACK": [(17, "request_id", lambda _, frame: frame.request_id is not None)],
}
"""Fields that were added in a later version, by command."""


@VERSION_RULES(
    "newer-field",
    "A client sets no fields newer than the version it announces.",
    _VERSIONS,
    "Announce the protocol version that you use: brokers choose by it what to send.",
    on=_NEWER_FIELDS,
    severity=Severity.WARNING,
)
def _version_newer_field(state: LintedConnection, frame: Frame) -> Iterator[str]:
    version = state.conversation.asked_version
    if version is None or frame.sender is not Direction.CLIENT:
        return
    for since, what, is_set in _NEWER_FIELDS[frame.name]:
        if since > version and is_set(state, frame):
            yield f"{frame.name} with {what}, of version {since}, by a client of version {version}"


@VERSION_RULES(
    "unknown-field",
    "A command has only fields of PulsarApi.proto.",
    "PulsarApi.proto",
    "Generate the client's code from Pulsar's own PulsarApi.proto; brokers silently drop other fields.",
    severity=Severity.WARNING,
)
def _version_unknown_field(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if frame.spec is not None and frame.sender is Direction.CLIENT:
        unknown = UnknownFieldSet(frame.body)
        if len(unknown):
            yield f"{frame.name} with field {unknown[0].field_number}"


_IN_FLIGHT_NS = 1_000_000_000
"""A request younger than this may cross the close of its connection."""


KEEP_ALIVE_RULES = Section(
    "Rules of required answers: PONG, AUTH_RESPONSE, and requests without an answer at the close"
)


@KEEP_ALIVE_RULES(
    "pong-unasked",
    "PONG answers a PING.",
    "Binary protocol: keep alive",
    "Send one PONG for each PING.",
    on=["PONG"],
    about=Direction.BOTH,
)
def _pong_unasked(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if state.matcher.request_of(frame) is None:
        yield "PONG without a PING"


@KEEP_ALIVE_RULES(
    "no-pong",
    "The answer to PING is PONG, at once.",
    "Binary protocol: keep alive; broker.conf keepAliveIntervalSeconds, connectionLivenessCheckTimeoutMillis",
    "Answer PING in the loop that reads frames, even while the client waits: brokers close silent connections.",
    on=["PING"],
)
def _pong_no_pong(state: LintedConnection, frame: Frame) -> Iterator[str]:
    """Yield a PING that waits for its PONG. The rule is checked at the close, too."""
    if frame.sender is Direction.BROKER:
        waiting = state.matcher.last(request_key(frame))
        waited = 0 if waiting is None else frame.record.monotonic_ns - waiting.record.monotonic_ns
        if waiting is not None and waiting.number not in state.matcher.excused and waited >= _IN_FLIGHT_NS:
            yield f"PING without a PONG for {waited / 1e9:.1f} s"


@KEEP_ALIVE_RULES(
    "challenge-unanswered",
    "The answer to AUTH_CHALLENGE is AUTH_RESPONSE.",
    "PIP-30; PIP-55",
    "Ask the authentication plugin for fresh credentials, or do not announce supports_auth_refresh.",
    on=["AUTH_CHALLENGE"],
)
def _pong_challenge(state: LintedConnection, frame: Frame) -> Iterator[str]:
    """Yield nothing, because this rule is checked at the close."""
    yield from ()


@KEEP_ALIVE_RULES(
    "auth-response-unasked",
    "AUTH_RESPONSE answers an AUTH_CHALLENGE.",
    "PIP-30",
    "Send the first credentials in CONNECT, and others only when the broker asks for them.",
    on=["AUTH_RESPONSE"],
)
def _pong_response(state: LintedConnection, frame: Frame) -> Iterator[str]:
    if frame.sender is Direction.CLIENT and state.matcher.request_of(frame) is None:
        yield "AUTH_RESPONSE without AUTH_CHALLENGE"


@KEEP_ALIVE_RULES(
    "unanswered-request",
    "Each request has an answer before the connection is closed in order.",
    "PulsarApi.proto",
    "Answer each request, with ERROR if necessary.",
    on=["no command"],
    about=Direction.BROKER,
)
def _pong_unanswered(state: LintedConnection, frame: Frame) -> Iterator[str]:
    """Yield nothing, because this rule is checked at the close."""
    yield from ()


NO_PONG, CHALLENGE, UNANSWERED = (RULES[name] for name in ("no-pong", "challenge-unanswered", "unanswered-request"))


def unanswered(frame: Frame, closed: CaptureRecord, waiting: Sequence[Frame]) -> Iterator[tuple[LintRule, str]]:
    """Yield the rules that a request without an answer breaks at the close, with their details."""
    waited = closed.monotonic_ns - frame.record.monotonic_ns
    if waited < _IN_FLIGHT_NS:
        return
    detail = f"{frame.name} without an answer for {waited / 1e9:.1f} s, until the {closed.sender.value} closed"
    if frame.sender is Direction.CLIENT:
        yield UNANSWERED, detail
    elif frame.spec is not None and frame.spec.type == BaseCommand.AUTH_CHALLENGE:
        yield CHALLENGE, detail
    # earlier PINGs were reported when the next one arrived
    elif not any(each.name == frame.name and each.number > frame.number for each in waiting if each is not frame):
        yield NO_PONG, detail
