"""Brokers for tests that talk to one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.broker.held import HeldStorage
from tests.broker.wall import Wall
from tests.broker.web.admin.rest import Rest, rest_of
from tests.broker.wire import Bed, Wire, serving


def run_without_waiting(*arguments: Any, clock: trio.abc.Clock | None = None, **options: Any) -> Any:
    """Run trio on a clock that jumps when all tasks wait."""
    return trio.run(*arguments, clock=clock or MockClock(autojump_threshold=0), **options)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Run tests of a broker on a clock that jumps.

    pytest-trio looks for a clock only among a test's own arguments, not among those of its fixtures or in usefixtures.
    """
    if not {"bed", "autojump_clock"}.isdisjoint(getattr(item, "fixturenames", ())):
        item.add_marker(pytest.mark.trio(run=run_without_waiting))


@pytest.fixture
def store() -> HeldStorage:
    """Return the store of the broker, whose commits the test can hold back."""
    return HeldStorage()


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> Wall:
    """Return the machine's wall clock, which the test can set."""
    wall = Wall()
    monkeypatch.setattr("pulsarium.broker.clock.machine_wall", lambda: wall)
    return wall


@pytest.fixture
async def bed(request: pytest.FixtureRequest) -> AsyncIterator[Bed]:
    """Serve a broker whose time passes when all tasks wait. Its options are those of the mark `serving`."""
    mark = request.node.get_closest_marker("serving") or pytest.mark.serving().mark
    store = request.getfixturevalue("store") if "store" in request.fixturenames else None
    async with serving(*mark.args, **mark.kwargs, storage=store) as bed:
        yield bed


@pytest.fixture
async def wire(bed: Bed) -> Wire:
    """Return a connection to the broker."""
    return await bed.connect()


@pytest.fixture
async def sender(bed: Bed) -> Wire:
    """Return another connection, with producer 0 on the usual topic."""
    wire = await bed.connect()
    await wire.producer()
    return wire


@pytest.fixture
async def rest(bed: Bed) -> Rest:
    """Return the admin API of this broker, without ports."""
    return rest_of(bed)
