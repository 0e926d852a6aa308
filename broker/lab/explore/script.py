"""Decisions of an exploration, and their text."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

COMMENT = "#"


class ScriptError(ValueError):
    """A script that cannot be read. The text names the line, and says what a line needs."""


class Decision(NamedTuple):
    """A choice of a kind at one of its moments.

    at: number of the choice point, counted from 0 over all frames of this command at which the kind can be chosen.
    value: what the kind needs, such as seconds, or None.
    """

    kind: str
    command: str
    at: int
    value: float | None = None

    def __str__(self) -> str:
        head = f"{self.kind} {self.command} {self.at}"
        return head if self.value is None else f"{head} {self.value:g}"


Script = tuple[Decision, ...]


def parse(text: str) -> Decision:
    """Return the decision of a text such as "receipt-lost SEND 3". Raise `ScriptError`."""
    words = text.split()
    try:
        kind, command, index, *values = words
        decision = Decision(kind, command, int(index), *map(float, values))
    except (ValueError, TypeError):
        raise ScriptError(f"{text!r} is no decision: write KIND COMMAND INDEX, such as receipt-lost SEND 3") from None
    if decision.at < 0:
        raise ScriptError(f"{text!r} has the index {decision.at}; it must be 0 or more")
    if decision.value is not None and not 0 < decision.value < math.inf:
        raise ScriptError(f"{text!r} has the value {decision.value:g}; it must be more than 0, and finite")
    return decision


def read(lines: Iterable[str]) -> Script:
    """Return the decisions of a script, one a line. Raise `ScriptError`."""
    texts = (line.partition(COMMENT)[0].strip() for line in lines)
    return tuple(parse(text) for text in texts if text)
