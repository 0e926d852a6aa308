"""Run the work of a store on a thread, and return results to the event loop."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import trio

from pulsarium.broker.logs import PartLog
from pulsarium.broker.storage import segments
from pulsarium.broker.storage.interface import DamagedEntriesError, ReadDone, StorageError
from pulsarium.broker.storage.pace import other_threads

R = TypeVar("R")


def attempt(work: Callable[[sqlite3.Connection], R], connection: sqlite3.Connection) -> R:
    """Return the result of `work`. Raise every error as `StorageError`."""
    try:
        return work(connection)
    except StorageError:
        raise
    except Exception as error:
        raise StorageError(str(error)) from error


log = PartLog("storage")

REMEMBERED = 1000  # texts of errors; later ones may be logged again
GRACE_SECONDS = 1.0  # seconds that a stopping store works on earlier requests
THREAD_ALIVE_SECONDS = 0.5  # between two checks of a thread while a caller waits


class WorkerRequest(Protocol):
    """A request to a worker."""

    @property
    def done(self) -> Callable[[StorageError], None]: ...


T = TypeVar("T", bound=WorkerRequest)


class Barrier:
    """A request that another thread waits for, until all earlier requests are served."""

    def __init__(self) -> None:
        self.finished = threading.Event()
        self.error: StorageError | None = None

    def done(self, error: StorageError | None) -> None:
        self.error = error
        self.finished.set()


class Worker(Generic[T]):
    """Serve requests in order on a thread of its own. Subclasses implement `serve`, which must not raise."""

    def __init__(self, name: str) -> None:
        self._inbox: SimpleQueue[T | None] = SimpleQueue()  # None: stop when the inbox is empty
        self._stopping = False
        self._deadline: float | None = None
        self._closed = False
        self._last_errors: dict[str, str] = {}  # by operation
        # not a daemon, so that the interpreter does not end during a commit
        self._thread = threading.Thread(target=self._main, name=name)

    @property
    def is_serving(self) -> bool:
        return self._deadline is None and self._thread.is_alive()

    def wait_until(self, barrier: Barrier) -> None:
        """Block until a submitted barrier is served. Raise `StorageError` on failure."""
        while not barrier.finished.wait(THREAD_ALIVE_SECONDS):
            if not self._thread.is_alive():
                raise StorageError(f"the {self._thread.name} thread has died")
        if barrier.error is not None:
            raise barrier.error

    # on the event loop

    def submit(self, request: T) -> None:
        """Submit a request, without blocking."""
        if self._closed:
            request.done(StorageError("the store is closed"))
        else:
            self._inbox.put(request)

    def start(self, ended: trio.Event | None = None) -> None:
        """Start the thread. `finished` and `ended` are set on the event loop when the thread has ended."""
        self._token = trio.lowlevel.current_trio_token()
        self.finished = trio.Event()
        self._events = [self.finished] if ended is None else [self.finished, ended]
        self._thread.start()

    async def stop(self, grace: float) -> None:
        """Serve earlier requests for `grace` seconds, refuse the rest, and end the thread."""
        if self._thread.ident is not None:
            # by the machine's clock, because the broker's clock may be frozen
            self._deadline = time.monotonic() + grace
            self._inbox.put(None)
            with trio.CancelScope(shield=True):
                await self.finished.wait()
            self._thread.join()
        self.abandon()

    def abandon(self) -> None:
        """Close without a thread, or after its end, and refuse the waiting requests. Later calls change nothing."""
        self._closed = True
        self.close()
        while (request := self.poll()) is not None:
            request.done(StorageError("the store is closed"))

    # on the thread

    def serve(self, request: T) -> None:
        """Serve a request, and `hand_back` its result."""
        raise NotImplementedError

    def background(self) -> bool:
        """Do a small piece of background work while no request waits. Return False when none is left."""
        return False

    def close(self) -> None:
        """Close what the worker owns.

        The thread calls this at its end, and the event loop once more, without effect.
        """

    def poll(self) -> T | None:
        """Return the next request if one waits, else None."""
        while not self._inbox.empty():
            request = self._inbox.get_nowait()
            if request is not None:
                return request
            self._stopping = True
        return None

    def hand_back(self, calls: Sequence[Callable[[], None]]) -> None:
        """Call `calls` on the event loop in order, after earlier ones, with one wake-up."""
        try:
            self._token.run_sync_soon(_call_all, calls)
        except trio.RunFinishedError:
            log.warning("a result is dropped: the event loop has ended", thread=self._thread.name)

    def report(self, error: Exception | None, what: str = "") -> None:
        """Log an error once until it changes, so that a full disk does not fill the log too.

        `what` names the operation, because reads may work while writes fail.
        """
        text, last = str(error or ""), self._last_errors.get(what, "")
        if text and text != last:
            log.error("storage fails", thread=self._thread.name, reason=text)
        elif last and not text:
            log.info("storage works again", thread=self._thread.name)
        if len(self._last_errors) >= REMEMBERED:
            self._last_errors.clear()
        self._last_errors[what] = text

    def _main(self) -> None:
        try:
            while self._serve_next():
                pass
        except BaseException as error:  # a bug, or a test's hook; the runner of the store sees `finished`
            log.error("a storage thread died: restart the broker", exception=error, thread=self._thread.name)
        finally:
            try:
                self.close()
            finally:
                self.hand_back([event.set for event in self._events])

    def _serve_next(self) -> bool:
        """Serve one request.

        A function of its own, because a local variable of the loop would keep the last request alive.
        """
        request = self._next()
        if request is None:
            return False
        if self._deadline is not None and time.monotonic() >= self._deadline:
            error = StorageError("the store closed before this was done")
            self.hand_back([partial(request.done, error)])
        else:
            other_threads.begin()
            try:
                self.serve(request)
            finally:
                other_threads.end()
        return True

    def _next(self) -> T | None:
        while True:
            if (request := self.poll()) is not None:
                return request
            if self._stopping:
                return None
            if not self.background():
                request = self._inbox.get()
                if request is not None:
                    return request
                self._stopping = True


def _call_all(calls: Sequence[Callable[[], None]]) -> None:
    for call in calls:
        try:
            call()
        except Exception as error:  # the other callers still need their answers
            log.error("a storage callback failed", exception=error)


class Job(NamedTuple):
    """A job of a worker. `done` receives the result of `work`, or the `StorageError`."""

    work: Callable[[sqlite3.Connection], Any]
    done: Callable[[Any], None]
    what: str = "read"  # the operation for `Worker.report`


class JobWorker(Worker[Job]):
    """Run jobs on a connection, and close the connection at the end."""

    def __init__(self, name: str, connection: sqlite3.Connection) -> None:
        super().__init__(name)
        self._connection = connection
        self._using = threading.Lock()  # guards the connection, which `now` uses on other threads

    def read(self, ledger_id: int, first: int, last: int, done: ReadDone) -> None:
        """Read the entries `first` to `last`, both included."""
        self.submit(Job(partial(segments.read, ledger_id=ledger_id, first=first, last=last), done))

    def now(self, work: Callable[[sqlite3.Connection], R]) -> R:
        """Do short work on the calling thread after the current job, and return its result.

        Raise `StorageError` on failure.
        """
        with self._using:
            if self._closed:
                raise StorageError("the store is closed")
            return attempt(work, self._connection)

    def serve(self, request: Job) -> None:
        with self._using:
            try:
                result = attempt(request.work, self._connection)
            except StorageError as error:
                result = error
        if isinstance(result, DamagedEntriesError):  # logged once, because damage says nothing about other reads
            self.report(result, str(result))
        else:
            self.report(result if isinstance(result, StorageError) else None, request.what)
        self.hand_back([partial(request.done, result)])

    def close(self) -> None:
        with self._using:
            self._connection.close()
