"""Coverage of choices: which kinds were chosen at which commands, in which state of what they hit."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from pulsarium.broker.lab.explore.script import Decision

EXAMPLES = 32  # indexes that are remembered of each place


class ChoiceClass(NamedTuple):
    """A class of choice points: the kind, the command, and the state of what the frame concerns."""

    kind: str
    command: str
    state: str


class Passed(NamedTuple):
    """A choice point of a run, and whether the run chose the kind there."""

    place: ChoiceClass
    at: int
    chosen: bool


class Coverage:
    """The places that runs have passed, and those at which they have chosen."""

    def __init__(self) -> None:
        self.chosen: Counter[ChoiceClass] = Counter()
        self._indexes: dict[ChoiceClass, list[int]] = {}

    def add(self, passed: Iterable[Passed]) -> None:
        """Add the choice points of a run."""
        for place, index, chosen in passed:
            known = self._indexes.setdefault(place, [])
            if len(known) < EXAMPLES and index not in known:
                known.append(index)
            if chosen:
                self.chosen[place] += 1

    @property
    def places(self) -> int:
        """Return the number of places that were passed."""
        return len(self._indexes)

    @property
    def covered(self) -> int:
        """Return the number of places at which a run has chosen."""
        return len(self.chosen)

    def by_kind(self) -> dict[str, tuple[int, int, int]]:
        """Return for each kind: how often it was chosen, at how many places, and the number of its places."""
        found: dict[str, tuple[int, int, int]] = {}
        for place in sorted(self._indexes):
            times, covered, places = found.get(place.kind, (0, 0, 0))
            count = self.chosen.get(place, 0)
            found[place.kind] = times + count, covered + (count > 0), places + 1
        return found

    def wish(self, chance: random.Random) -> Decision | None:
        """Return a decision at a place where runs have chosen least. Return None before the first run."""
        if not self._indexes:
            return None
        places = sorted(self._indexes)
        least = min(self.chosen.get(place, 0) for place in places)
        place = chance.choice([each for each in places if self.chosen.get(each, 0) == least])
        return Decision(place.kind, place.command, chance.choice(self._indexes[place]))
