"""The search for a run that fails, and for the least script that fails. It decides what to run next, and runs nothing.

A driver runs each plan and reports the outcome: `pulsarium explore` and `pulsarium.broker.testing.explore`.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field

from pulsarium.broker.lab.explore.coverage import Coverage, Passed
from pulsarium.broker.lab.explore.kinds import KINDS
from pulsarium.broker.lab.explore.plan import Plan, Scripted, Seeded, enabled, value_of
from pulsarium.broker.lab.explore.reduce import reduced
from pulsarium.broker.lab.explore.script import Script
from pulsarium.capture.file import Record

REPEATS = 5  # runs of a failing plan, to measure how often it fails
TRIES = 3  # runs of a smaller script that may pass by chance
MOST_TRIALS = 60  # scripts that are tried to reduce one


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of an exploration.

    rates: probabilities that replace those of the table, by kind. only, without: names of kinds.
    """

    runs: int
    seed: int
    only: Collection[str] = ()
    without: Collection[str] = ()
    rates: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise `ValueError` for an unknown kind, a rate out of range, or when no kind is left."""
        for name in (*self.only, *self.without, *self.rates):
            if name not in KINDS:
                raise ValueError(f"there is no kind {name!r}: use one of {', '.join(KINDS)}")
        for name, rate in self.rates.items():
            if not 0 <= rate <= 1:
                raise ValueError(f"the rate of {name} is {rate:g}; it must be from 0 to 1")
        if not enabled(KINDS, self.only, self.without):
            raise ValueError("no kind is left: leave at least one")

    @property
    def kinds(self) -> dict[str, float]:
        """Return the rates of the enabled kinds."""
        return {name: self.rates.get(name, KINDS[name].rate) for name in enabled(KINDS, self.only, self.without)}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a run.

    failure: what failed, or "". made: the decisions in their order. passed: the choice points. records: the capture of
    the run. error: the exception of a test.
    """

    failure: str
    made: Script
    passed: Sequence[Passed] = ()
    records: Sequence[Record] = ()
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """A run that fails: the least script that fails, and the outcome of its last failing run.

    seed: the seed of the first failing run, or "" for a given script. repeated: how many of `repeats` more runs of the
    first failing plan failed too. same: how many of these made the same decisions.
    """

    script: Script
    outcome: Outcome
    seed: str = ""
    repeated: int = 0
    same: int = 0
    repeats: int = REPEATS


Trials = Generator[Plan, Outcome, Finding]
"""Yields plans to run, receives their outcomes, and returns the finding."""


class Search:
    """The plans of an exploration, steered by the coverage of the runs before."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.coverage = Coverage()
        self.done = 0
        """Number of runs that were explored."""
        self._kinds = settings.kinds
        self._values = {name: KINDS[name].values for name in self._kinds}

    def plan(self, number: int) -> Plan:
        """Return the plan of run `number`. The first run makes no choice: it shows the choice points."""
        if number == 0:
            return Scripted(())
        seed = f"{self.settings.seed}/{number}"
        chance = random.Random(f"wish {seed}")
        wishes: Script = ()
        if chance.random() < 0.5:
            wish = self.coverage.wish(chance)
            if wish is not None and wish.kind in self._kinds:
                wishes = (wish._replace(value=value_of(self._values[wish.kind], chance)),)
        return Seeded(seed, self._kinds, self._values, wishes)

    def note(self, outcome: Outcome) -> None:
        """Add the outcome of an explored run."""
        self.done += 1
        self.coverage.add(each for each in outcome.passed if each.place.kind in self._kinds)


def reduce(plan: Plan, first: Outcome, most: int = MOST_TRIALS) -> Trials:
    """Repeat a failing plan, and reduce its decisions to the least script that fails."""
    repeated = same = 0
    for _ in range(REPEATS):
        outcome = yield plan.again() if isinstance(plan, Seeded) else plan
        repeated += bool(outcome.failure)
        same += outcome.made == first.made
    tries = 1 if repeated == REPEATS else TRIES
    found, script = first, first.made
    trial = reduced(script, most)
    fails: bool | None = None
    while True:
        try:
            candidate = next(trial) if fails is None else trial.send(fails)
        except StopIteration as end:
            script = end.value
            break
        fails = False
        for _ in range(tries):
            outcome = yield Scripted(candidate)
            if outcome.failure:
                fails, found = True, outcome
                break
    seed = plan.seed if isinstance(plan, Seeded) else ""
    return Finding(script, found, seed, repeated, same)
