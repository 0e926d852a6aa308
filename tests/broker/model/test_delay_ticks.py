"""Alarms of delayed messages go off at times that were calculated by hand."""

from __future__ import annotations

import pytest

from pulsarium.broker.model.delay_ticks import DelayTicks


@pytest.mark.req("B-21")
@pytest.mark.parametrize(
    ("tick_ms", "now", "seconds", "at"),
    [
        (1000, 100.25, 0.0, 101.25),
        (1000, 100.25, 0.999, 101.25),
        (1000, 100.25, 1.0, 102.25),  # a message that is due exactly at a tick waits for the next one
        (1000, 100.5, 0.75, 102.25),
        (1000, 100.5, 0.7, 101.25),
        (100, 100.25, 0.25, 100.55),
        (5000, 101.25, 3.9, 105.25),
        (5000, 101.25, 4.1, 110.25),
    ],
)
def test_an_alarm_goes_off_at_the_first_tick_after_its_time(
    tick_ms: int, now: float, seconds: float, at: float
) -> None:
    ticks = DelayTicks(tick_ms)
    ticks.after(100.25, 60.0)
    assert ticks.after(now, seconds) == pytest.approx(at)


@pytest.mark.req("B-21")
def test_the_first_alarm_begins_the_ticks() -> None:
    assert DelayTicks(1000).after(7.125, 1.6) == pytest.approx(9.125)
    assert DelayTicks(1000).after(7.875, 1.6) == pytest.approx(9.875)


@pytest.mark.req("B-21")
def test_ticks_stay_exact_far_from_their_begin() -> None:
    ticks = DelayTicks(1000)
    ticks.after(0.1, 1.0)
    for number in range(1, 10_000_000, 99_991):
        assert ticks.after(number + 0.1, 1.0) == pytest.approx(number + 2.1, abs=1e-6)
