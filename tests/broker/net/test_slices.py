"""Long work pauses, so that other tasks have a turn."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import pairwise

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from pulsarium.broker.clock import Clock
from pulsarium.broker.net import slices
from pulsarium.broker.net.rounds import Rounds
from pulsarium.broker.net.slices import Slice

STEPS = 10


@pytest.fixture
async def clock(mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Clock]:
    """Run a clock, with slices so short that each step takes a whole one."""
    monkeypatch.setattr(slices, "SLICE", 0)
    async with trio.open_nursery() as nursery:
        clock = Clock()
        nursery.start_soon(clock.run)
        yield clock
        nursery.cancel_scope.cancel()


async def turns(mock_clock: MockClock, done: list[int], count: int) -> list[int]:
    """Run rounds until `count` steps are done. Return how many were done each time that another task had a turn."""
    mock_clock.jump(1)
    seen = []
    while len(done) < count:
        await trio.lowlevel.checkpoint()
        seen.append(len(done))
    await wait_all_tasks_blocked()
    return seen


async def test_others_have_a_turn_after_each_slice_of_a_round(mock_clock: MockClock, clock: Clock) -> None:
    done: list[int] = []

    def steps() -> Iterator[None]:
        for number in range(STEPS):
            done.append(number)
            mock_clock.jump(0.001)
            yield

    clock.every(1, Rounds(clock, steps))
    for rounds in (1, 2):
        seen = await turns(mock_clock, done, rounds * STEPS)
        assert max(later - before for before, later in pairwise(seen)) <= 2  # trio shuffles the order of tasks
    assert done == 2 * [*range(STEPS)]


async def test_work_that_fits_into_a_slice_is_done_at_once(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE", 60)
    left = iter([None] * STEPS)
    Rounds(clock, lambda: left)()
    assert list(left) == []


async def test_a_round_that_is_not_over_takes_the_place_of_the_next(mock_clock: MockClock, clock: Clock) -> None:
    done: list[int] = []

    def steps() -> Iterator[None]:
        for number in range(STEPS):
            done.append(number)
            mock_clock.jump(1)  # as long as the period
            yield

    clock.every(1, Rounds(clock, steps))
    for rounds in (1, 2, 3):
        await turns(mock_clock, done, rounds * STEPS)
    assert done == 3 * [*range(STEPS)]


async def test_a_step_that_fails_ends_its_round(
    mock_clock: MockClock, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    done: list[int] = []

    def steps() -> Iterator[None]:
        done.append(0)
        mock_clock.jump(0.001)
        yield
        done.append(1)
        raise ValueError("broken")

    clock.every(1, Rounds(clock, steps))
    await turns(mock_clock, done, 2)
    await turns(mock_clock, done, 4)
    assert done == [0, 1, 0, 1]
    assert "broken" in caplog.text


async def test_a_slice_pauses_only_when_its_time_is_over(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        await Slice().pause()
    assert scope.cancelled_caught
    monkeypatch.setattr(slices, "SLICE", 60)
    with trio.CancelScope() as scope:
        scope.cancel()
        await Slice().pause()
    assert not scope.cancelled_caught
