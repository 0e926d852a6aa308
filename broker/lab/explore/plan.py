"""Plans: which choices a run makes. A plan knows only the kind, the command and the index of a choice point."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pulsarium.broker.lab.explore.script import Decision, Script

MOST = 8  # decisions of a run: more make an application retry for long, and find no more
INCLUDED = 0.5  # probability with which a run includes a kind
SCALES = (0.5, 1.0, 3.0)  # of the rates of a run: calm, usual and wild runs


class Plan(Protocol):
    """The choices of one run."""

    def choose(self, kind: str, command: str, index: int) -> Decision | None:
        """Return the decision at a choice point, or None to do nothing. Each point is asked about once."""
        ...


class Scripted:
    """A plan of given decisions."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self._at = {decision[:3]: decision for decision in script}

    def choose(self, kind: str, command: str, index: int) -> Decision | None:
        return self._at.get((kind, command, index))


@dataclass
class Seeded:
    """A plan that a seed makes: a random subset of the kinds (swarm testing), each with a rate.

    A choice depends only on the seed and the choice point, and not on the order of points. wishes: decisions that the
    plan makes in any case.
    """

    seed: str
    rates: Mapping[str, float]
    values: Mapping[str, Sequence[float]]
    wishes: Script = ()
    most: int = field(init=False)

    def __post_init__(self) -> None:
        chance = random.Random(self.seed)
        self.most = chance.randint(1, MOST)
        scale = chance.choice(SCALES)
        self._rates = {kind: rate * scale for kind, rate in self.rates.items() if chance.random() < INCLUDED}
        self._wished = Scripted(self.wishes)
        self._made = 0

    def choose(self, kind: str, command: str, index: int) -> Decision | None:
        wished = self._wished.choose(kind, command, index)
        if wished is not None:
            return wished
        rate = self._rates.get(kind, 0.0)
        if not rate or self._made >= self.most:
            return None
        chance = random.Random(f"{self.seed} {kind} {command} {index}")
        if chance.random() >= rate:
            return None
        self._made += 1
        return Decision(kind, command, index, random_value(self.values.get(kind, ()), chance))

    def again(self) -> Seeded:
        """Return the same plan for another run."""
        return Seeded(self.seed, self.rates, self.values, self.wishes)


def random_value(values: Sequence[float], chance: random.Random) -> float | None:
    """Return one of the values of a kind, or None for a kind without values."""
    return chance.choice(values) if values else None


def enabled(kinds: Iterable[str], only: Collection[str], without: Collection[str]) -> list[str]:
    """Return the names of the kinds that an exploration uses."""
    return [name for name in kinds if (not only or name in only) and name not in without]
