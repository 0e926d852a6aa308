"""Which transaction coordinators there are, and which broker serves each."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from pulsarium.broker.model.errors import CoordinatorNotFoundError
from pulsarium.broker.model.ledger.stores import Stores
from pulsarium.broker.model.namespace.metadata import Metadata
from pulsarium.broker.model.namespace.ownership import Member, Ownership
from pulsarium.broker.model.transaction.coordinator import Coordinator
from pulsarium.broker.model.transaction.participant import Participant
from pulsarium.broker.model.transaction.transaction import Part, Transaction
from pulsarium.proto.topic_name import TopicName

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
