"""Run the trials of a search with a command, several at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import trio

from pulsarium.broker.lab.explore.plan import Plan
from pulsarium.broker.lab.explore.search import RunOutcome, Search
from pulsarium.broker.testing.exploring import ExploredRun, ProxiedRun
from pulsarium.cli.explore.application import Application
from pulsarium.cli.refusal import RunRefused

Begin: TypeAlias = Callable[[Plan], ExploredRun] | Callable[[Plan], ProxiedRun]


class Exploration:
    """An exploration of a command. Each of `jobs` workers makes an application of its own, and runs it alone.

    `clean` is called behind each run, in a thread.
    """

    def __init__(
        self,
        begin: Begin,
        search: Search,
        make: Callable[[], Application],
        *,
        timeout: float,
        jobs: int,
        clean: Callable[[RunOutcome], object] = lambda outcome: None,
    ) -> None:
        self._begin = begin
        self._clean = clean
        self._search = search
        self._make = make
        self._timeout = timeout
        self._workers = [trio.CancelScope() for _ in range(jobs)]
        self._number = 0
        self._open = list[ExploredRun | ProxiedRun]()

    async def run(self) -> None:
        """Run all trials. A failure that ends the search cancels the runs of other workers."""
        async with trio.open_nursery() as nursery:
            for worker in self._workers:
                nursery.start_soon(self._work, worker)

    async def _work(self, worker: trio.CancelScope) -> None:
        application = self._make()
        try:
            with worker:
                for trial in self._search.trials():
                    if self._search.over:  # this worker reduces the last failure
                        self._cancel_others(worker)
                    trial.outcome = await self._outcome(application, trial.plan)
        finally:
            application.close()

    def _cancel_others(self, worker: trio.CancelScope) -> None:
        for each in self._workers:
            if each is not worker:
                each.cancel()

    async def _outcome(self, application: Application, plan: Plan) -> RunOutcome:
        run = self._begin(plan)
        self._number = number = self._number + 1
        self._open.append(run)
        try:
            async with run.open() as broker:
                failure = await application.run(number, broker, self._timeout)
            outcome = run.outcome(failure, output=application.output)
            await trio.to_thread.run_sync(self._clean, outcome)
        finally:
            self._open.remove(run)  # also when the search has ended, and cancels it
        self._refuse_shared_topics(run)
        return outcome

    def _refuse_shared_topics(self, run: ExploredRun | ProxiedRun) -> None:
        """Raise `RunRefused` when a run that goes on has opened a topic of this run: neither verdict is worth much."""
        mine = run.shared_topics() if self._open else set()
        for each in self._open:
            for topic in mine & each.shared_topics():
                raise RunRefused(
                    f"explore: two runs at once opened {topic} on one broker, and so disturb each other: leave out "
                    "--jobs, or let COMMAND use new topics in each run"
                )
