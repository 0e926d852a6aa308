"""Changes one value of one answer, as a broker that is wrong there would give it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

from .comparison import REASON
from .excuses import Excuses
from .player import Played
from .recording import Answer, Call
from .report import judge, unexcused

Place = tuple[str | int, ...]
STATUS: Place = ("status",)


def unnoticed(played: Sequence[Played], excuses: Excuses, count: int) -> list[str]:
    """Change `count` values of what was answered, one at a time; return the changes that passed.

    Any status and any value of a body may be changed, masked ones included, but not a body or the text of an error that
    real brokers do not repeat.
    """
    rng, passed = random.Random(19), []
    for _ in range(count):
        right = rng.choice(played)
        place = rng.choice([STATUS, *_places(right)])
        wrong = replace(right, answer=_changed(right.answer, place))
        if not unexcused(judge([wrong], []), excuses):
            passed.append(f"{right.call}: {place} is changed")
    return passed


def _places(played: Played) -> Iterator[Place]:
    """Name the values of a body that are compared."""
    if played.call.body_counts:
        yield from (("body", *place) for place in _leaves(played.answer.body, ()) if _counts(played.call, place))


def _counts(call: Call, place: Place) -> bool:
    return call.text_counts or place != (REASON,)


def _leaves(value: Any, place: Place) -> Iterator[Place]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _leaves(part, (*place, name))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _leaves(part, (*place, index))
    else:
        yield place


def _changed(answer: Answer, place: Place) -> Answer:
    if place == STATUS:
        return replace(answer, status=answer.status + 1)
    holder: Any = {"body": deepcopy(answer.body)}
    root = holder
    for step in place[:-1]:
        holder = holder[step]
    holder[place[-1]] = _other(holder[place[-1]])
    return replace(answer, body=root["body"])


def _other(value: Any) -> Any:
    """Return another value of the same type. The new value of a time or an id is no longer a time or an id."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return -value - 1
    return f"{value}x" if isinstance(value, str) else 0
