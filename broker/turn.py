"""Work at the end of a turn: one commit, one dispatch a subscription, one flush a connection.

A turn is the work of the event loop for one event: a read full of frames, a timer, an admin call, the end of a commit.
Handlers only note due work; `finish` does the work once, however many messages the turn had.

When a commit fails, all later commits and notes fail too, because they build on it. Their callers are told at once, and
a new era begins, in which the store contains only successful commits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Protocol, TypeVar

import trio

from pulsarium.broker.logs import PartLog
from pulsarium.broker.net.slices import FairQueue, Slice, SliceQueue, Use, in_a_thread, work_for_a_slice
from pulsarium.broker.net.stalls import Stalls
from pulsarium.broker.storage.held_commits import HeldCommits
from pulsarium.broker.storage.interface import Batch, Done, EntryRun, Storage

log = PartLog("turn")
T = TypeVar("T")


class Dispatchable(Protocol):
    """A subscription that delivers messages at the end of a turn."""

    def dispatch(self) -> object: ...


class Flushable(Protocol):
    """A connection that writes its frames at the end of a turn."""

    def flush(self) -> None: ...


class Turn:
    """The work noted for the end of the current turn."""

    def __init__(self, storage: Storage, held_commits: HeldCommits | None = None) -> None:
        self.number = 0
        self._held_commits = held_commits
        self._began = 0.0  # by `held_commits`, when this turn's messages were read
        self._publishes = False  # whether the next commit has published messages
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
        self._crowd: dict[Dispatchable, None] = {}  # subscriptions that a turn's slice left for later
        self._aside = 0  # pieces of work that threads do
        self._later = SliceQueue()  # work that waits for a turn of its own
        self.fair = FairQueue()
        self.stalls = Stalls()
        self._token = trio.lowlevel.current_trio_token()

    def begin(self) -> None:
        """Begin a turn whose caller calls `finish`, which saves the event loop a wake-up."""
        self._scheduled = True
        if self._held_commits is not None:
            self._began = self._held_commits.now()

    # what a turn can note

    def store_entries(self, ledger_id: int, first: int, entries: list[bytes]) -> None:
        """Store consecutive entries with this turn's commit, and own the list. Persist point: the entries."""
        runs = self._batch.entries.setdefault(ledger_id, [])
        if runs:
            runs[0].entries.extend(entries)
        else:
            runs.append(EntryRun(first, entries))
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

    def after_publishing(self, done: Done) -> None:
        """Call `done` as `after_commit` does, for published messages, whose commit may be held for a moment."""
        self._publishes = True
        self.after_commit(done)

    def dispatch(self, subscription: Dispatchable) -> None:
        """Let a subscription deliver messages at the end of the turn."""
        if self._crowd and subscription in self._crowd:
            return
        self._dispatch[subscription] = None
        self._due()

    def flush(self, session: Flushable) -> None:
        """Write a connection's outgoing bytes to its socket at the end of the turn."""
        self._flush[session] = None
        self._due()

    def later(self, work: Callable[[], None]) -> None:
        """Run `work` in its own turn, after other due work and after clients that send now."""
        self._later.add(partial(self._run, work))

    def next_slice(self, use: Use, work: Callable[[], None]) -> None:
        """Run a connection's `work` in its own turn, when the connection is the one that used the loop least."""
        self.fair.wait(use, partial(self._run, work))

    def in_slices(self, steps: Iterator[None]) -> None:
        """Go through `steps` for a slice now, and for the rest in turns of their own."""
        if work_for_a_slice(steps):
            self.later(partial(self.in_slices, steps))

    def aside(self, work: Callable[[], T], done: Callable[[T], None], failed: Callable[[Exception], None]) -> None:
        """Let a thread do `work`. Call `done` with its result, or `failed` with its error, in a turn of its own."""
        self._aside += 1
        trio.lowlevel.spawn_system_task(self._do_aside, work, done, failed)

    async def _do_aside(
        self, work: Callable[[], T], done: Callable[[T], None], failed: Callable[[Exception], None]
    ) -> None:
        try:
            then = partial(done, await in_a_thread(work))
        except Exception as error:  # which must not stop the broker
            then = partial(failed, error)
        finally:
            self._aside -= 1
        self._run(then)

    def every_turn(self, housekeeping: Callable[[], None]) -> None:
        """Run a cheap function at the end of each turn."""
        self._housekeeping.append(housekeeping)

    # the end of the turn

    def _due(self) -> None:
        if not self._scheduled and not self._finishing:
            self._scheduled = True
            with suppress(trio.RunFinishedError):  # the broker has ended, and with it all of its work
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
        noted = self._after_commit or self._dispatch or self._flush or not self._batch.is_empty()
        return not (noted or self._in_flight or self._later or self.fair or self._aside)

    def _run(self, work: Callable[[], None]) -> None:
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
                if self._dispatch:
                    dispatch, self._dispatch = self._dispatch, {}
                    self._dispatch_in_slices(dispatch)
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

    async def run(self) -> None:
        """Tell the results of held commits, until canceled."""
        if self._held_commits is not None:
            await self._held_commits.run(self._together)

    def _together(self, tell: Callable[[], None]) -> None:
        """Tell results of several commits, and finish the turn once."""
        self._finishing = True
        try:
            tell()
        finally:
            self._finishing = False
        self.finish()

    def _dispatch_in_slices(self, dispatch: dict[Dispatchable, None]) -> None:
        """Dispatch subscriptions for a slice. The others join the crowd, which has turns of its own."""
        slice_ = Slice()
        left = iter(dispatch)
        for subscription in left:
            try:
                subscription.dispatch()
            except Exception as error:  # its error must not stop the other subscriptions
                log.error("dispatch failed", exception=error)
            if slice_.is_over:
                break
        late = dict.fromkeys(left)
        if late and not self._crowd:
            self.later(self._serve_crowd)
        self._crowd |= late

    def _serve_crowd(self) -> None:
        crowd, self._crowd = self._crowd, {}
        self._dispatch_in_slices(crowd)

    def _commit(self) -> None:
        waiting = self._after_commit
        if not waiting and self._batch.is_empty():
            return
        batch, self._batch, self._after_commit = self._batch, Batch(), []
        batch.era = self._era
        self.number += 1
        held_commits, publishes, self._publishes = self._held_commits, self._publishes, False
        if batch.is_empty() and not self._in_flight and (held_commits is None or not publishes):
            _tell(waiting, None)  # nothing to store
        else:
            self._in_flight.append(waiting)
            self._sizes.append(batch.size)
            self.unstored += batch.size
            done: Done = partial(self._committed, batch.era)
            if held_commits is not None:
                done = held_commits.holding(done, self._began) if publishes else held_commits.behind(done)
            try:
                self._storage.commit(batch, done)
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
        self._batch, self._after_commit, self._publishes = Batch(), [], False
        self._era += 1
        self.number += 1  # no later note joins the dropped ones
        return failed


def _tell(waiting: Iterable[Done], error: Exception | None) -> None:
    for done in waiting:
        try:
            done(error)
        except Exception as fault:  # the other callbacks must run
            log.error("a callback of a commit failed", exception=fault)
