"""Calls at once: when one fails, the others go on or are canceled."""

from __future__ import annotations

import anyio
import pytest
from trio.testing import MockClock

from pulsarium.client.errors import ConnectError, TopicTerminated
from pulsarium.client.together import together


class Calls:
    def __init__(self) -> None:
        self.done: list[str] = []

    async def quick(self) -> None:
        self.done.append("quick")

    async def slow(self) -> None:
        await anyio.sleep(10)
        self.done.append("slow")

    async def failing(self) -> None:
        await anyio.sleep(1)
        raise ConnectError("first")

    async def failing_later(self) -> None:
        await anyio.sleep(2)
        raise TopicTerminated("second")


@pytest.mark.parametrize("all_or_none", [False, True])
async def test_all_calls_at_once_are_done(autojump_clock: MockClock, all_or_none: bool) -> None:
    calls = Calls()
    await together([calls.slow, calls.quick], all_or_none=all_or_none)
    assert calls.done == ["quick", "slow"]
    await together([], all_or_none=all_or_none)


@pytest.mark.parametrize(("all_or_none", "seconds", "done"), [(False, 10, ["slow"]), (True, 1, [])])
async def test_the_first_failure_is_raised(
    autojump_clock: MockClock, all_or_none: bool, seconds: float, done: list[str]
) -> None:
    calls = Calls()
    start = anyio.current_time()
    with pytest.raises(ConnectError, match="first"):
        await together([calls.failing_later, calls.failing, calls.slow], all_or_none=all_or_none)
    assert anyio.current_time() - start == pytest.approx(seconds)
    assert calls.done == done
