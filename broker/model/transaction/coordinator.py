"""A transaction coordinator: open transactions, note what they change, and end them on request or in time.

All changes of an end belong to one turn, and so to one commit: after a crash a transaction is open everywhere or
nowhere. Only a part that cannot be ended in that turn (a topic whose ledger is fenced) is tried again, and the client
waits for its answer until then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import NamedTuple, Protocol

from pulsarium.broker.clock import Timer
from pulsarium.broker.logs import Log
from pulsarium.broker.model.errors import (
    BrokerServiceError,
    CoordinatorNotFoundError,
    InvalidTxnStatusError,
    TransactionNotFoundError,
)
from pulsarium.broker.model.ledger.stores import Stores
from pulsarium.proto.message_id import TxnId


class Status(Enum):
    """Pulsar's TxnStatus without the states of an ended transaction, which the coordinator forgets."""

    OPEN = "OPEN"
    COMMITTING = "COMMITTING"
    ABORTING = "ABORTING"


class Part(NamedTuple):
    """A topic that a transaction published to, or a subscription that it acknowledged on."""

    topic: str
    subscription: str | None = None

    @property
    def order(self) -> tuple[bool, str, str]:
        """Return a sort key: acknowledgements end before published messages become visible, as in Pulsar."""
        return self.subscription is None, self.topic, self.subscription or ""


@dataclass(frozen=True, slots=True)
class Transaction:
    """An immutable transaction. `parts` lists the topics and subscriptions on which it has not ended."""

    least: int
    opened_ms: int
    timeout_ms: int
    owner: str | None  # role that opened the transaction; None: any role may end it
    status: Status = Status.OPEN
    parts: frozenset[Part] = frozenset()

    @property
    def topics(self) -> list[str]:
        """Return the topics that the transaction published to."""
        return sorted(part.topic for part in self.parts if part.subscription is None)

    @property
    def subscriptions(self) -> list[tuple[str, str]]:
        """Return the topics and subscriptions that the transaction acknowledged on."""
        return sorted((part.topic, part.subscription) for part in self.parts if part.subscription is not None)

    def to_bytes(self) -> bytes:
        """Return the stored form. The number is part of the path."""
        parts = sorted(self.parts, key=lambda part: part.order)
        return json.dumps([self.opened_ms, self.timeout_ms, self.owner, self.status.value, parts]).encode()

    @classmethod
    def from_bytes(cls, least: int, value: bytes) -> Transaction:
        """Return the transaction of a stored form."""
        opened_ms, timeout_ms, owner, status, parts = json.loads(value)
        return cls(least, opened_ms, timeout_ms, owner, Status(status), frozenset(Part(*part) for part in parts))


class Participant(Protocol):
    """A topic's transaction buffer, or the pending acknowledgements of a subscription."""

    def end(self, txn: TxnId, *, commit: bool, low_watermark: int) -> None:
        """End a transaction, within the commit of this turn. Do nothing when the transaction changed nothing here.

        All transactions of the same coordinator up to `low_watermark` have ended too. Raise `BrokerServiceError` when
        the end has to wait; then nothing has changed.
        """


log = Log("transactions")

Done = Callable[[BrokerServiceError | None], None]  # called when the store has the change, or has failed
Find = Callable[[Part], Participant | None]  # None: deleted, so there is nothing to end

RETRY = 1.0  # seconds, as in TransactionMetadataStoreService


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
        for each in self._transactions.values():
            self._set_timer(each)

    def close(self) -> None:
        """Stop all timers, because another state replaces this coordinator."""
        for timer in self._timers.values():
            timer.cancel()

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

    def add(self, least: int, parts: Iterable[Part], done: Done) -> None:
        """Add topics or subscriptions to a transaction.

        Raise `TransactionNotFoundError`, or `InvalidTxnStatusError` when the transaction is ending.
        """
        transaction = self.transaction(least)
        self._check_status(transaction, Status.OPEN)
        self._keep(least, replace(transaction, parts=transaction.parts.union(parts)), done)

    def end(self, least: int, *, commit: bool, done: Done) -> None:
        """Commit or abort a transaction everywhere.

        Raise `TransactionNotFoundError`, or `InvalidTxnStatusError` when the transaction is ending the other way.
        """
        transaction = self.transaction(least)
        ending = Status.COMMITTING if commit else Status.ABORTING
        if transaction.status is not Status.OPEN:
            self._check_status(transaction, ending)
        self._waiting.setdefault(least, []).append(done)
        self._finish(replace(transaction, status=ending))

    def _check_status(self, transaction: Transaction, wanted: Status) -> None:
        if transaction.status is not wanted:
            raise InvalidTxnStatusError(
                f"Expect Txn `({self.number},{transaction.least})` to be in `{wanted.value}` status "
                f"but it is in `{transaction.status.value}` status"
            )

    # ending

    def _finish(self, transaction: Transaction) -> None:
        least = transaction.least
        self._stop_timer(least)
        parts = sorted(transaction.parts, key=lambda part: part.order)
        left = frozenset(part for part in parts if not self._end_part(part, transaction))
        if left:
            remaining = replace(transaction, parts=left)
            if remaining != self._transactions[least]:
                self._keep(least, remaining, partial(self._ended, least, False))
            self._set_timer(remaining, at_least=RETRY)
        else:
            self._keep(least, None, partial(self._ended, least, True))

    def _end_part(self, part: Part, transaction: Transaction) -> bool:
        txn, commit = TxnId(self.number, transaction.least), transaction.status is Status.COMMITTING
        try:
            participant = self._find(part)
            if participant is not None:
                participant.end(txn, commit=commit, low_watermark=self.low_watermark)
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
        if over or error is not None:
            for done in self._waiting.pop(least, ()):
                done(error)

    # storing

    def _keep(self, least: int, transaction: Transaction | None, done: Done) -> None:
        if transaction is None:
            del self._transactions[least]
        else:
            self._transactions[least] = transaction
        turn = self._stores.turn
        turn.store(f"{self._path}/{least}", None if transaction is None else transaction.to_bytes())
        turn.after_commit(partial(self._committed, least, transaction, done))

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
        kept = self._kept.get(least)
        if kept is None:
            self._transactions.pop(least, None)
        else:
            self._in_order &= least in self._transactions
            self._transactions[least] = kept
            self._set_timer(kept, at_least=RETRY)

    # time

    def _set_timer(self, transaction: Transaction, *, at_least: float = 0.0) -> None:
        """Start the timer for the timeout by the broker's clock, or for the next try to end by the machine's clock."""
        self._stop_timer(transaction.least)
        again = partial(self._time_is_up, transaction.least)
        clock = self._stores.clock
        if transaction.status is Status.OPEN:
            left = (transaction.opened_ms + transaction.timeout_ms - clock.now_ms()) / 1000
            self._timers[transaction.least] = clock.call_later(max(left, at_least), again)
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
