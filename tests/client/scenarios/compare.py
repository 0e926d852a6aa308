"""Whether what was observed is what was expected, and what an expectation may be mistaken in."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

Change: TypeAlias = tuple[str, object]
Path: TypeAlias = tuple[Any, ...]


def differences(expected: object, observed: object, where: str = "") -> list[str]:
    """One line for each difference, [] if they are the same; True is not 1."""
    if isinstance(expected, dict) and isinstance(observed, dict):
        lines = [f"{where}.{key}: missing" for key in expected if key not in observed]
        lines += [f"{where}.{key}: {observed[key]!r} was not expected" for key in observed if key not in expected]
        for key in expected.keys() & observed.keys():
            lines += differences(expected[key], observed[key], f"{where}.{key}")
        return lines
    if isinstance(expected, list) and isinstance(observed, list) and len(expected) == len(observed):
        return [
            line
            for number, (one, other) in enumerate(zip(expected, observed, strict=True))
            for line in differences(one, other, f"{where}[{number}]")
        ]
    if type(expected) is type(observed) and expected == observed:
        return []
    return [f"{where or 'all'}: expected {expected!r}, observed {observed!r}"]


def mutations(expected: Any) -> Iterator[Change]:
    """`expected` with one thing changed, each thing in turn; and where."""
    for where, change in _changes(expected, ""):
        changed = copy.deepcopy([expected])  # in a list, so that all of it can be replaced, too
        change(changed)
        yield where, changed[0]


def _changes(value: Any, where: str, path: Path = (0,)) -> Iterator[tuple[str, Callable[[Any], None]]]:
    """Functions that change something in their argument, in which `path` leads to `value`."""
    match value:
        case dict():
            for key in value:
                yield f"{where}.{key} left out", partial(_leave_out, (*path, key))
                yield from _changes(value[key], f"{where}.{key}", (*path, key))
        case list():
            yield f"{where} one more", partial(_append, path)
            for n, element in enumerate(value):
                yield f"{where}[{n}] left out", partial(_leave_out, (*path, n))
                if n and element != value[n - 1]:
                    yield f"{where}[{n}] swapped", partial(_swap, (*path, n))
                yield from _changes(element, f"{where}[{n}]", (*path, n))
        case _:
            for other in _others(value):
                yield f"{where}: {other!r}", partial(_put, path, other)


def _others(leaf: Any) -> list[object]:
    match leaf:
        case bool():
            return [not leaf, int(leaf)]
        case int() | float():
            return [leaf + 1, leaf - 1, str(leaf)]
        case str():
            return [leaf + "x", leaf[:-1] if leaf else None, "PulsarError", "ok" if leaf != "ok" else "Timeout"]
        case None:
            return [False, 0, ""]
    raise TypeError(f"{leaf!r} cannot be expected")


def _at(path: Path, whole: Any) -> Any:
    for step in path:
        whole = whole[step]
    return whole


def _leave_out(path: Path, whole: Any) -> None:
    _at(path[:-1], whole).pop(path[-1])


def _append(path: Path, whole: Any) -> None:
    _at(path, whole).append("x")


def _swap(path: Path, whole: Any) -> None:
    elements, n = _at(path[:-1], whole), path[-1]
    elements[n - 1], elements[n] = elements[n], elements[n - 1]


def _put(path: Path, value: object, whole: Any) -> None:
    _at(path[:-1], whole)[path[-1]] = value
