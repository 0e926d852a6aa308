"""The broker's clock: wall time and timers, which a test can drive."""

from __future__ import annotations

import itertools
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from itertools import pairwise

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from pulsarium.broker.clock import LOOK, Clock, Timeline, instant_text, machine_wall
from pulsarium.broker.net import slices
from tests.broker.wall import Wall


@pytest.fixture
async def clock(mock_clock: MockClock) -> AsyncIterator[Clock]:
    async with trio.open_nursery() as nursery:
        clock = Clock()
        nursery.start_soon(clock.run)
        yield clock
        nursery.cancel_scope.cancel()


async def jump(mock_clock: MockClock, seconds: float) -> None:
    await wait_all_tasks_blocked()
    mock_clock.jump(seconds)
    await wait_all_tasks_blocked()


async def test_wall_time_starts_with_the_machines_and_goes_with_the_tests(mock_clock: MockClock, clock: Clock) -> None:
    started = clock.now_ms()
    assert abs(started - time.time() * 1000) < 60_000
    mock_clock.jump(1.5)
    assert clock.now_ms() == started + 1500
    assert clock.monotonic() == 1.5


async def test_timers_fire_in_order_of_their_deadlines(mock_clock: MockClock, clock: Clock) -> None:
    fired: list[str] = []
    for name, seconds in (("c", 3), ("a", 1), ("b", 2), ("a too", 1), ("now", 0)):
        clock.call_later(seconds, lambda name=name: fired.append(name))  # type: ignore[misc]
    await jump(mock_clock, 0)
    assert fired == ["now"]
    await jump(mock_clock, 1)
    assert fired == ["now", "a", "a too"]
    await jump(mock_clock, 10)
    assert fired == ["now", "a", "a too", "b", "c"]


async def test_a_cancelled_timer_does_not_fire(mock_clock: MockClock, clock: Clock) -> None:
    fired: list[int] = []
    timer = clock.call_later(1, lambda: fired.append(1))
    clock.call_later(1, lambda: fired.append(2))
    timer.cancel()
    timer.cancel()
    await jump(mock_clock, 1)
    assert fired == [2]
    timer.cancel()


async def test_timers_may_set_timers(mock_clock: MockClock, clock: Clock) -> None:
    fired: list[float] = []

    def again() -> None:
        fired.append(clock.monotonic())
        clock.call_later(2, again)

    again()
    for _ in range(6):
        await jump(mock_clock, 1)
    assert fired == [0, 2, 4, 6]


async def test_a_sooner_timer_wakes_the_one_who_waits_for_a_later_one(mock_clock: MockClock, clock: Clock) -> None:
    fired: list[str] = []
    clock.call_later(100, lambda: fired.append("late"))
    await jump(mock_clock, 1)
    clock.call_later(1, lambda: fired.append("soon"))
    await jump(mock_clock, 1)
    assert fired == ["soon"]


