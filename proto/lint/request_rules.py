"""Rules of requests and their answers."""

from __future__ import annotations

from collections.abc import Iterator

from pulsarium.proto.capture import Record
from pulsarium.proto.commands import COMMANDS, Direction
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand
from pulsarium.proto.lint.exchanges import answered_key, request_key
from pulsarium.proto.lint.frames import Frame
from pulsarium.proto.lint.rule import RULES, rule
from pulsarium.proto.lint.state import State

_T = BaseCommand
_IN_FLIGHT_NS = 1_000_000_000
"""A request younger than this may well cross the close of its connection."""


def _answers(frame: Frame) -> bool:
    """Whether the frame can only be an answer, by its request_id."""
    return (
        frame.spec is not None
        and frame.spec.direction is Direction.BROKER
        and frame.request_id is not None
        and answered_key(frame) == ("request_id", frame.request_id)
    )


@rule("request-id-reused", "A request_id is free while its request waits for an answer", "PulsarApi.proto: request_id")
def _reused(state: State, frame: Frame) -> Iterator[str]:
    if frame.request_id is not None and frame.sender is Direction.CLIENT:
        waiting = state.matcher.first(("request_id", frame.request_id))
        if waiting is not None:
            yield f"request {frame.request_id} of {frame.name} is still that of {waiting.name}"


@rule("answer-to-nothing", "An answer has the request_id of a request", "PulsarApi.proto: request_id")
def _nothing(state: State, frame: Frame) -> Iterator[str]:
    if _answers(frame) and state.matcher.request_of(frame) is None and frame.request_id not in state.answered:
        yield f"{frame.name} to request {frame.request_id}, which nobody made"


@rule("answered-twice", "A request is answered once", "PulsarApi.proto: request_id")
def _twice(state: State, frame: Frame) -> Iterator[str]:
    if _answers(frame) and state.matcher.request_of(frame) is None and frame.request_id in state.answered:
        yield f"{frame.name} to request {frame.request_id}, which has its answer"


@rule("wrong-answer", "A request is answered by the command that belongs to it, or by ERROR", "PulsarApi.proto")
def _kind(state: State, frame: Frame) -> Iterator[str]:
    request = state.matcher.request_of(frame)
    if request is None or frame.spec is None or request.spec is None or not _answers(frame):
        return
    if frame.spec.type not in (request.spec.reply, _T.ERROR):
        wanted = COMMANDS[request.spec.reply or 0].name
        yield f"{frame.name} to {request.name}, which {wanted} answers"


@rule("unanswered-request", "Each request is answered before its connection is closed in order", "PulsarApi.proto")
def _unanswered(state: State, frame: Frame) -> Iterator[str]:
    """Looked at when the connection is closed: see `unanswered`."""
    yield from ()


UNANSWERED = RULES["unanswered-request"]


def unanswered(frame: Frame, closed: Record) -> Iterator[str]:
    """What there is to say of a request that waits when its connection is closed."""
    waited = closed.monotonic_ns - frame.record.monotonic_ns
    if waited >= _IN_FLIGHT_NS and request_key(frame) is not None:
        yield f"{frame.name} without an answer for {waited / 1e9:.1f} s, until the {closed.sender.value} closed"
