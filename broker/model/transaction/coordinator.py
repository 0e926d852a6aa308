"""A transaction coordinator: opens transactions, knows what they touch, and ends them, on demand or in time.

Everything that ends a transaction happens within one turn, so it is one commit: a crash leaves a transaction open
everywhere or nowhere. Only what cannot be ended in that turn (a topic whose ledger is fenced) stays to be ended again
and again, and nobody is answered before that is done.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Generic, NamedTuple, Protocol, TypeVar

from pulsarium.broker.clock import Timer
from pulsarium.broker.logs import Log
from pulsarium.broker.model.errors import (
    BrokerServiceError,
    CoordinatorNotFoundError,
    InvalidTxnStatusError,
    TransactionNotFoundError,
)
from pulsarium.broker.model.ledger.stores import Stores
from pulsarium.broker.model.namespace.metadata import Metadata
from pulsarium.broker.model.namespace.ownership import Member, Ownership
from pulsarium.proto.message_id import TxnId
from pulsarium.proto.topic_name import TopicName


class Status(Enum):
    """Pulsar's TxnStatus, without those of a transaction that is over: nothing is left of it then."""

    OPEN = "OPEN"
    COMMITTING = "COMMITTING"
    ABORTING = "ABORTING"


class Part(NamedTuple):
    """Where a transaction did something: a topic that it published to, or a subscription that it acknowledged on."""

    topic: str
    subscription: str | None = None

    @property
    def order(self) -> tuple[bool, str, str]:
        """Acknowledgements end before what was published becomes visible, as in Pulsar."""
        return self.subscription is None, self.topic, self.subscription or ""


@dataclass(frozen=True, slots=True)
class Transaction:
    """A value: what changes makes another one. `parts` are those that are not ended yet."""

    least: int
    opened_ms: int
    timeout_ms: int
    owner: str | None  # role of who opened it; None: anybody's
    status: Status = Status.OPEN
    parts: frozenset[Part] = frozenset()

    @property
    def topics(self) -> list[str]:
        """What it published to."""
        return sorted(part.topic for part in self.parts if part.subscription is None)

    @property
    def subscriptions(self) -> list[tuple[str, str]]:
        """What it acknowledged on: topic and subscription."""
        return sorted((part.topic, part.subscription) for part in self.parts if part.subscription is not None)

    def to_bytes(self) -> bytes:
        """As it is stored, where its number is part of the path."""
        parts = sorted(self.parts, key=lambda part: part.order)
        return json.dumps([self.opened_ms, self.timeout_ms, self.owner, self.status.value, parts]).encode()

    @classmethod
    def from_bytes(cls, least: int, value: bytes) -> Transaction:
        """From the store."""
        opened_ms, timeout_ms, owner, status, parts = json.loads(value)
        return cls(least, opened_ms, timeout_ms, owner, Status(status), frozenset(Part(*part) for part in parts))


class Participant(Protocol):
    """A topic's transaction buffer, or the pending acknowledgements of a subscription."""

    def end(self, txn: TxnId, *, commit: bool, low_watermark: int) -> None:
        """The transaction is over; nothing happens where it left nothing. What changes is noted for this turn's commit.

        All transactions of the same coordinator up to `low_watermark` are over too. Raises BrokerServiceError where it
        cannot be done now, and then nothing changed.
        """


log = Log("transactions")

Done = Callable[[BrokerServiceError | None], None]  # the store has it, or never will
Find = Callable[[Part], Participant | None]  # None: it is gone, and has nothing left to end

RETRY = 1.0  # seconds, as of TransactionMetadataStoreService


class TooManyTransactionsError(Exception):
    """maxActiveTransactionsPerCoordinator is reached. Pulsar answers nothing, so that clients do not ask again soon."""


