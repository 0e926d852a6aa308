"""A trio loop in a thread of its own, for code that cannot await."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, suppress
from queue import Empty, SimpleQueue
from typing import Any, Generic, ParamSpec, TypeVar

import trio

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

NOTICE_SECONDS = 0.5  # a Ctrl-C that comes just before a thread blocks is noticed when it wakes up


class BrokerEnded(RuntimeError):
    """Something was asked of a broker whose thread runs no more."""

    def __init__(self) -> None:
        super().__init__("the broker has ended")


class LoopThread(Generic[T]):
    """Holds what an asynchronous context manager opens, from `start` to `stop`. Any thread may ask something of it.

    A daemon: a program that forgets it can still end.
    """

    def __init__(self, open: Callable[[], AbstractAsyncContextManager[T]], name: str) -> None:
        self._open = open
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._ready = threading.Event()
        self._opened: T
        self._nursery: trio.Nursery
        self._fault: BaseException | None = None
        self._asked: set[Future[Any]] = set()  # what somebody waits for
        self._stop = trio.Event()
        self._abandoned = False  # before it was ready
        self._token: trio.lowlevel.TrioToken | None = None

    # life

    def start(self) -> T:
        """Open it, and raise what that raises."""
        self._thread.start()
        try:
            self._ready.wait()
        except BaseException:  # Ctrl-C
            self._abandoned = True
            self.stop()
            raise
        if self._fault is not None:
            self.stop()
        return self._opened

    def stop(self) -> None:
        """Close it, and wait until that is done. Raises what ended the loop, unless it ended in order."""
        with suppress(BrokerEnded):
            self._soon(self._stop.set)
        self._thread.join()
        fault, self._fault = self._fault, None
        if fault is not None:
            raise fault

    def _run(self) -> None:
        try:
            trio.run(self._main)
        except BaseException as error:
            self._fault = _only(error)
        for future in list(self._asked):
            _answer(future, BrokerEnded())
        self._ready.set()

    async def _main(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        if self._abandoned:
            return
        async with self._open() as self._opened, trio.open_nursery() as self._nursery:
            self._ready.set()
            await self._stop.wait()
            self._nursery.cancel_scope.cancel()

    # what others ask of it

    def call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a plain function on the loop; what it returns or raises."""
        if threading.current_thread() is self._thread:
            return function(*args, **kwargs)
        future: Future[R] = Future()

        def run() -> None:
            try:
                result = function(*args, **kwargs)
            except BaseException as error:
                _answer(future, error)
            else:
                future.set_result(result)

        return self._result(future, run)

    def wait(self, timeout: float | None, function: Callable[P, Awaitable[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a coroutine function on the loop; what it returns or raises. After `timeout` seconds (None: never) it is
        cancelled, and TimeoutError raised."""
        if threading.current_thread() is self._thread:
            raise RuntimeError("this waits for the broker, and was called from the broker's own thread")
        future: Future[R] = Future()
        scope = trio.CancelScope()

        async def run() -> None:
            try:
                with scope:
                    future.set_result(await function(*args, **kwargs))
            except Exception as error:
                _answer(future, _only(error))

        def ask() -> None:
            try:
                self._nursery.start_soon(run)
            except RuntimeError:  # it is being closed
                _answer(future, BrokerEnded())

        try:
            return self._result(future, ask, timeout)
        except BaseException:
            if not future.done():
                with suppress(BrokerEnded):
                    self._soon(scope.cancel)
            raise

    def _result(self, future: Future[R], ask: Callable[[], None], timeout: float | None = None) -> R:
        # A queue, for Ctrl-C may come at any moment, also when a future's own lock has just been taken.
        answered: SimpleQueue[Future[R]] = SimpleQueue()
        future.add_done_callback(answered.put)
        self._asked.add(future)
        try:
            self._soon(ask)
            end = math.inf if timeout is None else time.monotonic() + timeout
            while (left := min(NOTICE_SECONDS, end - time.monotonic())) > 0:
                with suppress(Empty):
                    answered.get(timeout=left)
                    break
            else:
                raise TimeoutError
            return future.result()
        finally:
            self._asked.discard(future)

    def _soon(self, function: Callable[[], object]) -> None:
        if self._token is None:
            raise BrokerEnded
        try:
            self._token.run_sync_soon(function)
        except trio.RunFinishedError:
            raise BrokerEnded from self._fault


def _answer(future: Future[Any], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)


def _only(error: BaseException) -> BaseException:
    """The one exception that a group is about; nurseries wrap what ends them."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
