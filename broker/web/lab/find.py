"""Find the lab, the rule, mask or capture that a path below /lab names, and the numbers of a query."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Final, Protocol, TypeVar

from pulsarium.broker.lab.lab import Lab
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError

_MOST: Final = 20  # ids that an error lists
PATIENCE: Final = 30.0  # seconds of the machine's clock
MOST_PATIENCE: Final = 3600.0


class Numbered(Protocol):
    """A fault, a mask or a capture."""

    id: int


N = TypeVar("N", bound=Numbered)


def lab_of(call: Call) -> Lab:
    """Return the lab of the broker's cluster."""
    return call.broker.cluster.attached(Lab)


def numbered(call: Call, what: str, find: Callable[[int], N | None], there: Iterable[Numbered]) -> N:
    """Return the fault, mask or capture that the path names. Raise `AdminError` 404, which lists the known ids."""
    given = call.parameter("id")
    found = find(int(given)) if given.isascii() and given.isdecimal() and len(given) < 10 else None
    if found is None:
        ids = [str(each.id) for each in there][-_MOST:]
        raise AdminError(
            404, f"There is no {what} {given}" + (f"; there are {', '.join(ids)}" if ids else ", nor any other")
        )
    return found


def number(call: Call, name: str, default: float, most: float) -> float:
    """Return a number of the query, from 0 to `most`. Raise `AdminError` 400 for another value."""
    given = call.query.get(name)
    try:
        value = default if given is None else float(given)
    except ValueError:
        value = math.nan
    if not 0 <= value <= most:
        raise AdminError(400, f"{name} is {given!r}; it must be a number from 0 to {most:g}")
    return value
