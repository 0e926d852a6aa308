"""A broker that makes the decisions of a script, over streams, under a clock that jumps."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest
import trio

from pulsarium.broker.lab import Lab
from pulsarium.broker.lab.explore.explorer import Explorer, PlannedRun
from pulsarium.broker.lab.explore.kinds import check
from pulsarium.broker.lab.explore.plan import Scripted
from pulsarium.broker.lab.explore.script import read
from tests.broker.wire import Bed


@pytest.fixture
async def explored(bed: Bed) -> AsyncIterator[Callable[..., object]]:
    """Return a function that starts an exploration with the decisions in the given texts, and returns its run."""
    lab = bed.broker.cluster.attached(Lab)
    async with trio.open_nursery() as nursery:

        async def start(*texts: str) -> PlannedRun:
            run = PlannedRun(Scripted(check(read(texts))))
            await nursery.start(Explorer(lab, run).run)
            return run

        yield start
        nursery.cancel_scope.cancel()
