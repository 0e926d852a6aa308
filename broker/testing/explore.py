"""Explore a test: run it again and again, each time with a broker that does what Pulsar is allowed to do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pulsarium.broker.config import ServeOptions
from pulsarium.broker.lab.explore import report
from pulsarium.broker.lab.explore.failures import Failures
from pulsarium.broker.lab.explore.kinds import KINDS, check
from pulsarium.broker.lab.explore.plan import Plan
from pulsarium.broker.lab.explore.script import ScriptError, parse
from pulsarium.broker.lab.explore.search import ExploredFailure, ExploreSettings, RunOutcome, Search
from pulsarium.broker.testing.broker import PulsarBroker
from pulsarium.broker.testing.exploring import ExploredRun
from pulsarium.broker.testing.starting import options_of
from pulsarium.broker.testing.thread import LoopThread

Test = Callable[[PulsarBroker], object]
FAILURES = Path(".pulsarium/explore-failures")


class Explored(AssertionError):
    """A run of a test has failed. The text has the least script. The cause is the error of the test."""

    def __init__(self, finding: ExploredFailure) -> None:
        self.finding = finding
        lines = [*report.about(finding), f"repeat: {report.pytest_mark(finding.script)}"]
        lines += ["frames around the last decision:", *(f"  {line}" for line in report.frames(finding))]
        super().__init__("\n".join(["a legal choice of the broker breaks the test", *lines]))


def explore(
    test: Test,
    *,
    runs: int = 200,
    seed: int = 0,
    only: Collection[str] = (),
    without: Collection[str] = (),
    rates: Mapping[str, float] | None = None,
    script: Sequence[str] | None = None,
    options: ServeOptions | None = None,
    name: str = "",
    failures: Path | None = FAILURES,
) -> Search:
    """Run a test `runs` times, each time with a new broker in memory that makes legal choices, as `seed` decides.

    `test` gets the broker, and raises an exception when the application has failed. With `script`, only its decisions
    are made, in one run. `name` identifies the test in the file `failures`, whose scripts are run first; None has no
    file. Return the search with its coverage. Raise `Explored` for the first run that fails, reduced to its least
    script, `ValueError` for an unknown kind, and `ScriptError` for a script that cannot be read.
    """
    __tracebackhide__ = True
    options = options or options_of()
    given = None if script is None else check(tuple(map(parse, script)))
    kept = Failures(failures, name) if failures is not None and given is None else None
    known = kept.scripts() if kept is not None else () if given is None else (given,)
    search = Search(ExploreSettings(runs if given is None else 0, seed, only, without, rates or {}), known)
    for trial in search.trials():
        trial.outcome = run_once(test, options, trial.plan)
    for finding in search.findings:
        if kept is not None:
            kept.add(finding.script)
        raise Explored(finding) from finding.outcome.error
    return search


def wrong_arguments(script: Iterable[str], kinds: Iterable[str]) -> Iterator[str]:
    """Yield what is wrong with decisions and names of kinds."""
    try:
        check(tuple(map(parse, script)))
    except ScriptError as error:
        yield str(error)
    for kind in kinds:
        if kind not in KINDS:
            yield f"there is no kind {kind!r}; there are {', '.join(KINDS)}"


def run_once(test: Test, options: ServeOptions, plan: Plan) -> RunOutcome:
    """Run a test with a broker that follows a plan."""
    __tracebackhide__ = True
    run = ExploredRun(options, plan)
    thread = LoopThread(run.open, "pulsarium broker")
    broker = PulsarBroker(thread.start(), thread)
    error: Exception | None = None
    try:
        test(broker)
    except Exception as failed:
        error = failed
    finally:
        thread.stop()
    return run.outcome("" if error is None else f"{type(error).__name__}: {error}", error=error)
