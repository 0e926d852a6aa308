"""The search for runs that fail, and for the least script that fails. The search decides what to run, and runs nothing.

Two drivers run its trials: `pulsarium explore` and `pulsarium.broker.testing.explore`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pulsarium.broker.lab.explore.coverage import Coverage, Passed
from pulsarium.broker.lab.explore.kinds import KINDS
from pulsarium.broker.lab.explore.plan import Plan, Scripted, Seeded, enabled, random_value
from pulsarium.broker.lab.explore.reduce import reduced
from pulsarium.broker.lab.explore.script import Script
from pulsarium.capture.file import CaptureRecord

REPEATS = 5  # runs of a failing plan, to measure how often it fails
TRIES = 3  # runs of a smaller script that may pass by chance
MOST_TRIALS = 60  # scripts that are tried to reduce one


@dataclass(frozen=True, slots=True)
class ExploreSettings:
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
class RunOutcome:
    """The outcome of a run.

    failure: what failed, or "". made: the decisions in their order. passed: the choice points. records: the capture of
    the run. output: the end of a command's output. error: the exception of a test.
    """

    failure: str
    made: Script
    passed: Sequence[Passed] = ()
    records: Sequence[CaptureRecord] = ()
    output: str = ""
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class ExploredFailure:
    """A failure: the least script that fails, and the outcome of its last failing run.

    seed: the seed of the first failing run, or "" for a script. repeated: how many of `repeats` more runs of the first
    failing plan failed too. same: how many of these made the same decisions.
    """

    script: Script
    outcome: RunOutcome
    seed: str = ""
    repeated: int = 0
    same: int = 0
    repeats: int = 0


@dataclass(slots=True)
class Trial:
    """A plan to run. The driver sets the outcome before it asks for the next trial."""

    plan: Plan
    outcome: RunOutcome | None = None

    @property
    def ended(self) -> RunOutcome:
        """Return the outcome, which the driver has set."""
        assert self.outcome is not None
        return self.outcome


Moment = tuple[str, str]
"""The kind and the command of a decision."""


class Search:
    """The runs of an exploration, steered by the coverage of the runs before.

    for trial in search.trials():
        trial.outcome = run(trial.plan)
    """

    def __init__(
        self,
        settings: ExploreSettings,
        known: Sequence[Script] = (),
        *,
        keep_going: bool = False,
        advanced: Callable[[], object] = lambda: None,
    ) -> None:
        """Create a search that runs the scripts `known` first, and does not reduce them.

        keep_going: whether to go on behind a failure. advanced: called after each run that is not one of a reduction.
        """
        self.settings = settings
        self.coverage = Coverage()
        self.done = 0
        """Number of runs that were explored."""
        self.findings: list[ExploredFailure] = []
        """The distinct failures: at most one without `keep_going`."""
        self.repeated = 0
        """Number of further failed runs that needed the decisions of a finding to fail."""
        self.over = False
        """True when no plan follows: a failure has ended the search, and may still be reduced."""
        self._keep_going = keep_going
        self._advanced = advanced
        self._kinds = settings.kinds
        self._values = {name: KINDS[name].values for name in self._kinds}
        self._plans = self._all_plans(known)

    def trials(self) -> Iterator[Trial]:
        """Yield trials, one after another. Each of several workers asks for trials of its own.

        The worker whose run fails gets the trials that reduce the failure.
        """
        for explored, plan in self._plans:
            outcome = yield from _run(plan)
            self._advanced()
            if explored:
                self._note(outcome)
            if outcome.failure and not self.over:
                self.over = not self._keep_going
                if explored:
                    yield from self._examine(plan, outcome)
                else:
                    self._add(ExploredFailure(outcome.made, outcome))
            if self.over:
                return

    def _all_plans(self, known: Sequence[Script]) -> Iterator[tuple[bool, Plan]]:
        """Yield all plans, and whether each is explored, and not a script that is known."""
        yield from ((False, Scripted(script)) for script in known)
        yield from ((True, self._plan(number)) for number in range(self.settings.runs))

    def _plan(self, number: int) -> Plan:
        """Return the plan of run `number`. The first run makes no choice, and shows the choice points."""
        if number == 0:
            return Scripted(())
        seed = f"{self.settings.seed}/{number}"
        chance = random.Random(f"wish {seed}")
        wishes: Script = ()
        if chance.random() < 0.5:
            wish = self.coverage.wish(chance)
            if wish is not None and wish.kind in self._kinds:
                wishes = (wish._replace(value=random_value(self._values[wish.kind], chance)),)
        return Seeded(seed, self._kinds, self._values, wishes)

    def _note(self, outcome: RunOutcome) -> None:
        """Add the outcome of an explored run to the coverage."""
        self.done += 1
        self.coverage.add(each for each in outcome.passed if each.place.kind in self._kinds)

    def _examine(self, plan: Plan, outcome: RunOutcome) -> Generator[Trial, None, None]:
        """Reduce a failure, unless it is gone without the decisions of the findings so far."""
        left = self._unknown(outcome.made)
        if left != outcome.made:
            plan = Scripted(left)
            outcome = (yield from _run(plan)) if left else RunOutcome("", left)
        if outcome.failure:
            self._add((yield from reduce(plan, outcome)))
        else:
            self.repeated += 1

    def _unknown(self, made: Script) -> Script:
        """Return the decisions of a run without those that a finding explains."""
        moments = _moments(made)
        known = [found for each in self.findings if (found := _moments(each.script)) <= moments]
        return tuple(each for each in made if not any(each[:2] in found for found in known))

    def _add(self, finding: ExploredFailure) -> None:
        """Add a finding, unless one with the same kinds at the same commands is known."""
        if any(_moments(each.script) == _moments(finding.script) for each in self.findings):
            self.repeated += 1
        else:
            self.findings.append(finding)
            self.over |= not finding.script  # all further runs would fail too


def _moments(script: Script) -> set[Moment]:
    return {decision[:2] for decision in script}


def _run(plan: Plan) -> Generator[Trial, None, RunOutcome]:
    """Yield a trial, and return its outcome."""
    trial = Trial(plan)
    yield trial
    return trial.ended


def reduce(plan: Plan, first: RunOutcome, most: int = MOST_TRIALS) -> Generator[Trial, None, ExploredFailure]:
    """Repeat a failing plan, and reduce its decisions to the least script that fails."""
    seeded = plan if isinstance(plan, Seeded) else None
    repeated = same = 0
    for _ in range(REPEATS):
        outcome = yield from _run(seeded.again() if seeded else plan)
        repeated += bool(outcome.failure)
        same += outcome.made == first.made
    tries = 1 if repeated == REPEATS else TRIES
    found = first

    def fails(candidate: Script) -> Generator[Trial, None, bool]:
        nonlocal found
        for _ in range(tries):
            outcome = yield from _run(Scripted(candidate))
            if outcome.failure:
                found = outcome
                return True
        return False

    script = yield from reduced(first.made, fails, most)
    return ExploredFailure(script, found, seeded.seed if seeded else "", repeated, same, REPEATS)
