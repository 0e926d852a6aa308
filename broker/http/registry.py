"""How routes are declared and found: beside their handlers, and in a tree of the parts of paths."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Generic, NamedTuple, TypeVar

from pulsarium.broker.auth.needs import SUPERUSER, Needs
from pulsarium.broker.config.profile import PIP, Profile
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.reply import Reply

Handler = Callable[[Call], Reply | Awaitable[Reply]]  # awaited: what has to read entries that are not in memory
H = TypeVar("H", bound=Handler)
T = TypeVar("T")
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


def by_path(
    routes: Iterable[tuple[Route, Handler]], profile: Profile = PIP
) -> list[tuple[str, dict[str, tuple[Route, Handler]]]]:
    """Return what a profile offers of some routes: paths, with what answers each method there.

    Of two paths that fit a request, the one with fixed parts comes first.
    """
    found: dict[str, dict[str, tuple[Route, Handler]]] = {}
    for declaration, handler in routes:
        if not declaration.offered(profile):
            continue
        handlers = found.setdefault(declaration.path, {})
        if declaration.method in handlers:
            raise TypeError(f"{declaration.method} {declaration.path} has two handlers")
        handlers[declaration.method] = (declaration, handler)
    return sorted(found.items(), key=lambda item: [part.startswith("{") for part in item[0].split("/")])


class Found(NamedTuple, Generic[T]):
    """What answers, and the parts of the path by the names of its parameters."""

    value: T
    parameters: dict[str, str]


class Finder(Generic[T]):
    """One node of the tree."""

    def __init__(self) -> None:
        self._fixed: dict[str, Finder[T]] = {}
        self._any: Finder[T] | None = None  # where a parameter stands
        self._here: tuple[T, list[str]] | None = None

    def add(self, path: str, value: T) -> None:
        """Have it found at `path`, where a part in braces is a parameter."""
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

    def find(self, path: str, takes: Callable[[T], bool] = lambda value: True) -> Found[T] | None:
        """Find what answers at a path, with or without a slash behind it.

        Of two paths that fit, the one whose part is fixed where the other's is not comes first, unless only the other
        one `takes` the request: so Pulsar's own server decides.
        """
        fitting = list(self._find(path.split("/"), 0, ()))
        if not fitting and path.endswith("/"):
            fitting = list(self._find(path[:-1].split("/"), 0, ()))
        return next((found for found in fitting if takes(found.value)), fitting[0] if fitting else None)

    def _find(self, parts: Sequence[str], index: int, values: tuple[str, ...]) -> Iterator[Found[T]]:
        if index == len(parts):
            if self._here is not None:
                value, names = self._here
                yield Found(value, dict(zip(names, values, strict=True)))
            return
        part = parts[index]
        fixed = self._fixed.get(part)
        if fixed is not None:
            yield from fixed._find(parts, index + 1, values)
        if self._any is not None and part:
            yield from self._any._find(parts, index + 1, (*values, part))
