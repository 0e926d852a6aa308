"""Run the trials of a search with a command, several at a time."""

from __future__ import annotations

from collections.abc import Callable

import trio

from pulsarium.broker.config import ServeOptions
from pulsarium.broker.lab.explore.plan import Plan
from pulsarium.broker.lab.explore.search import RunOutcome, Search
from pulsarium.broker.testing.exploring import ExploredRun
from pulsarium.cli.explore.application import Application


class Exploration:
    """An exploration of a command. Each of `jobs` workers makes an application of its own, and runs it alone."""

    def __init__(
        self, options: ServeOptions, search: Search, make: Callable[[], Application], *, timeout: float, jobs: int
    ) -> None:
        self._options = options
        self._search = search
        self._make = make
        self._timeout = timeout
        self._workers = [trio.CancelScope() for _ in range(jobs)]
        self._number = 0

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
        run = ExploredRun(self._options, plan)
        self._number += 1
        async with run.open() as broker:
            failure = await application.run(self._number, broker, self._timeout)
        return run.outcome(failure, output=application.output)
