"""Find the lab, and the rule, mask or capture that a path below /lab names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Protocol, TypeVar

from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError
from pulsarium.broker.lab.lab import Lab

_MOST: Final = 20  # ids that an error lists


class Numbered(Protocol):
    """A fault, a mask or a capture."""

    id: int


N = TypeVar("N", bound=Numbered)


def lab_of(call: Call) -> Lab:
    """Return the lab of the broker's cluster."""
    lab = call.broker.cluster.lab
    assert lab is not None
    return lab


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
