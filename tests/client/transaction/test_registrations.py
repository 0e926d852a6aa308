from __future__ import annotations

import anyio
import pytest

from pulsarium.client.transaction.transaction import Registrations
from tests.client.hostile.clocks import on_both


@on_both
async def test_once_and_in_the_order_of_the_calls() -> None:
    registrations, made, order = Registrations(), [], list[int]()

    async def register() -> None:
        await anyio.sleep(1)
        made.append("a")

    async def call(number: int) -> None:
        await anyio.sleep(number / 100)
        await registrations.once("a", register)
        order.append(number)

    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(call, number)
    await registrations.once("a", register)
    assert (made, order) == (["a"], [0, 1, 2, 3, 4])


@on_both
async def test_what_failed_is_tried_by_the_next() -> None:
    registrations, tries = Registrations(), list[int]()

    async def register() -> None:
        tries.append(1)
        await anyio.lowlevel.checkpoint()
        if len(tries) == 1:
            raise ZeroDivisionError

    async def fail() -> None:
        with pytest.raises(ZeroDivisionError):
            await registrations.once("a", register)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(fail)
        await anyio.lowlevel.checkpoint()
        tasks.start_soon(registrations.once, "a", register)
    await registrations.once("a", register)
    await registrations.once("b", register)
    assert len(tries) == 3
