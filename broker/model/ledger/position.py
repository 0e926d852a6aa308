"""Positions of entries."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple, cast

from pulsarium.proto.numbers import LONG_MAX, NO_LEDGER, unsigned


class Position(NamedTuple):
    """The ledger id and entry id of an entry. Entry -1 is the position before the first entry of a ledger."""

    ledger_id: int
    entry_id: int

    def __str__(self) -> str:
        return f"{self.ledger_id}:{self.entry_id}"


position_of: Final = cast("Callable[[tuple[int, int]], Position]", partial(tuple.__new__, Position))
"""Make the position of a (ledger id, entry id).

This takes two thirds of the time of `Position(...)`, whose own time grew by a fifth with Python 3.12.
"""

EARLIEST = Position(-1, -1)
LATEST = Position(LONG_MAX, LONG_MAX)
NOT_STORED = Position(NO_LEDGER, unsigned(-1))  # in the receipt of a message that was dropped
