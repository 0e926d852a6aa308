"""Finds what answers at a path: a tree of its parts, so that it does not matter how many paths there are."""

from __future__ import annotations

from collections.abc import Sequence
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

    def find(self, path: str) -> Found[T] | None:
        """Of two paths that fit, the one whose part is fixed where the other's is not."""
        parts = path.split("/")
        values: list[str] = []
        found = self._find(parts, 0, values)
        return None if found is None else Found(found[0], dict(zip(found[1], values, strict=True)))

    def _find(self, parts: Sequence[str], index: int, values: list[str]) -> tuple[T, list[str]] | None:
        if index == len(parts):
            return self._here
        part = parts[index]
        fixed = self._fixed.get(part)
        found = fixed._find(parts, index + 1, values) if fixed is not None else None
        if found is not None or self._any is None or not part:
            return found
        values.append(part)
        found = self._any._find(parts, index + 1, values)
        if found is None:
            values.pop()
        return found
