"""Rules of the connection: frames, the greeting, who may say what when."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pulsarium.capture.lint.exchanges import NO_REQUEST
from pulsarium.capture.lint.frames import Frame
from pulsarium.capture.lint.rule import RULES, Rule, Severity, rule
from pulsarium.capture.lint.state import State
from pulsarium.proto.commands import Direction
from pulsarium.proto.framing import MAX_FRAME_SIZE
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand
from pulsarium.proto.text import text_of

_T = BaseCommand
_HEADERS = 10 * 1024  # what a frame may have beside its message
_BEFORE_CONNECT = {_T.CONNECT, _T.AUTH_RESPONSE, _T.PING, _T.PONG}
_BEFORE_CONNECTED = {_T.CONNECTED, _T.AUTH_CHALLENGE, _T.ERROR, _T.PING, _T.PONG}
_GREETING = "Binary protocol: connection establishment"
_REFUSED = re.compile(r"(frame|command) of \d+ bytes ")


@rule(
    "broken-frame",
    "A frame is two lengths that fit, and a known command with its required fields.",
    "Binary protocol: framing; PulsarApi.proto",
    "Write both lengths big-endian, without themselves, and set every required field.",
    about=Direction.BOTH,
)
def _broken(state: State, frame: Frame) -> Iterator[str]:
    if frame.broken is not None:
        yield frame.broken


@rule(
    "frame-too-big",
    "A frame has at most max_message_size of CONNECTED, and 10 KiB.",
    "broker.conf maxMessageSize; PIP-36",
    "Split a message into chunks (PIP-37) or refuse it before it is sent.",
    about=Direction.BOTH,
)
def _too_big(state: State, frame: Frame) -> Iterator[str]:
    message_size = state.conversation.max_message_size
    limit = MAX_FRAME_SIZE if message_size is None else message_size + _HEADERS
    if frame.record.size > limit:
        yield f"{frame.record.size} bytes, and {limit} are allowed"


def refused_by(reason: str) -> Rule | None:
    """The rule that a frame broke of which nothing was captured: the broker closed when it saw its lengths."""
    if not _REFUSED.match(reason):
        return None
    return RULES["frame-too-big" if "over the limit" in reason else "broken-frame"]


@rule(
    "wrong-direction",
    "A command is sent by the side that may send it.",
    "PulsarApi.proto: BaseCommand",
    "Do not send answers and notices of the other side.",
    about=Direction.BOTH,
)
def _direction(state: State, frame: Frame) -> Iterator[str]:
    if frame.spec and frame.spec.direction not in (Direction.BOTH, frame.sender):
        yield f"{frame.name} from the {frame.sender.value}"


@rule(
    "command-before-connect",
    "A client's first command is CONNECT.",
    _GREETING,
    "Send CONNECT first; brokers close a connection that begins with anything else but PING.",
)
def _before_connect(state: State, frame: Frame) -> Iterator[str]:
    early = frame.sender is Direction.CLIENT and not state.connects
    if early and frame.spec and frame.spec.type not in _BEFORE_CONNECT:
        yield f"{frame.name} on a connection without CONNECT"


@rule(
    "command-not-awaited",
    "A client sends nothing but answers and PING until CONNECTED has come.",
    _GREETING,
    "Wait for CONNECTED: with authentication on, what comes before it closes the connection.",
    severity=Severity.WARNING,
)
def _not_awaited(state: State, frame: Frame) -> Iterator[str]:
    early = frame.sender is Direction.CLIENT and state.connects and not state.connected
    if early and frame.spec and frame.spec.type not in _BEFORE_CONNECT:
        yield f"{frame.name} before CONNECTED"


@rule(
    "command-before-connected",
    "A broker's first command is CONNECTED.",
    _GREETING,
    "Answer CONNECT first.",
    about=Direction.BROKER,
)
def _before_connected(state: State, frame: Frame) -> Iterator[str]:
    early = frame.sender is Direction.BROKER and not state.connected
    if early and frame.spec and frame.spec.type not in _BEFORE_CONNECTED:
        yield f"{frame.name} before CONNECTED"


@rule(
    "second-connect",
    "A client sends CONNECT once.",
    _GREETING,
    "Open another connection; new credentials go with AUTH_RESPONSE.",
    on=["CONNECT"],
)
def _second_connect(state: State, frame: Frame) -> Iterator[str]:
    if state.connects:
        yield "CONNECT once more"


@rule(
    "second-connected",
    "A broker sends CONNECTED once.",
    _GREETING,
    "Answer CONNECT once.",
    on=["CONNECTED"],
    about=Direction.BROKER,
)
def _second_connected(state: State, frame: Frame) -> Iterator[str]:
    if state.connected:
        yield "CONNECTED once more"


@rule(
    "client-version-missing",
    "CONNECT names the client in client_version, without blanks.",
    "PulsarApi.proto: CommandConnect; Pulsar's ServerCnx ignores others",
    "Name client and version, as `Pulsar-Go-0.19.0` does: statistics show it.",
    on=["CONNECT"],
    severity=Severity.WARNING,
)
def _client_version(state: State, frame: Frame) -> Iterator[str]:
    text = text_of(frame.body.client_version)
    if not text or " " in text:
        yield f"client_version {text[:100]!r}"


@rule(
    "protocol-version-missing",
    "CONNECT names the protocol version of the client.",
    "PulsarApi.proto: CommandConnect.protocol_version",
    "Set protocol_version: without it a client counts as one of version 0, without batches and checksums.",
    on=["CONNECT"],
    severity=Severity.WARNING,
)
def _protocol_version(state: State, frame: Frame) -> Iterator[str]:
    if not frame.body.HasField("protocol_version"):
        yield "no protocol_version"
    elif frame.body.protocol_version < 0:
        yield f"protocol_version {frame.body.protocol_version}"


@rule(
    "request-id-reserved",
    "The request_id 2^64-1 is the broker's, for what nobody asked for.",
    "Pulsar's Commands: ERROR and CLOSE_* with request_id -1",
    "Count request ids from 0 or 1.",
    severity=Severity.WARNING,
)
def _reserved(state: State, frame: Frame) -> Iterator[str]:
    if frame.request_id == NO_REQUEST and frame.sender is Direction.CLIENT:
        yield f"{frame.name} with request_id {NO_REQUEST}"
