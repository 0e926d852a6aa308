from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import pytest
import trio
import trio.testing

from pulsarium.broker.storage.interface import StorageError
from pulsarium.broker.storage.worker import REMEMBERED, Worker


class Question(NamedTuple):
    number: int
    done: Callable[[object], None]


class Echo(Worker[Question]):
    """A worker that answers each question with its number, once `may_answer` is set."""

    def __init__(self) -> None:
        super().__init__("storage echo")
        self.may_answer = threading.Event()
        self.pieces_left = 0
        self.between: list[str] = []
        self.closed = 0

    def serve(self, request: Question) -> None:
        assert self.may_answer.wait(30)
        self.between.append(f"answer {request.number}")
        self.hand_back([partial(request.done, request.number)])

    def background(self) -> bool:
        if self.pieces_left:
            self.pieces_left -= 1
            self.between.append("piece")
            return True
        return False

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
async def echo() -> Echo:
    return Echo()


async def test_requests_are_answered_in_order_and_background_work_fills_the_gaps(echo: Echo) -> None:
    answers: list[object] = []
    echo.pieces_left = 2
    for number in range(3):
        echo.submit(Question(number, answers.append))
    echo.may_answer.set()
    echo.start()
    await echo.stop(10)
    assert answers == [0, 1, 2]
    assert echo.between[:3] == ["answer 0", "answer 1", "answer 2"]  # answers come before pieces
    assert echo.closed >= 1


async def test_stopping_takes_its_grace_and_no_longer(echo: Echo, nursery: trio.Nursery) -> None:
    answers: list[object] = []
    for number in range(3):
        echo.submit(Question(number, answers.append))
    echo.start()
    nursery.start_soon(echo.stop, 0)
    await trio.testing.wait_all_tasks_blocked()
    echo.submit(Question(3, answers.append))
    echo.may_answer.set()
    await echo.finished.wait()
    await trio.testing.wait_all_tasks_blocked()
    # The worker may have begun the first request. All others are refused, in their order.
    assert all(isinstance(answer, StorageError) for answer in answers[1:])
    assert len(answers) == 4


async def test_stopping_is_not_cancelled(echo: Echo) -> None:
    answers: list[object] = []
    echo.may_answer.set()
    echo.submit(Question(0, answers.append))
    echo.start()
    with trio.CancelScope() as scope:
        scope.cancel()
        await echo.stop(10)
    assert answers == [0]


async def test_one_wake_up_for_many_answers(echo: Echo) -> None:
    wake_ups = 0
    original = trio.lowlevel.current_trio_token()

    class CountingToken:
        def run_sync_soon(self, *arguments: object) -> None:
            nonlocal wake_ups
            wake_ups += 1
            original.run_sync_soon(*arguments)  # type: ignore[arg-type]

    echo.start()
    echo._token = CountingToken()  # type: ignore[assignment]
    answers: list[object] = []
    answered = trio.Event()
    echo.hand_back([*(partial(answers.append, number) for number in range(100)), answered.set])
    await answered.wait()
    assert answers == list(range(100))
    assert wake_ups == 1
    await echo.stop(10)


def test_an_event_loop_that_is_gone_stops_no_thread(caplog: pytest.LogCaptureFixture) -> None:
    echo = Echo()
    trio.run(trio.lowlevel.checkpoint)

    async def start() -> None:
        echo.start()

    trio.run(start)
    echo.may_answer.set()
    echo.submit(Question(0, lambda answer: None))
    echo._inbox.put(None)
    echo._thread.join(30)
    assert not echo._thread.is_alive()
    assert "a result is dropped" in caplog.text


async def test_the_memory_of_reported_errors_is_bounded(echo: Echo, caplog: pytest.LogCaptureFixture) -> None:
    """A damaged range has one line in the log."""
    for number in range(3 * REMEMBERED):
        for _ in range(2):
            echo.report(StorageError(f"range {number}"), f"range {number}")
    assert len(caplog.records) == 3 * REMEMBERED
    assert len(echo._last_errors) <= REMEMBERED
