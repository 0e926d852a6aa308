"""Rules of the connection: frames, the greeting, versions and features."""

from __future__ import annotations

from collections.abc import Iterator

from pulsarium.proto.commands import Direction
from pulsarium.proto.framing import MAX_FRAME_SIZE
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand
from pulsarium.proto.lint.frames import Frame
from pulsarium.proto.lint.rule import rule
from pulsarium.proto.lint.state import State

_T = BaseCommand
_HEADERS = 10 * 1024  # what a frame may have beside its message
_BEFORE_CONNECT = {_T.CONNECT, _T.AUTH_RESPONSE, _T.PING, _T.PONG}
_BEFORE_CONNECTED = {_T.CONNECTED, _T.AUTH_CHALLENGE, _T.ERROR, _T.PING, _T.PONG}
_FROM_BROKER_SINCE: dict[int, int] = {_T.CLOSE_PRODUCER: 5, _T.CLOSE_CONSUMER: 5}


@rule("broken-frame", "A frame is two lengths that fit, and a known command with its required fields", "Framing")
def _broken(state: State, frame: Frame) -> Iterator[str]:
    if frame.broken is not None:
        yield frame.broken


@rule("frame-too-big", "A frame has at most max_message_size of CONNECTED, and 10 KiB", "broker.conf maxMessageSize")
def _too_big(state: State, frame: Frame) -> Iterator[str]:
    message_size = state.conversation.max_message_size
    limit = MAX_FRAME_SIZE if message_size is None else message_size + _HEADERS
    if frame.record.size > limit:
        yield f"{frame.record.size} bytes, and {limit} are allowed"


@rule("wrong-direction", "A command is sent by the side that may send it", "PulsarApi.proto")
def _direction(state: State, frame: Frame) -> Iterator[str]:
    if frame.spec and frame.spec.direction not in (Direction.BOTH, frame.sender):
        yield f"{frame.name} from the {frame.sender.value}"


@rule("command-before-connect", "A client's first command is CONNECT", "Binary protocol: connection establishment")
def _before_connect(state: State, frame: Frame) -> Iterator[str]:
    early = frame.sender is Direction.CLIENT and not state.connects
    if early and frame.spec and frame.spec.type not in _BEFORE_CONNECT:
        yield f"{frame.name} on a connection without CONNECT"


@rule("command-before-connected", "A broker's first command is CONNECTED", "Binary protocol: connection establishment")
def _before_connected(state: State, frame: Frame) -> Iterator[str]:
    early = frame.sender is Direction.BROKER and not state.connected
    if early and frame.spec and frame.spec.type not in _BEFORE_CONNECTED:
        yield f"{frame.name} before CONNECTED"


@rule("second-connect", "A client sends CONNECT once", "Binary protocol: connection establishment")
def _second_connect(state: State, frame: Frame) -> Iterator[str]:
    if frame.name == "CONNECT" and state.connects:
        yield "CONNECT once more"


@rule("second-connected", "A broker sends CONNECTED once", "Binary protocol: connection establishment")
def _second_connected(state: State, frame: Frame) -> Iterator[str]:
    if frame.name == "CONNECTED" and state.connected:
        yield "CONNECTED once more"


@rule("version-not-offered", "CONNECTED names no version above the one of CONNECT", "PulsarApi.proto: ProtocolVersion")
def _version(state: State, frame: Frame) -> Iterator[str]:
    asked = state.conversation.asked_version
    if frame.name == "CONNECTED" and asked is not None and frame.body.protocol_version > asked:
        yield f"version {frame.body.protocol_version} to a client of version {asked}"


@rule(
    "newer-than-version",
    "Nothing is sent that the other side's version does not know",
    "PulsarApi.proto: ProtocolVersion",
)
def _newer(state: State, frame: Frame) -> Iterator[str]:
    talk = state.conversation
    version = talk.protocol_version if state.connected else talk.asked_version
    # An answer is sent whatever the version of who asked.
    # Pulsar pings clients of every version.
    if (
        frame.spec is None
        or frame.spec.type == _T.PING
        or version is None
        or state.matcher.request_of(frame) is not None
    ):
        return
    from_broker = frame.sender is Direction.BROKER
    since = max(frame.spec.since, _FROM_BROKER_SINCE.get(frame.spec.type, 0) if from_broker else 0)
    if since > max(version, 0):
        yield f"{frame.name}, of version {since}, on a connection of version {version}"


@rule("feature-not-offered", "A command of a feature is sent to a broker that has it", "FeatureFlags of CONNECTED")
def _feature(state: State, frame: Frame) -> Iterator[str]:
    flag = frame.spec.feature_flag if frame.spec else None
    if flag and state.connected and frame.sender is Direction.CLIENT and flag not in state.conversation.broker_flags:
        yield f"{frame.name} without {flag}"


@rule("pong-unasked", "PONG answers a PING", "Binary protocol: keep alive")
def _pong(state: State, frame: Frame) -> Iterator[str]:
    if frame.name == "PONG" and state.matcher.request_of(frame) is None:
        yield "PONG without a PING"
