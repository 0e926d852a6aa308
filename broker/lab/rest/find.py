"""Find what a call below /lab is about: the lab, and the rule, mask or capture that the path names by its number."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Protocol, TypeVar

from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError
from pulsarium.broker.lab.lab import Lab

_MOST: Final = 20  # numbers that a refusal names


class Numbered(Protocol):
    """A fault, a mask or a capture."""

    id: int


N = TypeVar("N", bound=Numbered)


def lab_of(call: Call) -> Lab:
    """Return the lab of the cluster that is called."""
    lab = call.broker.cluster.lab
    assert lab is not None
    return lab


def numbered(call: Call, what: str, find: Callable[[int], N | None], there: Iterable[Numbered]) -> N:
    """Return the one that the path names. AdminError 404 says which there are."""
    given = call.parameter("id")
    found = find(int(given)) if given.isascii() and given.isdecimal() and len(given) < 10 else None
    if found is None:
        ids = [str(each.id) for each in there][-_MOST:]
        raise AdminError(
            404, f"There is no {what} {given}" + (f"; there are {', '.join(ids)}" if ids else ", nor another")
        )
    return found
