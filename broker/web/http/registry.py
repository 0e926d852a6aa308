"""Declare routes beside their handlers, and find them in a tree of path parts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Generic, NamedTuple, TypeVar

from pulsarium.broker.auth.needs import SUPERUSER, Needs
from pulsarium.broker.config.profile import PIP, Profile
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.reply import HttpReply

Handler = Callable[[Call], HttpReply | Awaitable[HttpReply]]  # awaited: handlers that read entries from storage
H = TypeVar("H", bound=Handler)
T = TypeVar("T")
MARK = "__routes__"

DOMAINS = ("persistent", "non-persistent")
SUBSCRIPTION = "/subscription/{subscription}"  # after the path of a topic

Offered = Callable[[Profile], bool]
Check = Callable[[Call], object]  # raises the error that refuses the call


def always(profile: Profile) -> bool:
    """Return True, for every profile."""
    return True


@dataclass(frozen=True, slots=True)
class Route:
    """A route: one method on one path, as Pulsar's documentation writes it."""

    method: str
    path: str
    needs: Needs = field(default=SUPERUSER, compare=False)
    anywhere: bool = field(default=False, compare=False)
    offered: Offered = field(default=always, compare=False)
    first: Check | None = field(default=None, compare=False)
    largest_body: int = field(default=0, compare=False)
    spooled: bool = field(default=False, compare=False)

    def exists(self, profile: Profile) -> bool:
        """Return whether the admin API of a profile has the route."""
        return self.offered(profile) and not f"{self.method} {self.path}".endswith(profile.later_routes)

    @property
    def by_owner(self) -> bool:
        """Return whether only the topic's own broker may answer. Other brokers redirect to it (307)."""
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
    """Make a function the handler of `method` on each of `paths`. A handler may have several routes.

    `needs` are the rights that the caller's role must have. The broker that serves the topic answers a route of a
    topic. With `anywhere`, every broker answers, because the route reads only what all brokers share. A route that the
    profile does not have `offered` does not exist. Pulsar checks `first` before it checks these rights and finds
    the owner. `largest_body` is in bytes, if larger than maxMessageSize. A `spooled` body is in a file, never in memory
    as a whole.
    """

    def mark(handler: H) -> H:
        found = (Route(method, path, needs, anywhere, offered, first, largest_body, spooled) for path in paths)
        declared: list[Route] = [*getattr(handler, MARK, ()), *found]
        setattr(handler, MARK, tuple(declared))
        return handler

    return mark


def of_topic(rest: str = "") -> tuple[str, ...]:
    """Return the paths of a route that persistent and non-persistent topics both have."""
    return tuple(f"/admin/v2/{domain}/{{tenant}}/{{namespace}}/{{topic}}{rest}" for domain in DOMAINS)


def of_domain(rest: str = "") -> tuple[str, ...]:
    """Return the paths of a route that a namespace has for both kinds of topics."""
    return tuple(f"/admin/v2/{domain}/{{tenant}}/{{namespace}}{rest}" for domain in DOMAINS)


def declared(modules: Iterable[ModuleType]) -> Iterator[tuple[Route, Handler]]:
    """Yield all routes of `modules`. A module that makes routes from a table has them in its own `__routes__`."""
    for module in modules:
        yield from getattr(module, MARK, ())
        for value in vars(module).values():
            if getattr(value, "__module__", None) == module.__name__:
                for found in getattr(value, MARK, ()):
                    yield found, value


def by_path(
    routes: Iterable[tuple[Route, Handler]], profile: Profile = PIP
) -> list[tuple[str, dict[str, tuple[Route, Handler]]]]:
    """Return the routes that a profile offers: each path with the handlers of its methods.

    Of two paths that fit a request, the one with fixed parts comes first.
    """
    found: dict[str, dict[str, tuple[Route, Handler]]] = {}
    for declaration, handler in routes:
        if not declaration.exists(profile):
            continue
        handlers = found.setdefault(declaration.path, {})
        if declaration.method in handlers:
            raise TypeError(f"{declaration.method} {declaration.path} has two handlers")
        handlers[declaration.method] = (declaration, handler)
    return sorted(found.items(), key=lambda item: [part.startswith("{") for part in item[0].split("/")])


class FoundRoute(NamedTuple, Generic[T]):
    """The value at a path, and the path's parts by the names of its parameters."""

    value: T
    parameters: dict[str, str]


class Finder(Generic[T]):
    """A tree that finds values by path. Each node is one part of a path."""

    def __init__(self) -> None:
        self._fixed: dict[str, Finder[T]] = {}
        self._any: Finder[T] | None = None  # the child for a parameter
        self._here: tuple[T, list[str]] | None = None

    def add(self, path: str, value: T) -> None:
        """Add a value at `path`, in which a part in braces is a parameter."""
        node = self
        names: list[str] = []
        for part in path.split("/"):
            if part.startswith("{"):
                names.append(part[1:-1])
                if node._any is None:
                    node._any = Finder()
                node = node._any
            else:
                node = node._fixed.setdefault(part, Finder())
        if node._here is not None:
            raise TypeError(f"two paths are like {path}")
        node._here = value, names

    def find(self, path: str, takes: Callable[[T], bool] = lambda value: True) -> FoundRoute[T] | None:
        """Find the value at a path, with or without a slash at its end.

        Of two paths that fit, the one with the fixed part comes first, unless only the other one `takes` the request.
        Pulsar's own server decides in the same way.
        """
        fitting = list(self._find(path.split("/"), 0, ()))
        if not fitting and path.endswith("/"):
            fitting = list(self._find(path[:-1].split("/"), 0, ()))
        return next((found for found in fitting if takes(found.value)), fitting[0] if fitting else None)

    def _find(self, parts: Sequence[str], index: int, values: tuple[str, ...]) -> Iterator[FoundRoute[T]]:
        if index == len(parts):
            if self._here is not None:
                value, names = self._here
                yield FoundRoute(value, dict(zip(names, values, strict=True)))
            return
        part = parts[index]
        fixed = self._fixed.get(part)
        if fixed is not None:
            yield from fixed._find(parts, index + 1, values)
        if self._any is not None and part:
            yield from self._any._find(parts, index + 1, (*values, part))
