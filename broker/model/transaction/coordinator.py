"""A transaction coordinator: open transactions, note what they change, and end them on request or in time.

All changes of an end belong to one turn, and so to one commit: after a crash a transaction is open everywhere or
nowhere. The end of a transaction with very many parts takes several turns. Each of them stores which parts are left, so
that the end goes on after a crash. A part that cannot be ended (a topic whose ledger is fenced) is tried again. The
client waits for its answer until all parts have ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import Protocol

from pulsarium.broker.clock import Timer
from pulsarium.broker.logs import PartLog
from pulsarium.broker.model.cursor.effect import EndEffect, after_all
from pulsarium.broker.model.errors import (
    BrokerServiceError,
    CoordinatorNotFoundError,
    InvalidTxnStatusError,
    TransactionNotFoundError,
)
from pulsarium.broker.model.ledger.stores import Stores
from pulsarium.broker.model.transaction.ending import Ending
from pulsarium.broker.model.transaction.transaction import (
    PAGE,
    Page,
    Status,
    Transaction,
    TransactionPart,
    page_to_bytes,
    pages_of,
)
from pulsarium.broker.net.slices import work_for_a_slice
from pulsarium.proto.message_id import TxnId


class Participant(Protocol):
    """A topic's transaction buffer, or the pending acknowledgements of a subscription."""

    def end(self, txn: TxnId, *, commit: bool, low_watermark: int) -> EndEffect | None:
        """End a transaction, within the commit of this turn. Do nothing when the transaction changed nothing here.

        All transactions of the same coordinator up to `low_watermark` have ended too. Return the effect for which
        whoever asked has to wait after the commit, if any. Raise `BrokerServiceError` when the end has to wait; then
        nothing has changed.
        """


log = PartLog("transactions")

Done = Callable[[BrokerServiceError | None], None]  # called when the store has the change, or has failed
Find = Callable[[TransactionPart], Participant | None]  # None: deleted, so there is nothing to end

RETRY = 1.0  # seconds, as in TransactionMetadataStoreService
PARTS_A_STEP = 200  # parts that are added at once


NO_TEXTS: Mapping[int, bytes] = MappingProxyType({})


class TooManyTransactionsError(Exception):
    """Raised when maxActiveTransactionsPerCoordinator is reached.

    Pulsar sends no answer then, which delays the client's next request.
    """


