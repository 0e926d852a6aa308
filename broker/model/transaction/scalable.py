"""Coordinators of transactions over scalable topics (PIP-473), with ids of their own.

They differ from the coordinators over persistent topics: the broker assigns them, and any number works without a
connection. A transaction knows the segments that it changed by the changes themselves. The broker aborts overdue
transactions in sweeps, and keeps ended ones for a while, so that a client may repeat the request for their end.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from pulsarium.broker.model.errors import InvalidTxnStatusError, NotAllowedError
from pulsarium.broker.model.ledger.stores import Stores
from pulsarium.broker.model.namespace.ownership import ClusterMember, Ownership
from pulsarium.broker.model.transaction.coordinator import Coordinator, Done, Find
from pulsarium.broker.model.transaction.coordinators import Participants, StoredCoordinators
from pulsarium.broker.model.transaction.transaction import Status, Transaction, TransactionPart
from pulsarium.broker.net.rounds import Rounds
from pulsarium.proto.message_id import TxnId


class EndedTransaction(NamedTuple):
    """An ended transaction, whose record stays until the retention is over."""

    committed: bool
    ended_ms: int
    owner: str | None

    @property
    def status(self) -> str:
        return _ended_status(commit=self.committed)


def _ended_status(*, commit: bool) -> str:
    return "COMMITTED" if commit else "ABORTED"


class ScalableCoordinator(Coordinator):
    """The transactions of one coordinator over scalable topics."""

    def __init__(
        self, number: int, path: str, stores: Stores, find: Find, last: int = -1, kept: Iterable[Transaction] = ()
    ) -> None:
        recovered = stores.recovered_under(f"{path}/ended")
        self._ended_by_number = {int(least): EndedTransaction(*json.loads(value)) for least, value in recovered}
        super().__init__(number, path, stores, find, last, kept)

    def belongs_to(self, least: int, role: str) -> bool:
        ended = self._ended_by_number.get(least)
        found = ended or self._transactions.get(least)
        return found is not None and (found.owner is None or found.owner == role)

    # requests of clients

    def add(self, least: int, parts: Iterable[TransactionPart], done: Done) -> None:
        """Add segments or subscriptions to a transaction. An ended transaction accepts them without an effect."""
        if least in self._ended_by_number:
            self._stores.turn.after_commit(lambda error: done(None))
        else:
            super().add(least, parts, done)

    def end(self, least: int, *, commit: bool, done: Done) -> None:
        """Commit or abort a transaction everywhere. An ended transaction accepts the same end again.

        Raise `InvalidTxnStatusError` for the other end.
        """
        ended = self._ended_by_number.get(least)
        if ended is None:
            super().end(least, commit=commit, done=done)
        elif ended.committed is commit:
            self._stores.turn.after_commit(lambda error: done(None))
        else:
            raise InvalidTxnStatusError(
                f"Transaction ({self.number},{least}) is {ended.status}, "
                f"cannot transition to {_ended_status(commit=commit)}"
            )

    def add_in_steps(self, least: int, parts: Iterable[TransactionPart], done: Done) -> Iterator[None]:
        if least in self._ended_by_number:
            self.add(least, parts, done)
        else:
            yield from super().add_in_steps(least, parts, done)

    def join(self, least: int, part: TransactionPart) -> None:
        """Add the segment or subscription that a transaction changes now.

        Raise `NotAllowedError` when the transaction is not open.
        """
        transaction = self._transactions.get(least)
        if transaction is None or transaction.status is not Status.OPEN:
            ended = self._ended_by_number.get(least)
            status = "ABORTED" if ended is None else ended.status
            raise NotAllowedError(f"Transaction ({self.number},{least}) is already {status} — TxnConflict")
        if part not in transaction:
            super().add(least, (part,), lambda error: None)

    # ending

    def _over(self, transaction: Transaction) -> None:
        super()._over(transaction)
        least, committed = transaction.least, transaction.status is Status.COMMITTING
        ended = self._ended_by_number[least] = EndedTransaction(
            committed, self._stores.clock.now_ms(), transaction.owner
        )
        self._stores.turn.store(self._ended_path(least), json.dumps(ended).encode())

    def _take_back(self, least: int) -> None:
        super()._take_back(least)
        if least in self._transactions:
            self._ended_by_number.pop(least, None)

    def _ended_path(self, least: int) -> str:
        return f"{self._path}/ended/{least}"

    # time

    def _set_timer(self, transaction: Transaction, *, at_least: float = 0.0) -> None:
        """Start the timer for the next try to end. A sweep finds transactions that time out."""
        if transaction.status is not Status.OPEN:
            super()._set_timer(transaction, at_least=at_least)

    def sweep(self) -> Iterator[None]:
        """Abort the transactions that are open longer than their clients allowed."""
        now_ms = self._stores.clock.now_ms()
        for each in list(self.transactions):
            if each.opened_ms + each.timeout_ms <= now_ms:
                self.time_out(each.least)
            yield

    def forget_old(self) -> Iterator[None]:
        """Forget the transactions that ended longer ago than the retention."""
        retention_ms = self._stores.config.transactionCoordinatorScalableTopicsGcRetentionSeconds * 1000
        oldest_ms = self._stores.clock.now_ms() - retention_ms
        for least, ended in list(self._ended_by_number.items()):
            if ended.ended_ms <= oldest_ms:
                self._ended_by_number.pop(least, None)
                self._stores.turn.store(self._ended_path(least), None)
            yield


M = TypeVar("M", bound=ClusterMember)


class ScalableCoordinators(StoredCoordinators[ScalableCoordinator], Generic[M]):
    """The coordinators of transactions over scalable topics. The running brokers share their numbers evenly."""

    folder = "/transactions/scalable/coordinators"

    def __init__(self, stores: Stores, ownership: Ownership[M], topics: Participants) -> None:
        super().__init__(ScalableCoordinator, stores, topics)
        self.watchers: dict[Callable[[], None], None] = {}  # called when coordinators have other leaders
        self._ownership = ownership
        config = stores.config
        for seconds, check in (
            (config.transactionCoordinatorScalableTopicsTimeoutSweepIntervalSeconds, ScalableCoordinator.sweep),
            (config.transactionCoordinatorScalableTopicsGcIntervalSeconds, ScalableCoordinator.forget_old),
        ):
            stores.clock.every(seconds, Rounds(stores.clock, partial(self._each, check)))
        self.recover()

    def _each(self, check: Callable[[ScalableCoordinator], Iterator[None]]) -> Iterator[None]:
        for coordinator in list(self._coordinators.values()):
            yield from check(coordinator)

    def coordinator(self, number: int) -> ScalableCoordinator:
        """Return a coordinator. Every number has one, as in Pulsar."""
        return self._made(number)

    def join(self, txn: TxnId, part: TransactionPart) -> None:
        """Add the segment or subscription that a transaction changes now.

        Raise `NotAllowedError` when the transaction is not open.
        """
        found = self._coordinators.get(txn.most)
        if found is None:
            raise NotAllowedError(f"Transaction {txn} is already ABORTED — TxnConflict")
        found.join(txn.least, part)

    @property
    def leaders(self) -> dict[int, M]:
        """Return the broker that leads each coordinator."""
        alive = self._ownership.alive
        count = self._stores.config.transactionCoordinatorScalableTopicsParallelism
        return {number: alive[number % len(alive)] for number in range(count)} if alive else {}

    def leaders_changed(self) -> None:
        """Tell the watchers that a broker started or stopped."""
        for watcher in list(self.watchers):
            watcher()
