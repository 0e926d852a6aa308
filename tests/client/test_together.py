"""Calls at once, and what becomes of the others when one fails."""

from __future__ import annotations

import anyio
import pytest

from pulsarium.client.errors import ConnectError, TopicTerminated
from pulsarium.client.together import together
from tests.client.both import run_on


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
def test_all_are_done(all_or_none: bool) -> None:
    async def test() -> None:
        calls = Calls()
        await together([calls.slow, calls.quick], all_or_none=all_or_none)
        assert calls.done == ["quick", "slow"]
        await together([], all_or_none=all_or_none)

    run_on("trio", test, jump=True)


@pytest.mark.parametrize(("all_or_none", "seconds", "done"), [(False, 10, ["slow"]), (True, 1, [])])
def test_the_first_failure_is_raised(all_or_none: bool, seconds: float, done: list[str]) -> None:
    async def test() -> None:
        calls = Calls()
        start = anyio.current_time()
        with pytest.raises(ConnectError, match="first"):
            await together([calls.failing_later, calls.failing, calls.slow], all_or_none=all_or_none)
        assert anyio.current_time() - start == pytest.approx(seconds)
        assert calls.done == done

    run_on("trio", test, jump=True)
