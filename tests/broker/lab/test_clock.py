"""The lab's clock, method by method, with timers that record when they ran."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from pulsarium.broker.clock import Clock
from pulsarium.broker.lab.clock import LabClock
from pulsarium.broker.lab.steering import IDLE, MOST_CHECKS, ClockError
from pulsarium.broker.model.ledger.ledger import EntryCache
from pulsarium.broker.turn import Turn
from tests.broker.held import HeldStorage
from tests.broker.wall import Wall

DAY = 86_400


class Stand(NamedTuple):
    """The parts of a cluster that the clock uses, and the timers that ran: (name, seconds since the beginning)."""

    clock: Clock
    turn: Turn
    cache: EntryCache
    store: HeldStorage
    ran: list[tuple[str, float]]

    def note(self, name: str) -> None:
        self.ran.append((name, round(self.clock.monotonic(), 3)))

    def later(self, seconds: float, name: str) -> None:
        self.clock.call_later(seconds, lambda: self.note(name))

    def every(self, seconds: float, name: str) -> None:
        self.clock.every(seconds, lambda: self.note(name))


@pytest.fixture
async def stand(mock_clock: MockClock) -> AsyncIterator[Stand]:
    store = HeldStorage()
    stand = Stand(Clock(), Turn(store), EntryCache(store, 1), store, [])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stand.clock.run)
        yield stand
        nursery.cancel_scope.cancel()


@pytest.fixture
async def lab(stand: Stand) -> LabClock:
    return LabClock(stand)  # type: ignore[arg-type]


async def pass_by(mock_clock: MockClock, seconds: float) -> None:
    await wait_all_tasks_blocked()
    mock_clock.jump(seconds)
    await wait_all_tasks_blocked()


# a frozen clock


async def test_a_frozen_clock_stands_still_and_goes_on_from_there(
    mock_clock: MockClock, stand: Stand, lab: LabClock
) -> None:
    stand.later(1, "timer")
    started = lab.now_ms()
    lab.freeze()
    lab.freeze()
    await pass_by(mock_clock, 10)
    assert (lab.frozen, lab.now_ms(), stand.clock.monotonic(), stand.ran) == (True, started, 0, [])
    assert lab.offset_ms == -10_000
    lab.resume()
    lab.resume()
    await pass_by(mock_clock, 0.9)
    assert (lab.frozen, lab.now_ms(), stand.ran) == (False, started + 900, [])
    await pass_by(mock_clock, 0.1)
    assert stand.ran == [("timer", 1)]
    assert lab.offset_ms == -10_000


async def test_timers_due_at_once_run_on_a_frozen_clock(mock_clock: MockClock, stand: Stand, lab: LabClock) -> None:
    await pass_by(mock_clock, 1)
    lab.freeze()
    stand.later(0, "now")
    stand.later(0.1, "later")
    await pass_by(mock_clock, 1)
    assert stand.ran == [("now", 1)]


# advancing


@pytest.mark.parametrize("frozen", [False, True])
async def test_timers_run_in_order_and_each_at_its_own_time(
    mock_clock: MockClock, stand: Stand, lab: LabClock, frozen: bool
) -> None:
    for name, seconds in (("c", 7 * DAY), ("a", 1), ("b", 2 * DAY), ("b too", 2 * DAY), ("never", 7 * DAY + 1)):
        stand.later(seconds, name)
    stand.clock.call_later(3, lambda: stand.later(5, "set on the way"))
    stand.clock.call_later(4, lambda: stand.note("cancelled")).cancel()
    if frozen:
        lab.freeze()
    started = lab.now_ms()
    await lab.advance(7 * DAY)
    due = [("a", 1), ("set on the way", 8), ("b", 2 * DAY), ("b too", 2 * DAY), ("c", 7 * DAY)]
    assert stand.ran == due
    assert lab.now_ms() == started + 7 * DAY * 1000
    assert (lab.frozen, lab.offset_ms) == (frozen, 7 * DAY * 1000)
    await pass_by(mock_clock, 1.5)
    assert stand.ran == due + ([] if frozen else [("never", 7 * DAY + 1.5)])


async def test_a_check_runs_at_every_moment_of_a_short_way(mock_clock: MockClock, stand: Stand, lab: LabClock) -> None:
    stand.every(60, "check")
    await lab.advance(600)
    assert stand.ran == [("check", 60.0 * n) for n in range(1, 11)]


async def test_a_check_runs_a_few_times_on_a_long_way_and_the_last_time_when_it_is_last_due(
    mock_clock: MockClock, stand: Stand, lab: LabClock
) -> None:
    stand.every(60, "check")
    await lab.advance(7 * DAY + 59)
    times = [time for _, time in stand.ran]
    assert len(times) == MOST_CHECKS
    assert all(time % 60 == pytest.approx(0, abs=0.01) for time in times)
    assert times[-1] == pytest.approx(7 * DAY, abs=0.01)
    stand.ran.clear()
    await lab.advance(2)
    assert [name for name, _ in stand.ran] == ["check"]


async def test_a_check_comes_before_what_runs_once(mock_clock: MockClock, stand: Stand, lab: LabClock) -> None:
    """A message that is delayed for three days must not be delivered when its TTL is one day."""
    stand.every(60, "check")
    stand.later(DAY - 1, "once")
    await lab.advance(7 * DAY)
    index = next(index for index, (name, _) in enumerate(stand.ran) if name == "once")
    name, at = stand.ran[index - 1]
    assert (name, round(at)) == ("check", DAY - 60)


async def test_a_fault_in_a_timer_stops_nothing(
    mock_clock: MockClock, stand: Stand, lab: LabClock, caplog: pytest.LogCaptureFixture
) -> None:
    def fault() -> None:
        raise ValueError("broken")

    stand.clock.call_later(1, fault)
    stand.later(2, "next")
    await lab.advance(2)
    assert stand.ran == [("next", 2)]
    assert "broken" in caplog.text


async def test_the_commit_of_a_timer_ends_before_the_next_timer_runs(
    mock_clock: MockClock, stand: Stand, lab: LabClock
) -> None:
    stand.store.holding = True

    def stores() -> None:
        stand.note("stores")
        stand.turn.store("/a", b"1")
        stand.turn.after_commit(lambda error: stand.note("kept"))

    stand.clock.call_later(1, stores)
    stand.later(2, "next")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lab.advance, 2)
        await wait_all_tasks_blocked()
        assert stand.ran == [("stores", 1)]
        stand.store.release()
    assert stand.ran == [("stores", 1), ("kept", 1), ("next", 2)]


async def test_two_who_advance_the_clock_do_so_one_after_the_other(
    mock_clock: MockClock, stand: Stand, lab: LabClock
) -> None:
    stand.store.holding = True
    stand.clock.call_later(1, lambda: stand.turn.store("/a", b"1"))
    stand.later(3, "timer")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lab.advance, 2)
        nursery.start_soon(lab.advance, 2)
        await wait_all_tasks_blocked()
        assert (round(stand.clock.monotonic(), 3), stand.ran) == (1, [])
        stand.store.release()
    assert (lab.offset_ms, stand.ran) == (4000, [("timer", 3)])


async def test_frozen_or_not_is_as_it_was_wished_last(mock_clock: MockClock, stand: Stand, lab: LabClock) -> None:
    for wish in (lab.freeze, lab.resume):
        stand.store.holding = True
        stand.clock.call_later(1, lambda: stand.turn.store("/a", b"1"))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lab.advance, 2)
            await wait_all_tasks_blocked()
            wish()
            assert stand.clock.frozen
            stand.store.release()
        assert stand.clock.frozen is lab.frozen is (wish == lab.freeze)


async def test_a_clock_that_is_resumed_on_the_way_does_not_catch_up(
    mock_clock: MockClock, stand: Stand, lab: LabClock
) -> None:
    lab.freeze()
    await pass_by(mock_clock, 100)
    stand.store.holding = True
    stand.clock.call_later(1, lambda: stand.turn.store("/a", b"1"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lab.advance, 2)
        await wait_all_tasks_blocked()
        lab.resume()
        stand.store.release()
    assert lab.offset_ms == -98_000


async def test_an_advance_that_is_cancelled_leaves_a_clock_that_goes(
    mock_clock: MockClock, stand: Stand, lab: LabClock
) -> None:
    stand.store.holding = True
    stand.clock.call_later(1, lambda: stand.turn.store("/a", b"1"))
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lab.advance, 10)
            await wait_all_tasks_blocked()
            scope.cancel()
    before = stand.clock.monotonic()
    await pass_by(mock_clock, 1)
    assert stand.clock.monotonic() == before + 1
    stand.store.release()
    await lab.advance(1)


async def test_a_clock_that_is_resumed_before_the_next_one_advances_it(
    mock_clock: MockClock, stand: Stand, lab: LabClock
) -> None:
    async def advance_and_resume() -> None:
        await lab.advance(2)
        lab.resume()

    async def go_back() -> None:
        with pytest.raises(ClockError):
            await lab.advance_to(0)

    stand.store.holding = True
    stand.clock.call_later(1, lambda: stand.turn.store("/a", b"1"))
    lab.freeze()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(advance_and_resume)
        await wait_all_tasks_blocked()
        nursery.start_soon(go_back)
        await wait_all_tasks_blocked()
        stand.store.release()
    assert (lab.frozen, stand.clock.frozen) == (False, False)


@pytest.mark.parametrize("frozen", [False, True])
async def test_timelines_join_and_leave_during_an_advance(
    mock_clock: MockClock, stand: Stand, lab: LabClock, frozen: bool
) -> None:
    lab.include("keep-alive")
    stand.clock.call_later(1, lambda: lab.include("token-expiry"))
    stand.clock.call_later(2, lambda: lab.exclude("keep-alive"))
    if frozen:
        lab.freeze()
    await lab.advance(5)
    assert (stand.clock.token_expiry.frozen, stand.clock.keep_alive.frozen) == (frozen, False)
    assert stand.clock.token_expiry.now_ms() == pytest.approx(lab.now_ms(), abs=1)
    assert stand.clock.keep_alive.wall() == pytest.approx(stand.clock.machine.wall(), abs=0.001)


@pytest.mark.parametrize("frozen", [False, True])
async def test_a_reset_ends_an_advance(mock_clock: MockClock, stand: Stand, lab: LabClock, frozen: bool) -> None:
    stand.store.holding = True
    stand.clock.call_later(1, lambda: stand.turn.store("/path", b""))
    stand.later(2, "never")
    if frozen:
        lab.freeze()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lab.advance, 5)
        await pass_by(mock_clock, 0.7)
        lab.reset()
        await pass_by(mock_clock, 0.2)
        stand.store.release()
    assert (lab.offset_ms, stand.clock.frozen, stand.ran) == (0, False, [])
    await lab.advance(5)
    assert (lab.offset_ms, [name for name, _ in stand.ran]) == (5000, ["never"])


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), 8000 * 366 * DAY])
async def test_the_clock_refuses_an_impossible_advance(mock_clock: MockClock, lab: LabClock, seconds: float) -> None:
    with pytest.raises(ClockError, match="cannot advance"):
        await lab.advance(seconds)
    assert lab.offset_ms == 0


async def test_the_clock_goes_to_a_time(mock_clock: MockClock, lab: LabClock) -> None:
    wanted = lab.now_ms() + 5000
    assert await lab.advance_to(wanted) == pytest.approx(5, abs=0.002)
    assert lab.now_ms() == wanted
    await lab.advance_to(wanted)  # this is no step back
    with pytest.raises(ClockError, match=r"cannot go back: that was 5\.000 seconds ago"):
        await lab.advance_to(wanted - 5000)


async def test_to_many_times_each_to_its_millisecond(mock_clock: MockClock, lab: LabClock) -> None:
    lab.freeze()
    times = [lab.now_ms() + 123_457 * number for number in range(1, 200)]
    for each in times:
        await lab.advance_to(each)
        assert lab.now_ms() == each


async def test_by_hardly_anything(mock_clock: MockClock, stand: Stand, lab: LabClock) -> None:
    stand.later(0, "now")
    await lab.advance(5e-324)
    assert stand.ran == [("now", 0)]


# running the next timer


async def test_the_next_timer_that_runs_once(mock_clock: MockClock, stand: Stand, lab: LabClock) -> None:
    stand.every(60, "check")
    for name, seconds in (("a", 100), ("b", 100), ("c", 200)):
        stand.later(seconds, name)
    assert [lab.next_in] == [100]
    assert await lab.run_next() == 100
    assert stand.ran == [("check", 60), ("a", 100), ("b", 100)]
    stand.ran.clear()
    assert await lab.run_next() == pytest.approx(100, abs=0.001)
    assert [name for name, _ in stand.ran] == ["check", "check", "c"]
    with pytest.raises(ClockError, match="no timer waits"):
        await lab.run_next()


async def test_time_goes_by_itself_when_nothing_happens(mock_clock: MockClock, stand: Stand, lab: LabClock) -> None:
    stand.later(DAY, "a")
    stand.later(2 * DAY, "b")
    for _ in range(2):
        lab.auto_advance = True
    await pass_by(mock_clock, IDLE - 0.001)
    stand.turn.finish()  # the broker did some work
    await pass_by(mock_clock, IDLE - 0.001)
    assert stand.ran == []
    await pass_by(mock_clock, IDLE + 0.001)
    assert stand.ran == [("a", DAY)]
    await pass_by(mock_clock, IDLE - 0.001)
    assert stand.ran == [("a", DAY)]
    await pass_by(mock_clock, IDLE + 0.001)
    assert [name for name, _ in stand.ran] == ["a", "b"]
    before = stand.clock.monotonic()
    await pass_by(mock_clock, 10)
    assert stand.clock.monotonic() == before + 10  # no timer waits: the clock runs at its normal speed
    lab.auto_advance = False
    assert not lab.auto_advance
    stand.later(5, "c")
    await pass_by(mock_clock, 1)
    assert len(stand.ran) == 2


async def test_by_itself_it_does_not_leave_what_can_be_written(
    mock_clock: MockClock, stand: Stand, lab: LabClock
) -> None:
    stand.later(2**63 / 1000, "never")
    lab.auto_advance = True
    for _ in range(100):
        await pass_by(mock_clock, 0.005)
    assert (lab.offset_ms, stand.ran) == (0, [])


async def test_by_itself_it_waits_for_what_is_not_kept_yet(mock_clock: MockClock, stand: Stand, lab: LabClock) -> None:
    stand.store.holding = True
    stand.clock.call_later(1, lambda: stand.turn.store("/a", b"1"))
    stand.later(2, "next")
    lab.freeze()
    lab.auto_advance = True
    for _ in range(5):
        await pass_by(mock_clock, IDLE + 0.001)
    assert (stand.ran, round(stand.clock.monotonic(), 3)) == ([], 1)
    stand.store.release()
    for _ in range(5):
        await pass_by(mock_clock, IDLE + 0.001)
    assert stand.ran == [("next", 2)]
    assert lab.frozen


# the machine's wall clock


@pytest.mark.parametrize("frozen", [False, True])
async def test_a_steered_clock_does_not_follow_the_machine_until_it_is_reset(
    mock_clock: MockClock, wall: Wall, stand: Stand, lab: LabClock, frozen: bool
) -> None:
    began = lab.now_ms()
    stand.clock.call_at(began + DAY * 1000, lambda: stand.note("timer"))
    if frozen:
        lab.freeze()
    await lab.advance(3600)
    wall.ahead += DAY
    await pass_by(mock_clock, 1)
    assert (lab.now_ms() - began) // 1000 == (3600 if frozen else 3601)
    assert stand.ran == []
    credentials = stand.clock.token_expiry.now_ms()
    assert credentials == began + DAY * 1000 + 1000
    lab.reset()
    assert (lab.now_ms(), lab.offset_ms) == (credentials, 0)
    wall.ahead += DAY
    assert lab.now_ms() == credentials + DAY * 1000
    await pass_by(mock_clock, 1)
    assert [name for name, _ in stand.ran] == ["timer"]


async def test_included_credentials_ask_the_machine_again_when_they_are_excluded(
    mock_clock: MockClock, wall: Wall, stand: Stand, lab: LabClock
) -> None:
    lab.include("token-expiry")
    lab.freeze()
    frozen = lab.now_ms()
    wall.ahead += DAY
    assert stand.clock.token_expiry.now_ms() == frozen
    lab.exclude("token-expiry")
    assert stand.clock.token_expiry.now_ms() == frozen + DAY * 1000
    wall.ahead += DAY
    assert stand.clock.token_expiry.now_ms() == frozen + 2 * DAY * 1000


# the timelines of keep-alive and token expiry


async def test_keep_alive_and_expiry_have_their_own_time(mock_clock: MockClock, stand: Stand, lab: LabClock) -> None:
    stand.clock.keep_alive.every(30, lambda: stand.note("ping"))
    await lab.advance(DAY)
    assert (stand.ran, lab.included) == ([], [])
    assert stand.clock.token_expiry.now_ms() == lab.now_ms() - DAY * 1000
    lab.freeze()
    await pass_by(mock_clock, 30)
    assert [name for name, _ in stand.ran] == ["ping"]
    stand.ran.clear()
    lab.include("token-expiry", "keep-alive")
    assert lab.included == ["keep-alive", "token-expiry"]
    assert stand.clock.token_expiry.now_ms() == lab.now_ms()
    await pass_by(mock_clock, 3000)
    assert stand.ran == []
    await lab.advance(29.9)
    assert stand.ran == []
    await lab.advance(DAY)
    assert [name for name, _ in stand.ran] == ["ping"]  # once: the client has no time to answer
    lab.exclude("keep-alive")
    assert stand.clock.keep_alive.monotonic() == pytest.approx(30 + 29.9 + DAY, abs=0.001)
    await pass_by(mock_clock, 30)
    assert len(stand.ran) == 2
    with pytest.raises(ClockError, match="'ttl' cannot be included in the clock; these can: keep-alive, token-expiry"):
        lab.include("ttl")


async def test_the_machines_own_timers_obey_nobody(mock_clock: MockClock, stand: Stand, lab: LabClock) -> None:
    stand.clock.machine.call_later(5, lambda: stand.note("retry"))
    lab.freeze()
    await lab.advance(10)
    assert stand.ran == []
    await pass_by(mock_clock, 5)
    assert [name for name, _ in stand.ran] == ["retry"]


async def test_a_reset_has_the_machines_time_again(mock_clock: MockClock, stand: Stand, lab: LabClock) -> None:
    stand.later(DAY + 10, "timer")
    lab.freeze()
    lab.auto_advance = True
    lab.include("keep-alive")
    await lab.advance(DAY)
    lab.reset()
    assert (lab.frozen, lab.auto_advance, lab.included, lab.offset_ms) == (False, False, [], 0)
    await pass_by(mock_clock, 9.9)
    assert stand.ran == []
    await pass_by(mock_clock, 0.1)
    assert [name for name, _ in stand.ran] == ["timer"]  # after the time that it had left
