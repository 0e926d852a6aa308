"""Declare and collect command handlers, and refuse commands that a profile or a mask does not know.

`@handles` beside a function makes it the handler of a command, with the permission that a role needs. A command is
checked in this order, and the first check that fails gives the answer, as in Pulsar:

1. The frame: its sizes, a known type, required fields, the checksum of an entry. A fault closes the connection.
2. The state of the connection: only CONNECT, and what belongs to it, before CONNECTED.
3. The profile and the lab's masks: a command that a broker of that version does not have closes the connection, or
   is refused where a mask asks for an error.
4. The names in the command: tenant, namespace, topic, subscription.
5. The permission of the role, for the names that 4 found.
6. The state of the model: the topic exists, may be created, has room, is not fenced.
7. The handler's own rules, whose order each handler says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType, ModuleType
from typing import Any

from pulsarium.broker.auth.needs import Needs
from pulsarium.broker.commands.answers import refusal
from pulsarium.broker.session.gate import Handler
from pulsarium.broker.session.session import Session
from pulsarium.proto.commands import COMMANDS, CommandSpec
from pulsarium.proto.generated import PulsarApi_pb2 as pb

Guard = Callable[[int, Handler, Needs], Handler]  # the command, its handler and what a role needs for it
MARK = "__handles__"


@dataclass(frozen=True, slots=True)
class Handles:
    """The declaration of a handler: its command, whether it runs before CONNECT, and the permissions it needs."""

    command: int
    before_connect: bool = False
    needs: Needs | None = None  # operation that the role needs with authorization


def handles(command: int, *, before_connect: bool = False, needs: Needs | None = None) -> Callable[[Handler], Handler]:
    """Return a decorator that makes a function the handler of `command`. A function may handle several commands."""

    def mark(handler: Handler) -> Handler:
        declared: list[Handles] = [*getattr(handler, MARK, ()), Handles(command, before_connect, needs)]
        setattr(handler, MARK, tuple(declared))
        return handler

    return mark


def declared(modules: Iterable[ModuleType]) -> Iterable[tuple[Handles, Handler]]:
    """Yield every declaration in `modules`."""
    for module in modules:
        for value in vars(module).values():
            if getattr(value, "__module__", None) == module.__name__:
                for handled in getattr(value, MARK, ()):
                    yield handled, value


def collect(modules: Iterable[ModuleType], *, connected: bool, guard: Guard | None = None) -> Mapping[int, Handler]:
    """Return the handlers of a connection's state by command type, those with needs behind `guard`."""
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
    """Return the handlers of a broker that does not know the commands in `unknown`.

    Without `error`, an unknown command closes the connection. Pulsar does so for a type that its decoder cannot name,
    and for a command whose handler is inherited from PulsarDecoder.
    """
    numbers = {int(pb.BaseCommand.Type.Value(name)) for name in unknown}
    known = {number: handler for number, handler in handlers.items() if number not in numbers}
    if error is not None:
        code = pb.ServerError.Value(error)
        known |= {number: _refusing(COMMANDS[number], code) for number in numbers & handlers.keys()}
    return MappingProxyType(known)


@dataclass
class Command:
    """A client's command: its specification and its body."""

    spec: CommandSpec
    body: Any


def _refusing(spec: CommandSpec, code: int) -> Handler:
    def refuse(session: Session, cmd: Any, trailing: bytes) -> None:
        answer = refusal(Command(spec, cmd), code, f"{spec.name} is not supported")
        if answer is not None:
            session.command(answer)

    return refuse
