"""Tests of the limits of messages without a receipt."""

from __future__ import annotations

import anyio
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.client.producer.room import Limit
from tests.client.both import run_on
from tests.client.hostile.clocks import on_both


def test_without_a_limit_there_is_always_room() -> None:
    memory = Limit()
    assert memory.acquire_nowait(2**40)
    assert memory.acquire_nowait(2**40)


def test_a_message_may_exceed_the_memory_limit_when_some_memory_is_free() -> None:
    memory = Limit(10)
    assert memory.acquire_nowait(9)
    assert memory.acquire_nowait(50)
    assert not memory.acquire_nowait(1)
    assert memory.acquire_nowait(0)
    memory.release(50)
    assert memory.acquire_nowait(1)


@on_both
async def test_waiting_senders_get_memory_in_turn() -> None:
    memory = Limit(1)
    order: list[int] = []
    memory.acquire_nowait(1)

    async def wait(number: int) -> None:
        await memory.acquire(1)
        order.append(number)

    async with anyio.create_task_group() as tasks:
        for number in range(3):
            tasks.start_soon(wait, number)
            await anyio.wait_all_tasks_blocked()
        for expected in ([0], [0, 1], [0, 1, 2]):
            assert not memory.acquire_nowait(1)  # others waited before
            memory.release(1)
            await anyio.wait_all_tasks_blocked()
            assert order == expected
    memory.release(1)
    assert memory.used == 0


@on_both
async def test_released_memory_lets_all_fitting_waiters_go_on() -> None:
    memory = Limit(2)
    order: list[int] = []
    memory.acquire_nowait(2)

    async def wait(number: int) -> None:
        await memory.acquire(1)
        order.append(number)

    async with anyio.create_task_group() as tasks:
        for number in range(3):
            tasks.start_soon(wait, number)
            await anyio.wait_all_tasks_blocked()
        memory.release(2)
        await anyio.wait_all_tasks_blocked()
        assert sorted(order) == [0, 1]
        memory.release(1)
    assert sorted(order) == [0, 1, 2]


@given(st.lists(st.tuples(st.integers(1, 5), st.booleans(), st.booleans()), max_size=20), st.integers(1, 8))
def test_nothing_is_lost_by_cancelling(users: list[tuple[int, bool, bool]], limit: int) -> None:
    async def test() -> None:
        memory = Limit(limit)
        scopes = [anyio.CancelScope() for _ in users]

        async def use(scope: anyio.CancelScope, size: int) -> None:
            with scope:
                await memory.acquire(size)
                try:
                    await anyio.lowlevel.checkpoint()
                finally:
                    memory.release(size)

        async with anyio.create_task_group() as tasks:
            for scope, (size, cancelled, at_once) in zip(scopes, users, strict=True):
                tasks.start_soon(use, scope, size)
                if not at_once:
                    await anyio.lowlevel.checkpoint()
                if cancelled:
                    scope.cancel()
        assert memory.used == 0
        assert memory.acquire_nowait(limit)

    run_on("trio", test)
