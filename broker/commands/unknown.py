"""Commands that a broker does not know, although this one does: what a profile or a mask takes away."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pulsarium.broker.commands.registry import Handler
from pulsarium.proto.commands import COMMANDS, CommandSpec
from pulsarium.proto.generated import PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from pulsarium.broker.session.session import Session


def without(handlers: Mapping[int, Handler], unknown: Iterable[str], error: str | None) -> Mapping[int, Handler]:
    """The handlers of a broker that knows less. Without an `error` what is unknown closes its connection: so does a
    command of a type that Pulsar's decoder cannot name, and one that its handler inherits from PulsarDecoder."""
    numbers = {int(pb.BaseCommand.Type.Value(name)) for name in unknown}
    known = {number: handler for number, handler in handlers.items() if number not in numbers}
    if error is not None:
        code = pb.ServerError.Value(error)
        known |= {number: _refusing(COMMANDS[number], code) for number in numbers & handlers.keys()}
    return MappingProxyType(known)


@dataclass
class Asked:
    """A command that is not known."""

    spec: CommandSpec
    body: Any


def _refusing(spec: CommandSpec, code: int) -> Handler:
    def refuse(session: Session, cmd: Any, trailing: bytes) -> None:
        from pulsarium.broker.commands.answers import refusal  # only a lab asks for an error

        answer = refusal(Asked(spec, cmd), code, f"{spec.name} is not supported")
        if answer is not None:
            session.command(answer)

    return refuse
