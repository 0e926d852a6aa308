"""The transaction coordinators of a cluster, which brokers serve."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Generic, Protocol, TypeVar

from pulsarium.broker.model.errors import CoordinatorNotFoundError
from pulsarium.broker.model.ledger.stores import Stores
from pulsarium.broker.model.namespace.metadata import Metadata
from pulsarium.broker.model.namespace.ownership import ClusterMember, Ownership
from pulsarium.broker.model.transaction.coordinator import Coordinator, Participant
from pulsarium.broker.model.transaction.transaction import Transaction, TransactionPart, recovered
from pulsarium.proto.special_names import COORDINATORS, SYSTEM
from pulsarium.proto.topic_name import TopicName

ASSIGN = TopicName.parse(f"persistent://{SYSTEM}/{COORDINATORS}")

M = TypeVar("M", bound=ClusterMember)
C = TypeVar("C", bound=Coordinator)


class Participants(Protocol):
    """The topics that transactions touch."""

    def participant(self, part: TransactionPart) -> Participant | None:
        """Return the buffer or pending acknowledgements of a part, or None when the part is deleted."""
        ...


class StoredCoordinators(Generic[C]):
    """Coordinators of one kind, by their numbers, and their records in the store."""

    folder: ClassVar[str]

    def __init__(self, kind: type[C], stores: Stores, topics: Participants) -> None:
        self._kind = kind
        self._stores = stores
        self._topics = topics
        self._coordinators: dict[int, C] = {}

    def recover(self) -> None:
        """Recover the stored coordinators. Numbers continue, because clients may still hold earlier ones."""
        reached = {number: coordinator.last for number, coordinator in self._coordinators.items()}
        for coordinator in self._coordinators.values():
            coordinator.close()
        self._coordinators.clear()
        kept = {int(name): int(last) for name, last in self._stores.recovered_under(self.folder)}
        for number in {**kept, **reached}:
            transactions = recovered(self._stores, f"{self.folder}/{number}")
            last = max(kept.get(number, -1), reached.get(number, -1))
            if last != kept.get(number):
                self._stores.turn.store(f"{self.folder}/{number}", str(last).encode())
            self._make(number, last, transactions)

    def _made(self, number: int) -> C:
        """Return a coordinator, which is new when nobody used the number before."""
        return self._coordinators.get(number) or self._make(number)

    def _make(self, number: int, last: int = -1, kept: Iterable[Transaction] = ()) -> C:
        path = f"{self.folder}/{number}"
        made = self._coordinators[number] = self._kind(number, path, self._stores, self._topics.participant, last, kept)
        return made


class Coordinators(StoredCoordinators[Coordinator], Generic[M]):
    """The coordinators of transactions over persistent topics.

    The owner of partition N of ASSIGN serves coordinator N. Clients look that topic up, and no client publishes to it.
    A broker also serves numbers without a partition when it owns their bundle, as in Pulsar. Transactions belong to the
    cluster, and go on while no broker serves their coordinator.
    """

    folder = "/transactions/coordinators"

    def __init__(self, stores: Stores, ownership: Ownership[M], metadata: Metadata, topics: Participants) -> None:
        super().__init__(Coordinator, stores, topics)
        self._ownership = ownership
        self._metadata = metadata
        self._open: dict[int, M] = {}  # number -> the broker at which a client opened the coordinator
        self.recover()

    def recover(self) -> None:
        self._open.clear()
        super().recover()
        self.provide()

    def provide(self) -> None:
        """Provide a coordinator for each broker. Existing ones stay."""
        brokers = len(self._ownership.members)
        if brokers > self.count:
            self._metadata.put_partitioned(ASSIGN, brokers)

    # serving

    @property
    def count(self) -> int:
        """Return the number of coordinators that clients see."""
        return self._metadata.partitions_of(ASSIGN)

    def open(self, number: int, broker: M) -> bool:
        """Open a coordinator at this broker for a client. Return whether the broker owns the coordinator."""
        if self._ownership.taker(ASSIGN.partition(number)) is not broker:
            return False
        self._open[number] = broker
        return True

    def is_open(self, number: int, broker: M) -> bool:
        """Return whether this broker owns the coordinator, and a client has opened it here."""
        return self._open.get(number) is broker and self._ownership.taker(ASSIGN.partition(number)) is broker

    def served(self, number: int, broker: M) -> Coordinator:
        """Return a coordinator that is open at this broker. Raise `CoordinatorNotFoundError` otherwise."""
        if not self.is_open(number, broker):
            raise CoordinatorNotFoundError(f"Transaction coordinator with id {number} not found!")
        return self._made(number)

    def anywhere(self, number: int) -> Coordinator | None:
        """Return the coordinator, or None when no broker has it open."""
        broker = self._open.get(number)
        return self.served(number, broker) if broker is not None and self.is_open(number, broker) else None
