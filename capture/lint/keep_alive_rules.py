"""Rules of answers that are owed: PONG, AUTH_RESPONSE, and whatever else a connection is closed without."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pulsarium.capture.file import Record
from pulsarium.capture.lint.exchanges import request_key
from pulsarium.capture.lint.frames import Frame
from pulsarium.capture.lint.rule import RULES, Rule, rule
from pulsarium.capture.lint.state import State
from pulsarium.proto.commands import Direction
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand

_IN_FLIGHT_NS = 1_000_000_000
"""A request younger than this may well cross the close of its connection."""


@rule(
    "pong-unasked",
    "PONG answers a PING.",
    "Binary protocol: keep alive",
    "Send one PONG for each PING.",
    on=["PONG"],
    about=Direction.BOTH,
)
def _unasked(state: State, frame: Frame) -> Iterator[str]:
    if state.matcher.request_of(frame) is None:
        yield "PONG without a PING"


@rule(
    "no-pong",
    "PING is answered with PONG, at once.",
    "Binary protocol: keep alive; broker.conf keepAliveIntervalSeconds, connectionLivenessCheckTimeoutMillis",
    "Answer PING where frames are read, whatever else the client waits for: the broker closes silent connections.",
    on=["PING"],
)
def _no_pong(state: State, frame: Frame) -> Iterator[str]:
    """Also looked at when the connection is closed."""
    if frame.sender is Direction.BROKER:
        waiting = state.matcher.last(request_key(frame))
        waited = 0 if waiting is None else frame.record.monotonic_ns - waiting.record.monotonic_ns
        if waiting is not None and waiting.number not in state.matcher.excused and waited >= _IN_FLIGHT_NS:
            yield f"PING without a PONG for {waited / 1e9:.1f} s"


@rule(
    "challenge-unanswered",
    "AUTH_CHALLENGE is answered with AUTH_RESPONSE.",
    "PIP-30; PIP-55",
    "Ask the authentication plugin for fresh credentials, or do not announce supports_auth_refresh.",
    on=["AUTH_CHALLENGE"],
)
def _challenge(state: State, frame: Frame) -> Iterator[str]:
    """Looked at when the connection is closed."""
    yield from ()


@rule(
    "auth-response-unasked",
    "AUTH_RESPONSE answers an AUTH_CHALLENGE.",
    "PIP-30",
    "Send the first credentials with CONNECT, others when the broker asks for them.",
    on=["AUTH_RESPONSE"],
)
def _response(state: State, frame: Frame) -> Iterator[str]:
    if frame.sender is Direction.CLIENT and state.matcher.request_of(frame) is None:
        yield "AUTH_RESPONSE without AUTH_CHALLENGE"


@rule(
    "unanswered-request",
    "Each request is answered before its connection is closed in order.",
    "PulsarApi.proto",
    "Answer it, with ERROR if need be.",
    on=["no command"],
    about=Direction.BROKER,
)
def _unanswered(state: State, frame: Frame) -> Iterator[str]:
    """Looked at when the connection is closed."""
    yield from ()


NO_PONG, CHALLENGE, UNANSWERED = (RULES[name] for name in ("no-pong", "challenge-unanswered", "unanswered-request"))


def unanswered(frame: Frame, closed: Record, waiting: Sequence[Frame]) -> Iterator[tuple[Rule, str]]:
    """What there is to say of a request that waits when its connection is closed."""
    waited = closed.monotonic_ns - frame.record.monotonic_ns
    if waited < _IN_FLIGHT_NS:
        return
    detail = f"{frame.name} without an answer for {waited / 1e9:.1f} s, until the {closed.sender.value} closed"
    if frame.sender is Direction.CLIENT:
        yield UNANSWERED, detail
    elif frame.spec is not None and frame.spec.type == BaseCommand.AUTH_CHALLENGE:
        yield CHALLENGE, detail
    # That earlier ones were not answered was said when the next one came.
    elif not any(each.name == frame.name and each.number > frame.number for each in waiting if each is not frame):
        yield NO_PONG, detail
