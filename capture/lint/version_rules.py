"""Rules of what the two sides have agreed on: protocol versions and features."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from google.protobuf.unknown_fields import UnknownFieldSet

from pulsarium.capture.lint.frames import Frame
from pulsarium.capture.lint.rule import Severity, rule
from pulsarium.capture.lint.state import State
from pulsarium.proto.commands import Direction
from pulsarium.proto.entry import strip_checksum
from pulsarium.proto.generated.PulsarApi_pb2 import NONE, BaseCommand, CommandSubscribe, Schema

_T = BaseCommand
_VERSIONS = "PulsarApi.proto: ProtocolVersion"
_FROM_BROKER_SINCE: dict[int, int] = {_T.CLOSE_PRODUCER: 5, _T.CLOSE_CONSUMER: 5}


@rule(
    "version-not-offered",
    "CONNECTED names no version above the one of CONNECT.",
    _VERSIONS,
    "Answer with the smaller of both versions.",
    on=["CONNECTED"],
    about=Direction.BROKER,
)
def _version(state: State, frame: Frame) -> Iterator[str]:
    asked = state.conversation.asked_version
    if asked is not None and frame.body.protocol_version > asked:
        yield f"version {frame.body.protocol_version} to a client of version {asked}"


@rule(
    "newer-than-version",
    "Nothing is sent that the other side's version does not know.",
    _VERSIONS,
    "Look at protocol_version of CONNECTED before a newer command is sent, and announce the version that is spoken.",
    about=Direction.BOTH,
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


@rule(
    "feature-not-offered",
    "A command of a feature is sent to a broker that has it.",
    "PulsarApi.proto: FeatureFlags of CONNECTED",
    "Look at feature_flags of CONNECTED first; other brokers close the connection.",
)
def _feature(state: State, frame: Frame) -> Iterator[str]:
    flag = frame.spec.feature_flag if frame.spec else None
    if flag and state.connected and frame.sender is Direction.CLIENT and flag not in state.conversation.broker_flags:
        yield f"{frame.name} without {flag}"


def _metadata(look: Callable[[Any], bool]) -> Callable[[State, Frame], bool]:
    def there(state: State, frame: Frame) -> bool:
        metadata = state.sent(frame).metadata
        return metadata is not None and look(metadata)

    return there


def _auto_consume(state: State, frame: Frame) -> bool:
    return bool(frame.body.HasField("schema") and frame.body.schema.type == Schema.AutoConsume)


_NEWER_FIELDS: dict[str, list[tuple[int, str, Callable[[State, Frame], bool]]]] = {
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
"""Fields that came with a version."""


@rule(
    "newer-field",
    "A client sets no fields newer than the version it announces.",
    _VERSIONS,
    "Announce the protocol version that is spoken: brokers decide by it what to send.",
    on=_NEWER_FIELDS,
    severity=Severity.WARNING,
)
def _newer_field(state: State, frame: Frame) -> Iterator[str]:
    version = state.conversation.asked_version
    if version is None or frame.sender is not Direction.CLIENT:
        return
    for since, what, is_set in _NEWER_FIELDS[frame.name]:
        if since > version and is_set(state, frame):
            yield f"{frame.name} with {what}, of version {since}, by a client of version {version}"


@rule(
    "unknown-field",
    "A command has the fields that PulsarApi.proto gives it.",
    "PulsarApi.proto",
    "Generate the client's code from Pulsar's own PulsarApi.proto; brokers drop other fields without a word.",
    severity=Severity.WARNING,
)
def _unknown_field(state: State, frame: Frame) -> Iterator[str]:
    if frame.spec is not None and frame.sender is Direction.CLIENT:
        unknown = UnknownFieldSet(frame.body)
        if len(unknown):
            yield f"{frame.name} with field {unknown[0].field_number}"
