"""Explore a test: run it again and again, each time with a broker that does what Pulsar is allowed to do.

A proxy in front of a running broker may stand in the place of the broker.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypedDict, Unpack, overload

from pulsarium.broker.config import ServeOptions
from pulsarium.broker.lab.explore import report
from pulsarium.broker.lab.explore.failures import Failures
from pulsarium.broker.lab.explore.kinds import KINDS, check
from pulsarium.broker.lab.explore.plan import Plan
from pulsarium.broker.lab.explore.script import ScriptError, parse
from pulsarium.broker.lab.explore.search import ExploredFailure, ExploreSettings, RunOutcome, Search
from pulsarium.broker.testing.broker import PulsarBroker
from pulsarium.broker.testing.exploring import ExploredRun, PlanRun
from pulsarium.broker.testing.proxy import PulsarProxy, proxy_options
from pulsarium.broker.testing.shared_broker import SharedBroker
from pulsarium.broker.testing.starting import options_of
from pulsarium.broker.testing.thread import LoopThread

Test: TypeAlias = Callable[[PulsarBroker], object]
ProxyTest: TypeAlias = Callable[[PulsarProxy], object]
Begin: TypeAlias = Callable[[Callable[[Any], object], Plan], RunOutcome]
FAILURES = Path(".pulsarium/explore-failures")


class Explored(AssertionError):
    """A run of a test has failed. The text has the least script. The cause is the error of the test."""

    def __init__(self, finding: ExploredFailure) -> None:
        self.finding = finding
        lines = [*report.about(finding), f"repeat: {report.pytest_mark(finding.script)}"]
        lines += ["frames around the last decision:", *(f"  {line}" for line in report.frames(finding))]
        super().__init__("\n".join(["a legal choice of the broker breaks the test", *lines]))


class _Searched(TypedDict, total=False):
    """Options of every exploration."""

    runs: int
    seed: int
    only: Collection[str]
    without: Collection[str]
    rates: Mapping[str, float] | None
    script: Sequence[str] | None
    name: str
    failures: Path | None


@overload
def explore(test: Test, *, options: ServeOptions | None = None, **searched: Unpack[_Searched]) -> Search: ...


@overload
def explore(
    test: ProxyTest,
    *,
    proxy: str,
    proxy_admin_url: str | None = None,
    delete_topics: bool = False,
    token: str = "",
    yes_not_production: bool = False,
    **searched: Unpack[_Searched],
) -> Search: ...


def explore(
    test: Callable[[Any], object],
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
    proxy: str | None = None,
    proxy_admin_url: str | None = None,
    delete_topics: bool = False,
    token: str = "",
    yes_not_production: bool = False,
) -> Search:
    """Run a test `runs` times, each time with a new broker in memory that makes legal choices, as `seed` decides.

    `test` gets the broker, and raises an exception when the application has failed. With `script`, only its decisions
    are made, in one run. `name` identifies the test in the file `failures`, whose scripts are run first; None has no
    file. Return the search with its coverage. Raise `Explored` for the first run that fails, reduced to its least
    script, `ValueError` for an unknown kind, and `ScriptError` for a script that cannot be read.

    With `proxy`, the runs share the broker at this pulsar:// URL, and `test` gets a new `PulsarProxy` in front of it,
    which makes the choices of a network. `proxy_admin_url` is the http:// URL of that broker. With `delete_topics`, all
    persistent topics that a run opened are deleted behind it, with `token`. A broker that may be one of production
    needs `yes_not_production`. Raise `ValueError` for what cannot be there.
    """
    __tracebackhide__ = True
    given = None if script is None else check(tuple(map(parse, script)))
    kept = Failures(failures, name) if failures is not None and given is None else None
    known = kept.scripts() if kept is not None else () if given is None else (given,)
    if proxy is None:
        begin: Begin = partial(_with_broker, options or options_of())
    else:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        behind = proxy_options(proxy, proxy_admin_url, yes_not_production=yes_not_production)
        shared = SharedBroker(options=behind, deletes=delete_topics, headers=headers)
        shared.check({*only, *(rates or ()), *(each.kind for each in given or ())})
        known, without = shared.possible(known), (*without, *shared.left_out)
        begin = partial(_with_proxy, shared)
    search = Search(ExploreSettings(runs if given is None else 0, seed, only, without, rates or {}), known)
    for trial in search.trials():
        trial.outcome = begin(test, trial.plan)
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


def _with_broker(options: ServeOptions, test: Test, plan: Plan) -> RunOutcome:
    """Run a test with a broker that follows a plan."""
    __tracebackhide__ = True
    run = ExploredRun(options, plan)
    thread = LoopThread(run.open, "pulsarium broker")
    broker = PulsarBroker(thread.start(), thread)
    return _run_once(lambda: test(broker), run, thread)


def _with_proxy(shared: SharedBroker, test: ProxyTest, plan: Plan) -> RunOutcome:
    """Run a test with a proxy that follows a plan."""
    __tracebackhide__ = True
    run = shared.begin(plan)
    thread = LoopThread(run.open, "proxy")
    running = thread.start()
    outcome = _run_once(lambda: test(PulsarProxy(running.service_url, running.admin_url)), run, thread)
    shared.clean(outcome)
    return outcome


def _run_once(test: Callable[[], object], run: PlanRun[Any], thread: LoopThread[Any]) -> RunOutcome:
    """Run a test, end the thread that the run was opened in, and return the outcome."""
    __tracebackhide__ = True
    error: Exception | None = None
    try:
        test()
    except Exception as failed:
        error = failed
    finally:
        thread.stop()
    return run.outcome("" if error is None else f"{type(error).__name__}: {error}", error=error)
