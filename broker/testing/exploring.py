"""A run of an exploration: a new broker in memory that follows a plan, with a capture that is judged afterwards."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import trio

from pulsarium.broker.config import ServeOptions
from pulsarium.broker.lab.explore.explorer import Explorer, PlannedRun
from pulsarium.broker.lab.explore.plan import Plan
from pulsarium.broker.lab.explore.search import RunOutcome
from pulsarium.broker.server import RunningCluster, open_broker
from pulsarium.broker.storage.lasting import LastingStorage
from pulsarium.capture.check.checker import tally_of
from pulsarium.capture.file import CaptureRecord


class ExploredRun:
    """A run of a plan. Open its brokers once, and ask for the outcome afterwards."""

    def __init__(self, options: ServeOptions, plan: Plan) -> None:
        self._run = PlannedRun(plan)
        self._options = replace(options, config=replace(options.config, **self._run.settings()))
        self._records: Sequence[CaptureRecord] = ()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[RunningCluster]:
        """Serve, and follow the plan, until the block ends."""
        async with (
            open_broker(self._options, web_when_asked=True, storage=LastingStorage()) as running,
            trio.open_nursery() as nursery,
        ):
            explorer = Explorer(running.lab, self._run)
            with running.lab.captures.start(as_sent=True) as capture:
                await nursery.start(explorer.run)
                try:
                    yield running
                finally:
                    explorer.end()
                    # a delayed frame of the broker belongs where the broker sent the frame
                    self._records = sorted(capture.records(), key=lambda record: record.monotonic_ns)
                    nursery.cancel_scope.cancel()

    def outcome(self, failure: str, *, output: str = "", error: BaseException | None = None) -> RunOutcome:
        """Return the outcome. A broken promise of Pulsar is a failure too.

        `failure` says what the application reported, or "". `output` is the end of the output of a command, and `error`
        the exception of a test.
        """
        failure = failure or broken_promise(self._records)
        return RunOutcome(failure, tuple(self._run.made), self._run.passed, self._records, output, error)


def broken_promise(records: Sequence[CaptureRecord]) -> str:
    """Return the first promise of Pulsar that a history breaks, or ""."""
    verdicts = tally_of(enumerate(records, 1)).verdicts
    return f"a promise of Pulsar was broken: {verdicts[0]}" if verdicts else ""
