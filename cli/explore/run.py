"""Run the plans of a search: several at a time, then the reduction of the first one that fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import trio

from pulsarium.broker.config import ServeOptions
from pulsarium.broker.lab.explore.plan import Plan, Scripted
from pulsarium.broker.lab.explore.script import Script
from pulsarium.broker.lab.explore.search import Finding, Outcome, Search, reduce
from pulsarium.broker.testing.exploring import ExploredRun
from pulsarium.cli.explore.application import Application


@dataclass(frozen=True)
class Job:
    """A run that waits. A run that is not explored has a given script, which is not reduced."""

    explored: bool
    plan: Plan


class Exploration:
    """An exploration of a command. `known` scripts are run first. `advanced` is called after each run."""

    def __init__(
        self,
        options: ServeOptions,
        search: Search,
        known: Sequence[Script],
        make: Callable[[], Application],
        *,
        timeout: float,
        jobs: int,
        advanced: Callable[[], None],
    ) -> None:
        self._options = options
        self._search = search
        self._make = make
        self._timeout = timeout
        self._jobs = jobs
        self._advanced = advanced
        self._waiting = self._all(known)
        self._failed: tuple[Job, Outcome] | None = None
        self._number = 0
        self.output = ""
        """The end of the application's output in the last run that failed."""

    def _all(self, known: Sequence[Script]) -> Iterator[Job]:
        for script in known:
            yield Job(False, Scripted(script))
        for number in range(self._search.settings.runs):
            yield Job(True, self._search.plan(number))

    async def run(self) -> Finding | None:
        """Run all plans until one fails. Return the reduced failure, or None."""
        async with trio.open_nursery() as nursery:
            for _ in range(self._jobs):
                nursery.start_soon(self._work, nursery.cancel_scope)
        if self._failed is None:
            return None
        job, outcome = self._failed
        return await self._reduce(job.plan, outcome) if job.explored else Finding(outcome.made, outcome)

    async def _work(self, all_workers: trio.CancelScope) -> None:
        application = self._make()
        try:
            for job in self._waiting:
                outcome = await self._outcome(application, job.plan)
                if job.explored:
                    self._search.note(outcome)
                self._advanced()
                if outcome.failure:
                    self._failed = job, outcome
                    all_workers.cancel()
                    return
        finally:
            application.close()

    async def _reduce(self, plan: Plan, outcome: Outcome) -> Finding:
        application = self._make()
        trials = reduce(plan, outcome)
        try:
            wanted = next(trials)
            while True:
                wanted = trials.send(await self._outcome(application, wanted))
        except StopIteration as end:
            finding: Finding = end.value
            return finding
        finally:
            application.close()

    async def _outcome(self, application: Application, plan: Plan) -> Outcome:
        run = ExploredRun(self._options, plan)
        self._number += 1
        async with run.open() as broker:
            failure = await application.run(self._number, broker, self._timeout)
        outcome = run.outcome(failure)
        if outcome.failure:
            self.output = application.output
        return outcome