class Coordinator:
    """The transactions of one coordinator. `done` receives the result of a request after its commit.

    A failed commit takes back all changes that are not stored. Clients get TransactionCoordinatorNotFound, as from a
    coordinator with a fenced log, and retry.
    """

    def __init__(
        self, number: int, path: str, stores: Stores, find: Find, last: int = -1, kept: Iterable[Transaction] = ()
    ) -> None:
        self.number = number
        self.last = last  # the newest transaction's number, or -1; numbers are never reused
        self.opened_ms = stores.clock.now_ms()
        self._path = path
        self._stores = stores
        self._find = find
        self._kept = {each.least: each for each in kept}  # as stored
        self._transactions = dict(sorted(self._kept.items()))  # with changes that are not stored yet
        self._in_order = True  # whether `_transactions` is sorted, oldest first
        self._timers: dict[int, Timer] = {}  # the timeout or the next try to end of each transaction
        self._waiting: dict[int, list[Done]] = {}  # callers that wait for the end of a transaction
        self._endings: dict[int, Ending] = {}  # ends that go on in the next turn
        self._effects: dict[int, list[EndEffect]] = {}  # of ends, for which these callers wait
        for each in self._transactions.values():
            self._set_timer(each)

    def close(self) -> None:
        """Stop all timers and ends, because another state replaces this coordinator."""
        for timer in self._timers.values():
            timer.cancel()
        self._endings.clear()

    # reading

    @property
    def transactions(self) -> Iterable[Transaction]:
        """Return the open transactions, oldest first."""
        return self._ordered().values()

    def _ordered(self) -> dict[int, Transaction]:
        if not self._in_order:
            self._transactions, self._in_order = dict(sorted(self._transactions.items())), True
        return self._transactions

    @property
    def active(self) -> int:
        """Return the number of open transactions."""
        return len(self._transactions)

    @property
    def low_watermark(self) -> int:
        """Return the number up to which all transactions have ended, or 0 without open ones, as in Pulsar."""
        oldest = next(iter(self._ordered()), None)
        return 0 if oldest is None else oldest - 1

    def transaction(self, least: int) -> Transaction:
        """Return an open transaction. Raise `TransactionNotFoundError` when it has ended."""
        found = self._transactions.get(least)
        if found is None:
            raise TransactionNotFoundError(f"The transaction with this txdID `({self.number},{least})`not found ")
        return found

    def belongs_to(self, least: int, role: str) -> bool:
        """Return whether a role may use a transaction. Raise `TransactionNotFoundError` when it has ended."""
        owner = self.transaction(least).owner
        return owner is None or owner == role

    # requests of clients

    def begin(self, timeout_ms: int, owner: str | None, done: Done) -> TxnId:
        """Open a transaction that is aborted after `timeout_ms` milliseconds, and at once when that is below 1.

        Raise `TooManyTransactionsError` at maxActiveTransactionsPerCoordinator.
        """
        most = self._stores.config.maxActiveTransactionsPerCoordinator
        if 0 < most <= self.active:
            raise TooManyTransactionsError
        self.last += 1
        self._stores.turn.store(self._path, str(self.last).encode())
        transaction = Transaction(self.last, self._stores.clock.now_ms(), timeout_ms, owner)
        self._keep(self.last, transaction, done)
        self._set_timer(transaction)
        return TxnId(self.number, self.last)

    def add(self, least: int, parts: Iterable[TransactionPart], done: Done) -> None:
        """Add topics or subscriptions to a transaction.

        Raise `TransactionNotFoundError`, or `InvalidTxnStatusError` when the transaction is ending.
        """
        transaction = self._open(least)
        new = [part for part in parts if part not in transaction]
        self._keep(least, replace(transaction, parts=transaction.parts.union(new)), done)

    def add_in_steps(self, least: int, parts: Iterable[TransactionPart], done: Done) -> Iterator[None]:
        """Add very many topics or subscriptions as `add` does, all of them in the last step."""
        begun, left = self._open(least), iter(parts)
        pages: dict[int, Page] = {}
        texts: dict[int, bytes] = {}
        while some := list(islice(left, PARTS_A_STEP)):
            numbers = begun.numbers
            new = [part for part in dict.fromkeys(some) if part not in begun and numbers.get(part) not in pages]
            for page, text in pages_of(new):
                number = numbers.give(page)
                pages[number], texts[number] = page, text
            yield
        now = self._open(least)
        self._keep(least, replace(now, pages={**now.pages, **pages}), done, texts)

    def _open(self, least: int) -> Transaction:
        transaction = self.transaction(least)
        self._check_status(transaction, Status.OPEN)
        return transaction

    def end(self, least: int, *, commit: bool, done: Done) -> None:
        """Commit or abort a transaction everywhere.

        Raise `TransactionNotFoundError`, or `InvalidTxnStatusError` when the transaction is ending the other way.
        """
        transaction = self.transaction(least)
        ending = Status.COMMITTING if commit else Status.ABORTING
        if transaction.status is not Status.OPEN:
            self._check_status(transaction, ending)
        self._waiting.setdefault(least, []).append(done)
        if least not in self._endings:
            self._finish(replace(transaction, status=ending))

    def is_ending(self, least: int) -> bool:
        """Return whether the end of a transaction goes on in the next turn."""
        return least in self._endings

    def after_try(self, least: int, tried: Callable[[], None]) -> None:
        """Call `tried` when each part of an ending transaction has ended, or has to be tried again later."""
        ending = self._endings.get(least)
        if ending is None:
            tried()
        else:
            ending.tried.append(tried)

    def _check_status(self, transaction: Transaction, wanted: Status) -> None:
        if transaction.status is not wanted:
            raise InvalidTxnStatusError(
                f"Expect Txn `({self.number},{transaction.least})` to be in `{wanted.value}` status "
                f"but it is in `{transaction.status.value}` status"
            )

    # ending

    def _finish(self, transaction: Transaction) -> None:
        """End the parts of a transaction for a slice, and the rest in turns of their own."""
        self._stop_timer(transaction.least)
        self._go_on(Ending(transaction, self._end_part))

    def _go_on(self, ending: Ending) -> None:
        least = ending.transaction.least
        self._endings.pop(least, None)
        more = work_for_a_slice(ending.steps)
        left = ending.left()
        if left.has_ended:
            self._over(left)
        elif left != self._transactions[least]:
            self._keep(least, left, partial(self._ended, least, False))
        if more and not left.has_ended:
            self._endings[least] = ending
            self._stores.turn.later(partial(self._has_turn, least, ending))
            return
        if not left.has_ended:
            self._set_timer(left, at_least=RETRY)
        _call(ending.tried)

    def _has_turn(self, least: int, ending: Ending) -> None:
        if self._endings.get(least) is ending:  # else a failed commit has taken the end back
            self._go_on(ending)

    def _over(self, transaction: Transaction) -> None:
        """Forget a transaction without parts that are left."""
        self._keep(transaction.least, None, partial(self._ended, transaction.least, True))

    def _end_part(self, part: TransactionPart, transaction: Transaction) -> bool:
        txn, commit = TxnId(self.number, transaction.least), transaction.status is Status.COMMITTING
        try:
            participant = self._find(part)
            if participant is not None:
                effect = participant.end(txn, commit=commit, low_watermark=self.low_watermark)
                if effect is not None:
                    self._effects.setdefault(txn.least, []).append(effect)
        except BrokerServiceError as error:
            log.warning(
                "a transaction cannot be ended yet: the coordinator tries again",
                txn=txn,
                topic=part.topic,
                reason=error.text,
            )
            return False
        return True

    def _ended(self, least: int, over: bool, error: BrokerServiceError | None) -> None:
        if not over and error is None:
            return
        waiting, effects = self._waiting.pop(least, ()), self._effects.pop(least, ())
        if error is None:
            after_all(effects, partial(_tell, waiting, None))
        else:
            _tell(waiting, error)

    # storing

    def _keep(
        self, least: int, transaction: Transaction | None, done: Done, texts: Mapping[int, bytes] = NO_TEXTS
    ) -> None:
        """Store a transaction, or delete it. `texts` has the stored forms of new pages, as far as they are known."""
        turn, path = self._stores.turn, f"{self._path}/{least}"
        before = self._transactions.get(least)
        if transaction is None:
            del self._transactions[least]
            turn.store(path, None)
            after: Mapping[int, Page] = {}
        else:
            value = transaction.to_bytes()
            if len(value) > PAGE:
                transaction = transaction.with_parts_in_pages()
                value = transaction.to_bytes()
            self._transactions[least] = transaction
            turn.store(path, value)
            after = transaction.pages
        if before is not None and before.pages is not after:
            self._store_pages(path, before.pages, after, texts)
        turn.after_commit(partial(self._committed, least, transaction, done))

    def _store_pages(
        self, path: str, before: Mapping[int, Page], after: Mapping[int, Page], texts: Mapping[int, bytes]
    ) -> None:
        for number in before.keys() - after.keys():
            self._stores.turn.store(f"{path}/{number}", None)
        for number, page in after.items():
            if before.get(number) is not page:
                self._stores.turn.store(f"{path}/{number}", texts.get(number) or page_to_bytes(page))

    def _committed(self, least: int, transaction: Transaction | None, done: Done, error: Exception | None) -> None:
        if error is not None:
            self._take_back(least)
            done(CoordinatorNotFoundError(str(error)))
            return
        if transaction is None:
            self._kept.pop(least, None)
        else:
            self._kept[least] = transaction
        done(None)

    def _take_back(self, least: int) -> None:
        """Restore a transaction from the store after a failed commit."""
        self._stop_timer(least)
        ending = self._endings.pop(least, None)
        kept = self._kept.get(least)
        if kept is None:
            self._transactions.pop(least, None)
        else:
            self._in_order &= least in self._transactions
            self._transactions[least] = kept
            self._set_timer(kept, at_least=RETRY)
        if ending is not None:
            _call(ending.tried)

    # time

    def _set_timer(self, transaction: Transaction, *, at_least: float = 0.0) -> None:
        """Start the timer for the timeout by the broker's clock, or for the next try to end by the machine's clock."""
        self._stop_timer(transaction.least)
        again = partial(self._time_is_up, transaction.least)
        clock = self._stores.clock
        if transaction.status is Status.OPEN:
            end_ms, soonest_ms = transaction.opened_ms + transaction.timeout_ms, clock.now_ms() + round(at_least * 1000)
            self._timers[transaction.least] = clock.call_at(max(end_ms, soonest_ms), again)
        else:
            self._timers[transaction.least] = clock.machine.call_later(at_least, again)

    def _stop_timer(self, least: int) -> None:
        timer = self._timers.pop(least, None)
        if timer is not None:
            timer.cancel()

    def time_out(self, least: int) -> None:
        """Abort an open transaction as after its timeout. An ending or unknown one stays as it is."""
        transaction = self._transactions.get(least)
        if transaction is not None and transaction.status is Status.OPEN:
            self._time_is_up(least)

    def _time_is_up(self, least: int) -> None:
        transaction = self._transactions[least]
        if transaction.status is Status.OPEN:
            log.info(
                "a transaction timed out: it is aborted",
                txn=TxnId(self.number, least),
                timeout_ms=transaction.timeout_ms,
            )
            transaction = replace(transaction, status=Status.ABORTING)
        self._finish(transaction)


def _call(waiting: Iterable[Callable[[], None]]) -> None:
    for each in waiting:
        each()


def _tell(waiting: Iterable[Done], error: BrokerServiceError | None) -> None:
    for done in waiting:
        done(error)
