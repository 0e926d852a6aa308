"""A loop in a thread: calls, errors that it hands over, and its end."""

from __future__ import annotations

import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest
import trio

from pulsarium.broker.testing.thread import BrokerEnded, LoopThread


class Opened:
    """A resource that is open while the loop runs."""

    def __init__(self) -> None:
        self.open = True
        self.fail: Callable[[Exception], None]


@asynccontextmanager
async def opening() -> AsyncIterator[Opened]:
    opened = Opened()
    async with trio.open_nursery() as nursery:

        async def fail(error: Exception) -> None:
            raise error

        opened.fail = lambda error: nursery.start_soon(fail, error)
        try:
            yield opened
        finally:
            opened.open = False
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def refusing() -> AsyncIterator[Opened]:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_refuse)
        await trio.Event().wait()
    yield Opened()


async def _refuse() -> None:
    raise OSError("no room")


@pytest.fixture
def thread() -> Iterator[LoopThread[Opened]]:
    thread = LoopThread(opening, "a loop of the tests")
    thread.start()
    yield thread
    thread.stop()


def running(name: str = "a loop of the tests") -> bool:
    return any(each.name == name for each in threading.enumerate())


def test_the_context_is_open_until_the_thread_stops() -> None:
    thread = LoopThread(opening, "a loop of the tests")
    opened = thread.start()
    assert (opened.open, running()) == (True, True)
    thread.stop()
    assert (opened.open, running()) == (False, False)
    thread.stop()


def test_errors_that_prevent_opening_are_raised_unchanged() -> None:
    thread = LoopThread(refusing, "a loop of the tests")
    with pytest.raises(OSError, match="no room"):
        thread.start()
    assert not running()


def test_calls_return_and_raise(thread: LoopThread[Opened]) -> None:
    assert thread.call(trio.current_time) > 0
    assert thread.call(threading.current_thread).name == "a loop of the tests"
    with pytest.raises(ZeroDivisionError):
        thread.call(divmod, 1, 0)
    assert thread.call(divmod, 7, 2) == (3, 1)


def test_waiting_calls_return_raise_and_time_out(thread: LoopThread[Opened]) -> None:
    async def twice(number: int) -> int:
        await trio.lowlevel.checkpoint()
        return 2 * number

    async def groups() -> None:
        async with trio.open_nursery():
            raise ZeroDivisionError

    cancelled = threading.Event()

    async def for_ever() -> None:
        try:
            await trio.sleep_forever()
        finally:
            cancelled.set()

    assert thread.wait(30, twice, 2) == 4
    with pytest.raises(ZeroDivisionError):
        thread.wait(30, groups)
    with pytest.raises(TimeoutError):
        thread.wait(0.001, for_ever)
    assert cancelled.wait(30)
    assert thread.wait(30, twice, 3) == 6


def test_code_on_the_thread_may_call_it_but_not_wait_for_it(thread: LoopThread[Opened]) -> None:
    assert thread.call(lambda: thread.call(divmod, 7, 2)) == (3, 1)
    with pytest.raises(RuntimeError, match="own thread"):
        thread.call(lambda: thread.wait(30, trio.sleep, 0))


def test_code_on_another_loop_may_call_it(thread: LoopThread[Opened]) -> None:
    async def main() -> tuple[int, int]:
        await trio.lowlevel.checkpoint()
        return thread.call(divmod, 7, 2)

    assert trio.run(main) == (3, 1)


def test_a_fault_in_the_loop_comes_out_at_the_end() -> None:
    thread = LoopThread(opening, "a loop of the tests")
    opened = thread.start()
    with pytest.raises(BrokerEnded):
        thread.wait(30, lambda: _fail_and_wait(opened))
    with pytest.raises(BrokerEnded) as ended:
        thread.call(trio.current_time)
    assert isinstance(ended.value.__cause__, LookupError)
    with pytest.raises(LookupError, match="a bug"):
        thread.stop()
    assert not running()


async def _fail_and_wait(opened: Opened) -> None:
    opened.fail(LookupError("a bug"))
    await trio.sleep_forever()


def test_a_call_to_a_loop_that_has_ended_says_so() -> None:
    thread = LoopThread(opening, "a loop of the tests")
    with pytest.raises(BrokerEnded):
        thread.call(trio.current_time)
    thread.start()
    thread.stop()
    with pytest.raises(BrokerEnded, match="the broker has ended"):
        thread.call(trio.current_time)


def test_ctrl_c_while_it_opens_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: threading.Event, timeout: float | None = None) -> bool:
        raise KeyboardInterrupt

    thread: LoopThread[Opened] = LoopThread(opening, "a loop of the tests")
    monkeypatch.setattr(thread._ready, "wait", interrupted.__get__(thread._ready))
    with pytest.raises(KeyboardInterrupt):
        thread.start()
    assert not running()


@pytest.mark.usefixtures("heeded")
def test_ctrl_c_just_before_it_waits_is_noticed(thread: LoopThread[Opened]) -> None:
    """The system may deliver the signal to another thread, and does not wake the waiting one."""

    async def press() -> None:
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        await trio.sleep_forever()

    with pytest.raises(KeyboardInterrupt):
        thread.wait(1000, press)
    assert thread.call(divmod, 7, 2) == (3, 1)


def test_a_call_during_the_close_is_told_that_the_thread_has_ended() -> None:
    closing, go_on = threading.Event(), threading.Event()

    @asynccontextmanager
    async def slow() -> AsyncIterator[None]:
        yield
        closing.set()
        await trio.to_thread.run_sync(go_on.wait)

    thread = LoopThread(slow, "a loop of the tests")
    thread.start()
    stopping = threading.Thread(target=thread.stop)
    stopping.start()
    assert closing.wait(30)
    with pytest.raises(BrokerEnded):
        thread.wait(30, trio.sleep, 0)
    assert thread.call(divmod, 7, 2) == (3, 1)
    go_on.set()
    stopping.join()
    thread.stop()  # raises the error that ended the loop, if one did
