"""Find the rule, mask or capture that a path below /lab names by its number."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Protocol, TypeVar

from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError

_MOST: Final = 20  # numbers that a refusal names


class Numbered(Protocol):
    """A fault, a mask or a capture."""

    id: int


N = TypeVar("N", bound=Numbered)


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
