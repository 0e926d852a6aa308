"""Work at the end of a turn: one commit, one dispatch a subscription, one flush a connection.

A turn is the work of the event loop for one event: a read full of frames, a timer, an admin call, the end of a commit.
Handlers only note due work; `finish` does the work once, however many messages the turn had.

When a commit fails, all later commits and notes fail too, because they build on it. Their callers are told at once, and
a new era begins, in which the store contains only successful commits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from typing import Protocol

import trio

from pulsarium.broker.logs import Log
from pulsarium.broker.storage.interface import Batch, Done, Run, Storage

log = Log("turn")


class Dispatchable(Protocol):
    """A subscription that delivers messages at the end of a turn."""

    def dispatch(self) -> object: ...


class Flushable(Protocol):
    """A connection that writes its frames at the end of a turn."""

    def flush(self) -> None: ...


class Turn:
    """The work noted for the end of the current turn."""

    def __init__(self, storage: Storage) -> None:
        self.number = 0
        self.ended = 0  # turns so far
        self._in_flight: deque[list[Done]] = deque()  # callbacks of each batch that the store works on
        self._sizes: deque[int] = deque()  # bytes of entries in these batches
        self.unstored = 0  # their sum
        self._era = 0  # failures so far; see Batch.era
        self._storage = storage
        self._batch = Batch()
        self._after_commit: list[Done] = []
        self._dispatch: dict[Dispatchable, None] = {}
        self._flush: dict[Flushable, None] = {}
        self._housekeeping: list[Callable[[], None]] = []
        self._scheduled = False  # `finish` will be called, by the turn's beginner or the event loop
        self._finishing = False
        self._later = 0  # calls of `later` that wait for their own turn
        self._token = trio.lowlevel.current_trio_token()

    def begin(self) -> None:
        """Begin a turn whose caller calls `finish`, which saves the event loop a wake-up."""
        self._scheduled = True

    # what a turn can note

    def store_entries(self, ledger_id: int, first: int, entries: list[bytes]) -> None:
        """Store consecutive entries with this turn's commit, and own the list. Persist point: the entries."""
        runs = self._batch.entries.setdefault(ledger_id, [])
        if runs:
            runs[0].entries.extend(entries)
        else:
            runs.append(Run(first, entries))
            self._due()

    def store(self, path: str, value: bytes | None) -> None:
        """Store metadata at `path` with this turn's commit; None deletes it. Persist point: the path."""
        self._batch.metadata[path] = value
        self._due()

    def delete_ledger(self, ledger_id: int) -> None:
        """Delete a ledger's entries with this turn's commit."""
        self._batch.deleted_ledgers.append(ledger_id)
        self._due()

    def after_commit(self, done: Done) -> None:
        """Call `done(error | None)` in order, when everything noted so far is committed, or has failed."""
        self._after_commit.append(done)
        self._due()

    def dispatch(self, subscription: Dispatchable) -> None:
        """Let a subscription deliver messages at the end of the turn."""
        self._dispatch[subscription] = None
        self._due()

    def flush(self, session: Flushable) -> None:
        """Write a connection's outgoing bytes to its socket at the end of the turn."""
        self._flush[session] = None
        self._due()

    def later(self, work: Callable[[], None]) -> None:
        """Run `work` in its own turn, after other due work."""
        self._later += 1
        self._token.run_sync_soon(self._run_later, work)

    def every_turn(self, housekeeping: Callable[[], None]) -> None:
        """Run a cheap function at the end of each turn."""
        self._housekeeping.append(housekeeping)

    # the end of the turn

    def _due(self) -> None:
        if not self._scheduled and not self._finishing:
            self._scheduled = True
            self._token.run_sync_soon(self._finish_scheduled)

    @property
    def is_committed(self) -> bool:
        """Return whether everything noted so far is committed."""
        return not (self._after_commit or self._in_flight) and self._batch.is_empty()

    def forget_notes(self) -> None:
        """Drop the notes for the store, because another state replaces the current one."""
        self._batch = Batch()

    @property
    def is_settled(self) -> bool:
        """Return whether no work is due and no commit is under way."""
        noted = self._after_commit or self._dispatch or self._flush or self._later or not self._batch.is_empty()
        return not (noted or self._in_flight)

    def _run_later(self, work: Callable[[], None]) -> None:
        self._later -= 1
        self.begin()
        try:
            work()
        except Exception as error:  # its error must not stop the broker
            log.error("work in a turn of its own failed", exception=error)
        finally:
            self.finish()

    def _finish_scheduled(self) -> None:
        if self._scheduled:
            self.finish()

    def finish(self) -> None:
        """Do all due work. Call it at the end of a turn; otherwise the event loop calls it."""
        if self._finishing:
            return
        self._finishing = True
        self._scheduled = False
        self.ended += 1
        try:
            while self._after_commit or self._dispatch or not self._batch.is_empty():
                self._commit()
                self._run_dispatch()
            for housekeeping in self._housekeeping:
                try:
                    housekeeping()
                except Exception as fault:  # replies of this turn must still go out
                    log.error("housekeeping failed", exception=fault)
        finally:
            self._finishing = False
        flush, self._flush = self._flush, {}
        for session in flush:
            try:
                session.flush()
            except Exception as error:  # its error must not stop the other connections
                log.error("a connection could not be written to", exception=error)

    def _run_dispatch(self) -> None:
        dispatch, self._dispatch = self._dispatch, {}
        for subscription in dispatch:
            try:
                subscription.dispatch()
            except Exception as error:  # its error must not stop the other subscriptions
                log.error("dispatch failed", exception=error)

    def _commit(self) -> None:
        waiting = self._after_commit
        if not waiting and self._batch.is_empty():
            return
        batch, self._batch, self._after_commit = self._batch, Batch(), []
        batch.era = self._era
        self.number += 1
        if batch.is_empty() and not self._in_flight:
            _tell(waiting, None)  # nothing to store
        else:
            self._in_flight.append(waiting)
            self._sizes.append(batch.size)
            self.unstored += batch.size
            try:
                self._storage.commit(batch, partial(self._committed, batch.era))
            except Exception as error:  # the store will not report the result
                log.error("a commit failed in the broker", exception=error)
                self._committed(batch.era, error)

    def _committed(self, era: int, error: Exception | None) -> None:
        if era != self._era:
            return  # its callers were told with the first failure
        self._scheduled = not self._finishing  # `finish` is called below, so no wake-up is needed
        if error is None:
            self.unstored -= self._sizes.popleft()
        _tell(self._in_flight.popleft() if error is None else self._end_era(), error)
        self.finish()  # does nothing when the commit ended within this turn

    def _end_era(self) -> Iterable[Done]:
        """Begin a new era after a failed commit, and return all callbacks that wait for something."""
        failed = [*chain.from_iterable(self._in_flight), *self._after_commit]
        self._in_flight.clear()
        self._sizes.clear()
        self.unstored = 0
        self._batch, self._after_commit = Batch(), []
        self._era += 1
        self.number += 1  # no later note joins the dropped ones
        return failed


def _tell(waiting: Iterable[Done], error: Exception | None) -> None:
    for done in waiting:
        try:
            done(error)
        except Exception as fault:  # the other callbacks must run
            log.error("a callback of a commit failed", exception=fault)
