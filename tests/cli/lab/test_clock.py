"""`pulsarium clock`, against a broker of this process."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from pulsarium.broker.lab import Lab
from pulsarium.cli.durations import UNITS, Duration, spoken
from tests.cli.admin.live import live
from tests.cli.lab.line import LabLine

DAY = 86_400


@pytest.fixture
async def clock() -> AsyncIterator[LabLine]:
    async with live() as here:
        yield LabLine(here, "clock")


async def test_the_clock_is_advanced_by_a_week_and_reset(clock: LabLine) -> None:
    assert (await clock.said("show")).endswith("Z, the machine's time, no timer waits\n")
    said = await clock.said("advance", "7d")
    assert said.startswith("advanced by 7d\n")
    assert said.endswith("Z, 7d ahead of the machine's clock, no timer waits\n")
    lab = clock.live.bed.broker.cluster.attached(Lab)
    assert lab.clock.offset_ms == 7 * DAY * 1000
    assert (await clock.said("reset")).endswith("Z, the machine's time, no timer waits\n")


async def test_the_clock_of_a_namespace(clock: LabLine) -> None:
    assert "Z, the machine's time, the broker's clock," in await clock.said("--namespace", "public/default", "show")
    assert "7d ahead of" in await clock.said("--namespace", "public/default", "advance", "7d")
    assert "the machine's time, namespaces with their own time: public/default," in await clock.said("show")
    assert "the broker's clock" in await clock.said("--namespace", "public/default", "reset")
    failed = await clock.run("--namespace", "public/none", "freeze")
    assert (failed.exit_code, "the namespace public/none does not exist" in failed.stderr) == (1, True)


async def test_standing_still_and_stepping(clock: LabLine) -> None:
    ran: list[int] = []
    clock.live.bed.broker.clock.call_later(100, lambda: ran.append(1))
    assert "frozen" in await clock.said("freeze")
    assert "next timer in 1m 4" not in await clock.said("run-next")
    assert ran == [1]
    failed = await clock.run("run-next")
    why = "the clock has no timer to run: no timer waits"
    assert (failed.exit_code, failed.stderr.splitlines()[-1]) == (1, f"pulsarium: {why}")
    assert "frozen" not in await clock.said("resume")


async def test_a_time_that_is_none_is_told_with_its_option(clock: LabLine) -> None:
    failed = await clock.run("advance", "--to", "yesterday")
    assert failed.exit_code == 1
    assert failed.stderr.splitlines()[-1].startswith("pulsarium: --to yesterday: ")


async def test_the_command_takes_the_clock_to_a_time(clock: LabLine) -> None:
    state = json.loads(await clock.said("freeze", "--json"))
    assert state["frozen"] is True
    state = json.loads(await clock.said("advance", "--to", "2190-01-01T00:00:00+01:00", "--json"))
    assert state["now"] == "2189-12-31T23:00:00.000Z"
    assert state["nextInSeconds"] is None
    assert (await clock.run("advance", "--to", "2026-01-01")).exit_code == 1
    assert (await clock.run("advance", "--to", "tomorrow")).exit_code == 1


async def test_the_clock_is_switched_by_a_command(clock: LabLine) -> None:
    assert "auto-advance" in await clock.said("auto", "on")
    assert "auto-advance" not in await clock.said("auto", "off")
    assert "keep-alive included, token-expiry included" in await clock.said("include", "keep-alive", "token-expiry")
    assert "keep-alive included, no timer" in await clock.said("exclude", "token-expiry")


@pytest.mark.parametrize("arguments", [["advance"], ["advance", "1d", "--to", "2030-01-01"], ["advance", "soon"]])
async def test_invalid_clock_commands_are_refused(clock: LabLine, arguments: list[str]) -> None:
    result = await clock.run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("5m", 300), ("1.5h", 5400), ("7d", 7 * DAY), ("1d12h", 1.5 * DAY), ("250ms", 0.25)],
)
def test_durations_of_the_clock_are_read(text: str, seconds: float) -> None:
    assert Duration().convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "-1", "d", "7 d", "1x", "1d-", "d1"])
def test_a_text_that_is_no_duration_is_refused(text: str) -> None:
    from click import BadParameter

    with pytest.raises(BadParameter, match="is no duration"):
        Duration().convert(text, None, None)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (0.0004, "0s"), (59.9996, "1m"), (UNITS["d"] + 3661.5, "1d 1h 1m 1.5s")]
)
def test_seconds_are_shown_in_days_hours_and_minutes(seconds: float, text: str) -> None:
    assert spoken(seconds) == text
