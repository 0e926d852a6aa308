"""Durations as people write them: options such as `--wait 30s`, and texts such as `1d 2h`."""

from __future__ import annotations

import re
from typing import Any, Final

import click

UNITS: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800, "y": 31_536_000}

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhdwy])?")


class Duration(click.ParamType[float]):
    """A duration such as 90s, 5m, 7d or 1d12h, or a plain number of seconds."""

    name = "DURATION"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        parts = _DURATION.findall(value)
        if not parts or "".join(map("".join, parts)) != value:
            self.fail(f"{value!r} is no duration: write 90s, 5m, 7d, 1d12h or 250ms", param, ctx)
        return sum(float(number) * UNITS[unit or "s"] for number, unit in parts)


def spoken(seconds: float) -> str:
    """Return a duration such as "1d 2h 3m 4.005s", without the units that are zero."""
    words = []
    whole, rest = divmod(round(seconds, 3), 60)
    minutes = int(whole)
    for unit, size in (("d", 1440), ("h", 60), ("m", 1)):
        count, minutes = divmod(minutes, size)
        if count:
            words.append(f"{count}{unit}")
    if rest := round(rest, 3):
        words.append(f"{rest:g}s")
    return " ".join(words) or "0s"


def about(seconds: float) -> str:
    """Return a duration in its two largest units, such as "1d 2h". Less than a minute is in whole seconds."""
    return " ".join(spoken(int(seconds)).split()[:2])
