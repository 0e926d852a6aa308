"""A worker that does one job after the other with a connection of its own."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

from pulsarium.broker.storage import segments
from pulsarium.broker.storage.errors import DamagedEntriesError, StorageError
from pulsarium.broker.storage.interface import ReadDone
from pulsarium.broker.storage.worker import Worker

R = TypeVar("R")


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


def attempt(work: Callable[[sqlite3.Connection], R], connection: sqlite3.Connection) -> R:
    """What `work` returns. Raises nothing but StorageError."""
    try:
        return work(connection)
    except StorageError:
        raise
    except Exception as error:
        raise StorageError(str(error)) from error
