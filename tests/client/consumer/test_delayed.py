"""Entries that wait before they are handed over."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from pulsarium.client.consumer.delayed import Delayed, Entry
from tests.client.both import run_on

Steps = list[tuple[str, int, float]]


class Handed:
    """A recorder of the entries that were handed over, and of the time."""

    def __init__(self) -> None:
        self.began = anyio.current_time()
        self.over: list[tuple[float, set[Entry]]] = []

    def __call__(self, entries: set[Entry]) -> None:
        self.over.append((round(anyio.current_time() - self.began, 6), entries))


@pytest.mark.parametrize("end", [Delayed.clear, Delayed.close])
async def test_after_the_end_nothing_is_handed_over(autojump_clock: MockClock, end: Callable[[Delayed], None]) -> None:
    handed = Handed()
    with anyio.fail_after(100):
        async with anyio.create_task_group() as tasks:
            delayed = Delayed(tasks, handed)
            delayed.add((1, 1), 50)
            await anyio.sleep(1)
            end(delayed)
            if end is Delayed.clear:  # after `clear`, entries can be added again
                delayed.add((1, 2), 3)
    assert handed.over == ([(4, {(1, 2)})] if end is Delayed.clear else [])


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["add", "forget", "sleep", "before", "clear"]),
            st.integers(0, 4),
            st.sampled_from([0.0, 1.0, 2.5]),
        )
    )
)
def test_delays_are_what_a_plain_list_of_times_would_be(steps: Steps) -> None:
    run_on("trio", _compare, steps, jump=True)


async def _compare(steps: Steps) -> None:
    due: dict[Entry, float] = {}
    expected: list[tuple[float, Entry]] = []
    now = 0.0

    def pass_until(until: float) -> None:
        for entry, when in sorted(due.items(), key=lambda item: item[1]):
            if when <= until:
                expected.append((when, entry))
                del due[entry]

    handed = Handed()
    async with anyio.create_task_group() as tasks:
        delayed = Delayed(tasks, handed)
        for kind, number, delay in steps:
            entry = (1, number)
            if kind == "add":
                delayed.add(entry, delay)
                due[entry] = now + delay
            elif kind == "forget":
                delayed.forget(entry)
                due.pop(entry, None)
            elif kind == "before":
                delayed.forget_before(entry)
                due = {one: when for one, when in due.items() if one >= entry}
            elif kind == "clear":
                delayed.clear()
                due.clear()
            else:
                await anyio.sleep(0.7)  # never at a time when an entry is due
                now = round(now + 0.7, 6)
                pass_until(now)
            assert len(delayed) == len(due)
    pass_until(1e9)
    found = [(when, entry) for when, entries in handed.over for entry in entries]
    assert _rounded(found) == _rounded(expected)
    assert not delayed._queues


def _rounded(times: list[tuple[float, Entry]]) -> list[tuple[float, Entry]]:
    return sorted((round(when, 3), entry) for when, entry in times)
