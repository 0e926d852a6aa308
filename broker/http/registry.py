"""How routes are declared and found."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import TypeVar

from pulsarium.broker.auth.needs import SUPERUSER, Needs
from pulsarium.broker.config.profile import Profile
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.reply import Reply

Handler = Callable[[Call], Reply | Awaitable[Reply]]  # awaited: what has to read entries that are not in memory
H = TypeVar("H", bound=Handler)
MARK = "__routes__"

DOMAINS = ("persistent", "non-persistent")
SUBSCRIPTION = "/subscription/{subscription}"  # behind the path of a topic

Offered = Callable[[Profile], bool]
Check = Callable[[Call], object]  # raises what the call is refused with


def always(profile: Profile) -> bool:
    """Whichever profile it is."""
    return True


@dataclass(frozen=True, slots=True)
class Route:
    """One method on one path, as Pulsar's documentation writes it."""

    method: str
    path: str
    needs: Needs = field(default=SUPERUSER, compare=False)
    anywhere: bool = field(default=False, compare=False)
    offered: Offered = field(default=always, compare=False)
    first: Check | None = field(default=None, compare=False)
    largest_body: int = field(default=0, compare=False)
    spooled: bool = field(default=False, compare=False)

    @property
    def by_owner(self) -> bool:
        """Whether the topic's own broker has to answer; others say which one that is (307)."""
        return "{topic}" in self.path and not self.anywhere


def route(
    method: str,
    *paths: str,
    needs: Needs = SUPERUSER,
    anywhere: bool = False,
    offered: Offered = always,
    first: Check | None = None,
    largest_body: int = 0,
    spooled: bool = False,
) -> Callable[[H], H]:
    """Make a function the handler of `method` on each of `paths`. It may be given several routes.

    `needs` is what the caller's role must be allowed. A route of a topic is answered by the broker that serves
    the topic, unless it may be answered `anywhere`, because it is only about what all brokers share. Where it is not
    `offered` by the profile it does not exist. `first` is what Pulsar checks before it asks who calls, and who serves.
    `largest_body` is in bytes, where that is more than maxMessageSize. `spooled`: the body is in a file, and never in
    memory as a whole.
    """

    def mark(handler: H) -> H:
        found = (Route(method, path, needs, anywhere, offered, first, largest_body, spooled) for path in paths)
        declared: list[Route] = [*getattr(handler, MARK, ()), *found]
        setattr(handler, MARK, tuple(declared))
        return handler

    return mark


def of_topic(rest: str = "") -> tuple[str, ...]:
    """The paths of something that persistent and non-persistent topics both have."""
    return tuple(f"/admin/v2/{domain}/{{tenant}}/{{namespace}}/{{topic}}{rest}" for domain in DOMAINS)


def of_domain(rest: str = "") -> tuple[str, ...]:
    """The paths of something that a namespace has for both kinds of topics."""
    return tuple(f"/admin/v2/{domain}/{{tenant}}/{{namespace}}{rest}" for domain in DOMAINS)


def declared(modules: Iterable[ModuleType]) -> Iterator[tuple[Route, Handler]]:
    """Every route in `modules`; those that a module makes from a table stand in its own `__routes__`."""
    for module in modules:
        yield from getattr(module, MARK, ())
        for value in vars(module).values():
            if getattr(value, "__module__", None) == module.__name__:
                for found in getattr(value, MARK, ()):
                    yield found, value