class Coordinator:
    """The transactions of one number. What was asked of it is told to `done` once it is kept.

    A commit that fails takes back everything that it had not kept yet; clients are told TransactionCoordinatorNotFound
    then, as by a coordinator whose log is fenced, and ask again.
    """

    def __init__(
        self, number: int, path: str, stores: Stores, find: Find, last: int = -1, kept: Iterable[Transaction] = ()
    ) -> None:
        self.number = number
        self.last = last  # the newest transaction's number, -1 before the first; none is given out twice
        self.opened_ms = stores.clock.now_ms()
        self._path = path
        self._stores = stores
        self._find = find
        self._kept = {each.least: each for each in kept}  # as the store has them
        self._transactions = dict(sorted(self._kept.items()))  # as they are now
        self._in_order = True  # they are, oldest first
        self._timers: dict[int, Timer] = {}  # of each the one: its timeout, or when its end is tried again
        self._waiting: dict[int, list[Done]] = {}  # for its end
        for each in self._transactions.values():
            self._set_timer(each)

    def close(self) -> None:
        """Another state takes the place of this one."""
        for timer in self._timers.values():
            timer.cancel()

    # what there is

    @property
    def transactions(self) -> Iterable[Transaction]:
        """Those that are not over, oldest first."""
        return self._ordered().values()

    def _ordered(self) -> dict[int, Transaction]:
        if not self._in_order:
            self._transactions, self._in_order = dict(sorted(self._transactions.items())), True
        return self._transactions

    @property
    def active(self) -> int:
        """How many there are."""
        return len(self._transactions)

    @property
    def low_watermark(self) -> int:
        """All transactions up to here are over; 0 where none is open, as in Pulsar."""
        oldest = next(iter(self._ordered()), None)
        return 0 if oldest is None else oldest - 1

    def transaction(self, least: int) -> Transaction:
        """One that is not over. Raises TransactionNotFoundError."""
        found = self._transactions.get(least)
        if found is None:
            raise TransactionNotFoundError(f"The transaction with this txdID `({self.number},{least})`not found ")
        return found

    # what clients ask for

    def begin(self, timeout_ms: int, owner: str | None, done: Done) -> TxnId:
        """Open a transaction; it is aborted after `timeout_ms`, at once when that is less than 1.

        Raises TooManyTransactionsError.
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
        """It publishes, or acknowledges, there. Raises TransactionNotFoundError, InvalidTxnStatusError."""
        transaction = self.transaction(least)
        self._check_status(transaction, Status.OPEN)
        self._keep(least, replace(transaction, parts=transaction.parts.union(parts)), done)

    def end(self, least: int, *, commit: bool, done: Done) -> None:
        """Commit or abort it everywhere. Raises TransactionNotFoundError, InvalidTxnStatusError."""
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

    # the end of one

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
            log.warning("a transaction cannot be ended yet", txn=txn, topic=part.topic, reason=error.text)
            return False
        return True

    def _ended(self, least: int, over: bool, error: BrokerServiceError | None) -> None:
        if over or error is not None:
            for done in self._waiting.pop(least, ()):
                done(error)

    # keeping

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
        """Have a transaction as the store has it: what was to follow is not kept."""
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
        """When it is aborted, or its end is tried again, the latter by the machine's clock."""
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

    def _time_is_up(self, least: int) -> None:
        transaction = self._transactions[least]
        if transaction.status is Status.OPEN:
            log.info("a transaction timed out", txn=TxnId(self.number, least), timeout_ms=transaction.timeout_ms)
            transaction = replace(transaction, status=Status.ABORTING)
        self._finish(transaction)


ASSIGN = TopicName.parse("persistent://pulsar/system/transaction_coordinator_assign")
FOLDER = "/transactions/coordinators"

M = TypeVar("M", bound=Member)


class Participants(Protocol):
    """The topics that transactions touch."""

    def participant(self, part: Part) -> Participant | None:
        """Return what a transaction ends on; None where that is gone."""
        ...


class Coordinators(Generic[M]):
    """Number N belongs to the broker that owns partition N of ASSIGN, a topic that nobody publishes to: who looks for a
    coordinator looks that up. Any number is served whose bundle is owned, as in Pulsar.

    Transactions belong to the cluster, and go on while no broker serves their coordinator.
    """

    def __init__(self, stores: Stores, ownership: Ownership[M], metadata: Metadata, topics: Participants) -> None:
        self._stores = stores
        self._ownership = ownership
        self._metadata = metadata
        self._topics = topics
        self._coordinators: dict[int, Coordinator] = {}
        self._open: dict[int, M] = {}  # number -> the broker that a client opened it at
        self.recover()

    def recover(self) -> None:
        """Begin with what the store has. Numbers go on where there were some: clients may still have them."""
        reached = {number: coordinator.last for number, coordinator in self._coordinators.items()}
        for coordinator in self._coordinators.values():
            coordinator.close()
        self._open.clear()
        self._coordinators.clear()
        kept = {int(name): int(last) for name, last in self._stores.recovered_under(FOLDER)}
        for number in {**kept, **reached}:
            found = self._stores.recovered_under(f"{FOLDER}/{number}")
            transactions = [Transaction.from_bytes(int(least), value) for least, value in found]
            last = max(kept.get(number, -1), reached.get(number, -1))
            if last != kept.get(number):
                self._stores.turn.store(f"{FOLDER}/{number}", str(last).encode())
            self._make(number, last, transactions)
        self.provide()

    def provide(self) -> None:
        """One for each broker; those that there were before stay."""
        brokers = len(self._ownership.members)
        if brokers > self.count:
            self._metadata.put_partitioned(ASSIGN, brokers)

    def _make(self, number: int, last: int = -1, kept: list[Transaction] | None = None) -> Coordinator:
        made = Coordinator(number, f"{FOLDER}/{number}", self._stores, self._topics.participant, last, kept or ())
        self._coordinators[number] = made
        return made

    # who serves them

    @property
    def count(self) -> int:
        """How many clients are told of."""
        return self._metadata.partitions_of(ASSIGN)

    def open(self, number: int, broker: M) -> bool:
        """A client wants it from this broker. Whether that is its owner."""
        if self._ownership.taker(ASSIGN.partition(number)) is not broker:
            return False
        self._open[number] = broker
        return True

    def is_open(self, number: int, broker: M) -> bool:
        """Whether this broker serves it, and a client has opened it there."""
        return self._open.get(number) is broker and self._ownership.taker(ASSIGN.partition(number)) is broker

    def served(self, number: int, broker: M) -> Coordinator:
        """The coordinator, for what clients ask of it. Raises CoordinatorNotFoundError."""
        if not self.is_open(number, broker):
            raise CoordinatorNotFoundError(f"Transaction coordinator with id {number} not found!")
        return self._coordinators.get(number) or self._make(number)

    def anywhere(self, number: int) -> Coordinator | None:
        """The coordinator, if any broker serves it."""
        broker = self._open.get(number)
        return self.served(number, broker) if broker is not None and self.is_open(number, broker) else None
