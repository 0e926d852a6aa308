"""The order in which an inbox serves its queues, and the errors that it raises to waiting callers."""

from __future__ import annotations

from typing import cast

import anyio
import pytest

from pulsarium.client.consumer.inbox import Inbox
from pulsarium.client.consumer.receiver import Receiver
from pulsarium.client.errors import AlreadyClosed, PulsarError, TopicNotFound
from tests.client.hostile.clocks import on_both


class Queue:
    """A stub of a receiver."""

    def __init__(self, inbox: Inbox, *contents: str) -> None:
        self.contents = list(contents)
        self.error: PulsarError | None = None
        self.end_of_topic = False
        self._inbox = inbox
        inbox.add(self.itself)

    @property
    def itself(self) -> Receiver:
        return cast(Receiver, self)

    def __len__(self) -> int:
        return len(self.contents)

    def take(self) -> str:
        return self.contents.pop(0)

    def wake(self) -> None:
        self._inbox.wake(self.itself)


async def all_of(inbox: Inbox) -> str:
    found = ""
    while inbox:
        assert await inbox.filled()
        found += cast(str, inbox.take())
    return found


@on_both
async def test_topics_take_turns_in_the_inbox() -> None:
    inbox = Inbox()
    for contents in ("abc", "d", "", "ef"):
        Queue(inbox, *contents)
    assert await all_of(inbox) == "adebfc"


@on_both
async def test_empty_queues_are_passed_over() -> None:
    inbox = Inbox()
    first, second, gone = Queue(inbox, "a", "b"), Queue(inbox, "c"), Queue(inbox, "d")
    first.contents.clear()
    inbox.remove(gone.itself)
    gone.wake()
    assert await all_of(inbox) == "c"
    first.contents.append("e")
    assert not inbox
    first.wake()
    second.wake()
    assert await all_of(inbox) == "e"


async def waiting(inbox: Inbox, *, until_end: bool = False) -> bool:
    with anyio.move_on_after(0):
        await inbox.filled(until_end=until_end)
        return False
    return True


@on_both
async def test_the_end_is_that_of_all() -> None:
    inbox = Inbox()
    assert await waiting(inbox, until_end=True)  # topics may still be added
    one, other = Queue(inbox), Queue(inbox)
    one.end_of_topic = True
    assert await waiting(inbox, until_end=True)
    other.end_of_topic = True
    assert not await inbox.filled(until_end=True)
    assert await waiting(inbox)


@on_both
async def test_a_failure_is_told_once_nothing_is_left() -> None:
    inbox = Inbox()
    one, _ = Queue(inbox), Queue(inbox, "a")
    one.error = TopicNotFound("gone")
    one.wake()
    assert await all_of(inbox) == "a"
    for _ in range(2):
        with pytest.raises(TopicNotFound, match="gone") as caught:
            await inbox.arrival()
        assert caught.value is not one.error


@on_both
async def test_an_error_wakes_waiting_receivers() -> None:
    inbox = Inbox(forgiving=True)
    one = Queue(inbox)
    one.error = TopicNotFound("gone")  # does not affect other topics
    found: list[object] = []

    async def receive() -> None:
        try:
            await inbox.arrival()
            found.append(inbox.take())
        except AlreadyClosed as error:
            found.append(str(error))

    for event in ("message", "end"):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(receive)
            await anyio.wait_all_tasks_blocked()
            if event == "message":
                Queue(inbox, "a")
            else:
                inbox.fail(AlreadyClosed("closed"))
    assert found == ["a", "closed"]
