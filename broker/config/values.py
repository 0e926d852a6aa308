"""Convert the text of a setting to its value, or say what is accepted."""

from __future__ import annotations

import math
import re

from pulsarium.broker.config.keys import Key
from pulsarium.broker.config.meaning import JAVA_INT

# Java's Integer.valueOf accepts no underscores, no blanks inside and no digits of other scripts; int() does.
_WHOLE = re.compile(r"[+-]?[0-9]+")


def read_value(key: Key, text: str) -> object:
    """Return the value of a text that is not blank. Raise `ValueError`, whose text says what is accepted."""
    text = text.strip()
    kind = key.type
    if kind is bool:
        return _truth(text)
    if kind in (int, int | None):
        return _whole_number(key, text)
    if kind in (float, float | None):
        return _number(key, text)
    if kind == frozenset[str]:
        return frozenset(_items(key, text))
    if kind == tuple[str, ...]:
        return tuple(dict.fromkeys(_items(key, text)))
    if key.meaning.one_of and text not in key.meaning.one_of:
        raise ValueError(f"{text!r} is not one of {', '.join(key.meaning.one_of)}")
    return text


def _truth(text: str) -> bool:
    # Java reads every text other than "true" as false. A yes or a 1 would become false, so it is refused.
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    raise ValueError(f"{text!r} is neither true nor false")


def _whole_number(key: Key, text: str) -> int:
    low = JAVA_INT[0] if key.meaning.low is None else key.meaning.low
    high = JAVA_INT[1] if key.meaning.high is None else key.meaning.high
    if _WHOLE.fullmatch(text) and len(text) <= 20 and low <= int(text) <= high:
        return int(text)
    raise ValueError(f"{_shown(text)} is not a whole number from {low} to {high}")


def _number(key: Key, text: str) -> float:
    low = -math.inf if key.meaning.low is None else key.meaning.low
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if "_" in text or not math.isfinite(number) or number < low:
        raise ValueError(f"{_shown(text)} is not a number of at least {low:g}")
    return number


def _items(key: Key, text: str) -> list[str]:
    items = [item.strip() for item in text.split(",")]
    for item in items:
        if item and key.meaning.one_of and item not in key.meaning.one_of:
            raise ValueError(f"{_shown(item)} is not one of {', '.join(key.meaning.one_of)}")
    return [item for item in items if item]


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:60] + "...")
