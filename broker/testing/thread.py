"""Run a trio loop in its own thread, for code that cannot await."""

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

NOTICE_SECONDS = 0.5  # longest time until a waiting thread notices a Ctrl-C


class BrokerEnded(RuntimeError):
    """A call to a broker whose thread has ended."""

    def __init__(self) -> None:
        super().__init__("the broker has ended")


class LoopThread(Generic[T]):
    """Hold an asynchronous context manager open from `start` to `stop`, in a thread of its own.

    Any thread may call functions in that thread. It is a daemon, so that a program can end without `stop`.
    """

    def __init__(self, open: Callable[[], AbstractAsyncContextManager[T]], name: str) -> None:
        self._open = open
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._ready = threading.Event()
        self._opened: T
        self._nursery: trio.Nursery
        self._fault: BaseException | None = None
        self._asked: set[Future[Any]] = set()  # calls that wait for their result
        self._stop = trio.Event()
        self._abandoned = False  # whether `start` was interrupted
        self._token: trio.lowlevel.TrioToken | None = None

    # life

    def start(self) -> T:
        """Start the thread, open the context manager, and return its result. Raise any error of opening."""
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
        """Close the context manager, and wait until it is closed. Raise the error that ended the loop, if any."""
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

    # calls

    def call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a plain function in the loop. Return its result, or raise its error."""
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
        """Run a coroutine function in the loop. Return its result, or raise its error.

        Cancel the function after `timeout` seconds (None: never), and raise `TimeoutError`.
        """
        if threading.current_thread() is self._thread:
            raise RuntimeError("this call would block the broker's own thread, which it waits for: call from another")
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
            except RuntimeError:  # the nursery is closed
                _answer(future, BrokerEnded())

        try:
            return self._result(future, ask, timeout)
        except BaseException:
            if not future.done():
                with suppress(BrokerEnded):
                    self._soon(scope.cancel)
            raise

    def _result(self, future: Future[R], ask: Callable[[], None], timeout: float | None = None) -> R:
        # A queue, because a Ctrl-C could interrupt a future while its own lock is held.
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
    """Return the only exception of nested groups, because nurseries wrap the error that ends them."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
