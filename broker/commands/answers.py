"""Match commands with their answers, and make refusals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from pulsarium.proto.commands import COMMANDS, CommandSpec
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.numbers import NO_REQUEST

_T = pb.BaseCommand
REQUEST_IDS = ("request_id", "watch_id", "session_id")
IDS = (
    *REQUEST_IDS,
    "consumer_id",
    "txnid_least_bits",
    "txnid_most_bits",
)  # fields that a refusal repeats from its command
ABOUT_THE_CONNECTION = {_T.CONNECT, _T.AUTH_RESPONSE}  # refused by an ERROR without an id; the connection closes
WITHOUT_AN_ID: Mapping[int, int] = {_T.CONNECTED: _T.CONNECT, _T.PONG: _T.PING}
REPLIES = {spec.reply for spec in COMMANDS.values()} | {_T.ERROR}

Key = tuple[object, ...]  # matches a command with its answer on a connection


class Asked(Protocol):
    """A client's command."""

    spec: CommandSpec
    body: Any


def has_answer(spec: CommandSpec) -> bool:
    """Return whether a client gets an answer to this command."""
    return spec.reply is not None


def can_be_refused(spec: CommandSpec) -> bool:
    """Return whether the command has an answer with an error code."""
    return spec.type in ABOUT_THE_CONNECTION or (has_answer(spec) and spec.type != _T.PING)


def key_of_command(frame: Asked) -> Key | None:
    """Return the key of a client's command, or None for one without an answer, such as an ACK without a request id."""
    if not has_answer(frame.spec):
        return None
    if frame.spec.type in WITHOUT_AN_ID.values():
        return (frame.spec.type,)
    return _key(frame, _T.SEND)


def key_of_answer(frame: Asked) -> Key | None:
    """Return the key of a broker's frame, or None for one that answers nothing."""
    number = frame.spec.type
    if number in WITHOUT_AN_ID:
        return (WITHOUT_AN_ID[number],)
    if number == _T.ERROR and frame.body.request_id == NO_REQUEST:
        return (_T.CONNECT,)
    return _key(frame, _T.SEND_RECEIPT, _T.SEND_ERROR) if number in REPLIES or number == _T.SEND_ERROR else None


def _key(frame: Asked, *of_send: int) -> Key | None:
    if frame.spec.type in of_send:
        return (_T.SEND, frame.body.producer_id, frame.body.sequence_id)
    fields = frame.body.DESCRIPTOR.fields_by_name
    known = next((name for name in REQUEST_IDS if name in fields and frame.body.HasField(name)), None)
    return None if known is None else (known, getattr(frame.body, known))


def refusal(frame: Asked, code: int, text: str) -> pb.BaseCommand | None:
    """Return the error that answers a client's command, in the command's own form, or None if it has no answer."""
    spec, body = frame.spec, frame.body
    if spec.type == _T.SEND:
        send_error = pb.CommandSendError(
            producer_id=body.producer_id, sequence_id=body.sequence_id, error=_code(code), message=text
        )
        return pb.BaseCommand(type=_T.SEND_ERROR, send_error=send_error)
    if spec.type in ABOUT_THE_CONNECTION:
        return _error(NO_REQUEST, code, text)
    if key_of_command(frame) is None or spec.reply is None:
        return None
    answer = _in_its_own_form(body, COMMANDS[spec.reply], code, text)
    if answer is None and "request_id" in body.DESCRIPTOR.fields_by_name:
        answer = _error(body.request_id, code, text)
    return answer


def _in_its_own_form(body: Any, reply: CommandSpec, code: int, text: str) -> pb.BaseCommand | None:
    answer = pb.BaseCommand(type=_code(reply.type))
    told = getattr(answer, reply.field)
    fields = told.DESCRIPTOR.fields_by_name
    for error, message in (("error", "message"), ("error_code", "error_message")):
        if error not in fields:
            continue
        setattr(told, error, code)
        setattr(told, message, text)
        for name in IDS:
            if name in fields and name in body.DESCRIPTOR.fields_by_name:
                setattr(told, name, getattr(body, name))
        if "response" in fields:
            told.response = fields["response"].enum_type.values_by_name["Failed"].number
        return answer if answer.IsInitialized() else None
    return None


def _error(request_id: int, code: int, text: str) -> pb.BaseCommand:
    error = pb.CommandError(request_id=request_id, error=_code(code), message=text)
    return pb.BaseCommand(type=_T.ERROR, error=error)


def _code(number: int) -> Any:
    return number  # an enum's value, to mypy
