"""Finds what answers at a path: a tree of its parts, so that it does not matter how many paths there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


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
