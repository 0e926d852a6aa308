"""Declare handlers and find them; take away those of commands that a profile or a mask does not know."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any

from pulsarium.broker.auth.needs import Needs
from pulsarium.broker.commands.answers import refusal
from pulsarium.proto.commands import COMMANDS, CommandSpec
from pulsarium.proto.generated import PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from pulsarium.broker.session.session import Session


class CloseConnection(Exception):
    """A client did what Pulsar closes the connection for; the text goes to the log."""


Handler = Callable[[Any, Any, bytes], None]  # session, the command's body, what follows it in the frame
Guard = Callable[[int, Handler, Needs], Handler]  # the command, its handler and what a role needs for it
MARK = "__handles__"


@dataclass(frozen=True, slots=True)
class Handles:
    """What a handler declares: the command, whether it is taken before CONNECT, or not built yet, and what it needs."""

    command: int
    before_connect: bool = False
    absent: str = ""  # why the command is refused, where it is
    needs: Needs | None = None  # what a role must be allowed, where that is asked


def handles(
    command: int, *, before_connect: bool = False, absent: str = "", needs: Needs | None = None
) -> Callable[[Handler], Handler]:
    """Make a function the handler of a command. It may handle several."""

    def mark(handler: Handler) -> Handler:
        declared: list[Handles] = [*getattr(handler, MARK, ()), Handles(command, before_connect, absent, needs)]
        setattr(handler, MARK, tuple(declared))
        return handler

    return mark


def declared(modules: Iterable[ModuleType]) -> Iterable[tuple[Handles, Handler]]:
    """Every declaration in `modules`."""
    for module in modules:
        for value in vars(module).values():
            if getattr(value, "__module__", None) == module.__name__:
                for handled in getattr(value, MARK, ()):
                    yield handled, value


def collect(modules: Iterable[ModuleType], *, connected: bool, guard: Guard | None = None) -> Mapping[int, Handler]:
    """The handlers of a connection's state, by command type; behind `guard` those that need anything."""
    found: dict[int, Handler] = {}
    for handled, handler in declared(modules):
        if connected or handled.before_connect:
            if handled.command in found:
                raise TypeError(f"command {handled.command} has two handlers")
            if guard is not None and handled.needs is not None:
                handler = guard(handled.command, handler, handled.needs)
            found[handled.command] = handler
    return MappingProxyType(found)


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
class Command:
    """A client's command with its body."""

    spec: CommandSpec
    body: Any


def _refusing(spec: CommandSpec, code: int) -> Handler:
    def refuse(session: Session, cmd: Any, trailing: bytes) -> None:
        answer = refusal(Command(spec, cmd), code, f"{spec.name} is not supported")
        if answer is not None:
            session.command(answer)

    return refuse