async def test_a_fault_in_a_timer_stops_no_other(
    mock_clock: MockClock, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    fired: list[int] = []

    def fault() -> None:
        raise ValueError("broken")

    clock.call_later(1, fault)
    clock.call_later(1, lambda: fired.append(1))
    await jump(mock_clock, 1)
    clock.call_later(1, lambda: fired.append(2))
    await jump(mock_clock, 1)
    assert fired == [1, 2]
    assert "timer failed" in caplog.text
    assert "broken" in caplog.text


async def test_other_tasks_run_between_timers_that_fire_together(
    mock_clock: MockClock, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "SLICE", 0)
    fired: list[int] = []
    for number in range(10):
        clock.call_later(1, partial(fired.append, number))
    await wait_all_tasks_blocked()
    mock_clock.jump(1)
    seen = []
    while len(fired) < 10:
        await trio.lowlevel.checkpoint()
        seen.append(len(fired))
    assert fired == [*range(10)]
    assert max(later - before for before, later in pairwise(seen)) <= 2  # trio shuffles the order of tasks


def test_instants_are_written_as_pulsar_does() -> None:
    assert instant_text(0) == "1970-01-01T00:00:00.000Z"
    assert instant_text(1_700_000_000_123) == "2023-11-14T22:13:20.123Z"
    assert instant_text(-1) == "1969-12-31T23:59:59.999Z"
    assert instant_text(253_402_300_799_999) == "9999-12-31T23:59:59.999Z"
    assert instant_text(253_402_300_800_000) == "+10000-01-01T00:00:00.000Z"
    assert instant_text(2**63 - 1) == "+292278994-08-17T07:12:55.807Z"


async def test_no_time_passes_between_two_timelines(mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = itertools.count()
    monkeypatch.setattr(trio, "current_time", lambda: float(next(looks)))
    clock = Clock()
    assert clock.ahead_of(clock.machine) == 0
    clock.jump(3600)
    assert clock.ahead_of(clock.machine) == 3600
    clock.have_wall_of(clock.machine)
    assert clock.ahead_of(clock.machine) == 0


async def test_a_jump_of_a_frozen_clock_is_exact_to_the_millisecond(mock_clock: MockClock, clock: Clock) -> None:
    for moment in range(2_000):  # rounded seconds sometimes fall into the next or the previous millisecond
        mock_clock.jump(0.123_456_7)
        clock.freeze()
        frozen = clock.now_ms()
        clock.jump(86_400 * moment + 0.001)
        assert clock.now_ms() == frozen + 86_400_000 * moment + 1
        clock.resume()


async def test_a_jump_of_a_running_clock_is_exact_wherever_its_millisecond_began(
    mock_clock: MockClock, clock: Clock
) -> None:
    for _ in range(2000):
        mock_clock.jump(0.000_017)
        before = clock.ahead_of(clock.machine)
        clock.freeze()
        clock.jump(60.0)
        clock.resume(catch_up=True)
        assert clock.ahead_of(clock.machine) - before == pytest.approx(60, abs=1e-6)


# the machine's wall clock


@pytest.mark.parametrize("hour", [3600, -3600])
async def test_wall_time_is_the_machines_after_its_clock_was_set(
    mock_clock: MockClock, wall: Wall, clock: Clock, hour: int
) -> None:
    lines = (clock, clock.of("a/b"), clock.machine, clock.token_expiry, clock.keep_alive)
    before = [each.now_ms() for each in lines]
    wall.ahead += hour
    assert [each.now_ms() for each in lines] == [each + hour * 1000 for each in before]
    assert clock.monotonic() == 0


async def test_a_clock_of_the_machine_asks_the_machine() -> None:
    clock = Clock()
    before = time.time_ns() // 1_000_000
    asked = clock.now_ms()
    assert before - 1 <= asked <= time.time_ns() // 1_000_000 + 1  # seconds with a fraction are rounded
    assert machine_wall() is time.time


async def test_a_timer_for_a_wall_time_fires_when_the_machine_slept_past_it(
    mock_clock: MockClock, wall: Wall, clock: Clock
) -> None:
    fired: list[str] = []
    clock.call_at(clock.now_ms() + 1_800_000, lambda: fired.append("at"))
    clock.call_later(1800, lambda: fired.append("later"))
    await jump(mock_clock, 1)
    wall.ahead += 3600
    await jump(mock_clock, LOOK)
    assert fired == ["at"]
    await jump(mock_clock, 1800)
    assert fired == ["at", "later"]


async def test_a_timer_for_a_wall_time_waits_longer_when_the_clock_is_set_back(
    mock_clock: MockClock, wall: Wall, clock: Clock
) -> None:
    fired: list[int] = []
    clock.call_at(clock.now_ms() + 10_000, lambda: fired.append(1))
    await jump(mock_clock, 5)
    wall.ahead -= 100
    await jump(mock_clock, 104)
    assert fired == []
    await jump(mock_clock, 1)
    assert fired == [1]


async def test_a_timer_that_is_set_before_the_next_look_has_the_new_time(
    mock_clock: MockClock, wall: Wall, clock: Clock
) -> None:
    fired: list[int] = []
    clock.call_later(100_000, lambda: None)
    await jump(mock_clock, 0)
    wall.ahead += 3600
    clock.call_at(clock.now_ms() + 5000, lambda: fired.append(1))
    await jump(mock_clock, 4.9)
    assert fired == []
    await jump(mock_clock, 0.1)
    assert fired == [1]


async def test_a_change_of_the_time_is_logged(
    mock_clock: MockClock, wall: Wall, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    clock.call_later(10, lambda: None)
    await jump(mock_clock, 0)
    wall.ahead += 0.9
    await jump(mock_clock, LOOK)
    assert caplog.messages == []
    wall.ahead -= 60
    await jump(mock_clock, LOOK)
    (told,) = caplog.messages
    assert "the time has changed" in told


async def test_without_a_timer_nobody_looks_at_the_wall_clock(mock_clock: MockClock, wall: Wall, clock: Clock) -> None:
    clock.every(3600, lambda: None)
    await wait_all_tasks_blocked()
    assert trio.lowlevel.current_statistics().seconds_to_next_deadline == 3600


# namespaces


async def test_a_namespace_shares_the_brokers_time_until_it_is_parted(mock_clock: MockClock, clock: Clock) -> None:
    line, other = clock.of("a/b"), clock.of("a/c")
    assert line is clock.of("a/b")
    clock.jump(5)
    assert (line.now_ms(), line.monotonic(), line.frozen) == (clock.now_ms(), clock.monotonic(), clock.frozen)
    clock.part(line)
    line.jump(10)
    line.freeze()
    assert [each.frozen for each in (line, other, clock)] == [True, False, False]
    assert (round(line.ahead_of(clock), 3), other.ahead_of(clock)) == (10, 0)


async def test_timers_go_along_in_order_when_a_namespace_is_parted_and_joined(
    mock_clock: MockClock, clock: Clock
) -> None:
    fired: list[str] = []
    line = clock.of("a/b")
    for name, seconds in (("b", 2), ("a", 1), ("a too", 1), ("c", 30)):
        line.call_later(seconds, lambda name=name: fired.append(name))  # type: ignore[misc]
    line.call_later(1, lambda: fired.append("canceled")).cancel()
    clock.call_later(1, lambda: fired.append("broker"))
    clock.part(line)
    line.freeze()
    await jump(mock_clock, 5)
    assert fired == ["broker"]
    line.jump(20)
    await jump(mock_clock, 0)
    assert fired == ["broker", "a", "a too", "b"]
    before = line.monotonic()
    clock.join(line)
    assert line.monotonic() == before
    await jump(mock_clock, 9)
    assert fired[4:] == []
    await jump(mock_clock, 1)
    assert fired[4:] == ["c"]


async def test_a_check_runs_once_for_each_time_and_at_the_same_moments(mock_clock: MockClock, clock: Clock) -> None:
    ran: list[str] = []
    line = clock.of("a/b")

    def check(whose: Timeline) -> Callable[[], None]:
        return lambda: ran.append("broker" if whose is clock else "namespace")

    clock.check_every(60, check)
    await jump(mock_clock, 50)
    clock.part(line)
    await jump(mock_clock, 10)
    assert sorted(ran) == ["broker", "namespace"]
    clock.join(line)
    await jump(mock_clock, 60)
    assert sorted(ran) == ["broker", "broker", "namespace"]


async def test_a_timer_may_end_its_namespaces_own_time(mock_clock: MockClock, clock: Clock) -> None:
    fired: list[str] = []
    line = clock.of("a/b")
    clock.part(line)
    line.jump(1000)
    line.call_later(1, lambda: clock.forget("a/b"))
    clock.call_later(500, lambda: fired.append("too early"))
    await jump(mock_clock, 1)
    assert (fired, line.exists, line.follows(clock)) == ([], False, True)
    assert clock.of("a/b") is not line
