"""A thread of a store, and the way back from it to the event loop."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import trio

from pulsarium.broker.logs import Log
from pulsarium.broker.storage import segments
from pulsarium.broker.storage.interface import DamagedEntriesError, ReadDone, StorageError

R = TypeVar("R")


def attempt(work: Callable[[sqlite3.Connection], R], connection: sqlite3.Connection) -> R:
    """What `work` returns. Raises nothing but StorageError."""
    try:
        return work(connection)
    except StorageError:
        raise
    except Exception as error:
        raise StorageError(str(error)) from error


log = Log("storage")

REMEMBERED = 1000  # texts of errors; beyond, one may be logged again
GRACE_SECONDS = 1.0  # how long a store that stops goes on with what was handed over


class Request(Protocol):
    """Something asked of a worker."""

    @property
    def done(self) -> Callable[[StorageError], None]: ...


T = TypeVar("T", bound=Request)


class Worker(Generic[T]):
    """Serves requests in order on its own thread. Subclasses say how; they must not let an exception out."""

    def __init__(self, name: str) -> None:
        self._inbox: SimpleQueue[T | None] = SimpleQueue()  # None: stop when nothing is left
        self._stopping = False
        self._deadline: float | None = None
        self._closed = False
        self._last_errors: dict[str, str] = {}  # by what failed
        # Not a daemon: the interpreter must not end under a commit.
        self._thread = threading.Thread(target=self._main, name=name)

    # on the event loop

    def submit(self, request: T) -> None:
        """Have a request served. Never blocks."""
        if self._closed:
            request.done(StorageError("the store is closed"))
        else:
            self._inbox.put(request)

    def start(self) -> None:
        """Start the thread. `finished` is set, on the event loop, when it has ended."""
        self._token = trio.lowlevel.current_trio_token()
        self.finished = trio.Event()
        self._thread.start()

    async def stop(self, grace: float) -> None:
        """Serve what was submitted, for `grace` seconds, refuse the rest, then end the thread."""
        if self._thread.ident is not None:
            self._deadline = time.monotonic() + grace  # a real disk's time: the broker's clock may stand still
            self._inbox.put(None)
            with trio.CancelScope(shield=True):
                await self.finished.wait()
            self._thread.join()
        self.abandon()

    def abandon(self) -> None:
        """Close without, or after, a thread; refuse what nobody will serve. May be called again."""
        self._closed = True
        self.close()
        while (request := self.poll()) is not None:
            request.done(StorageError("the store is closed"))

    # on the thread

    def serve(self, request: T) -> None:
        """Do what is asked and `hand_back` the answer."""
        raise NotImplementedError

    def background(self) -> bool:
        """Do a small piece of what nobody waits for; called while nothing is asked. False: there is nothing."""
        return False

    def close(self) -> None:
        """Give back what the worker owns. Called last by the thread; once more, to no effect, by the event loop."""

    def poll(self) -> T | None:
        """The next request that waits already."""
        while not self._inbox.empty():
            request = self._inbox.get_nowait()
            if request is not None:
                return request
            self._stopping = True
        return None

    def hand_back(self, calls: Sequence[Callable[[], None]]) -> None:
        """Make the event loop do `calls`, in order, after those handed back before. One wake-up."""
        try:
            self._token.run_sync_soon(_call_all, calls)
        except trio.RunFinishedError:
            log.warning("nobody is left to be answered", thread=self._thread.name)

    def report(self, error: Exception | None, what: str = "") -> None:
        """Log an error, once until it changes: a full disk must not fill the log as well.

        `what` was done: reading works where writing fails.
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
        except BaseException as error:  # a bug, or a test's hook: whoever runs the store sees that it `finished`
            log.error("a storage thread died", exception=error, thread=self._thread.name)
        finally:
            try:
                self.close()
            finally:
                self.hand_back([self.finished.set])

    def _serve_next(self) -> bool:
        """A function of its own: a local variable of the loop would keep the last request alive."""
        request = self._next()
        if request is None:
            return False
        if self._deadline is not None and time.monotonic() >= self._deadline:
            error = StorageError("the store closed before this was done")
            self.hand_back([partial(request.done, error)])
        else:
            self.serve(request)
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
        except Exception as error:  # one caller's fault must not leave the others without an answer
            log.error("a storage callback failed", exception=error)


class Job(NamedTuple):
    """`done` gets what `work` returned, or the StorageError that stopped it."""

    work: Callable[[sqlite3.Connection], Any]
    done: Callable[[Any], None]
    what: str = "read"  # as Worker.report has it


class JobWorker(Worker[Job]):
    """Owns `connection`, closes it in the end."""

    def __init__(self, name: str, connection: sqlite3.Connection) -> None:
        super().__init__(name)
        self._connection = connection
        self._using = threading.Lock()  # the connection: for `now`, while the thread is at work

    def read(self, ledger_id: int, first: int, last: int, done: ReadDone) -> None:
        """Read the entries `first` to `last`, both included."""
        self.submit(Job(partial(segments.read, ledger_id=ledger_id, first=first, last=last), done))

    def now(self, work: Callable[[sqlite3.Connection], R]) -> R:
        """Do some short work on the calling thread, after the job at hand. Raises StorageError."""
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
        if isinstance(result, DamagedEntriesError):  # which says nothing of others: told once, whatever is read between
            self.report(result, str(result))
        else:
            self.report(result if isinstance(result, StorageError) else None, request.what)
        self.hand_back([partial(request.done, result)])

    def close(self) -> None:
        with self._using:
            self._connection.close()
