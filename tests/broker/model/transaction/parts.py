"""Participants of transactions that only record their calls, for tests of coordinators."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from pulsarium.broker.clock import Clock
from pulsarium.broker.cluster import Cluster
from pulsarium.broker.model.cursor.effect import EndEffect
from pulsarium.broker.model.errors import BrokerServiceError, ServiceNotReadyError
from pulsarium.broker.model.transaction.coordinator import Coordinator
from pulsarium.broker.model.transaction.transaction import TransactionPart, recovered
from pulsarium.proto.message_id import TxnId
from tests.broker.held import HeldStorage
from tests.broker.model.stores import cluster_of

TOPIC = "persistent://public/default/t"
PATH = "/test/0"
ENDS = itertools.count()


@dataclass
class FakePart:
    """A participant that stores the outcome of each transaction under its path, in the commit of the turn."""

    path: str
    cluster: Cluster
    ended: list[tuple[TxnId, bool, int]] = field(default_factory=list)
    unable: bool = False
    effect: EndEffect | None = None
    when: int = -1  # the number of its latest end among the ends of all participants

    def end(self, txn: TxnId, *, commit: bool, low_watermark: int) -> EndEffect | None:
        if self.unable:
            raise ServiceNotReadyError("Topic is fenced")
        self.ended.append((txn, commit, low_watermark))
        self.when = next(ENDS)
        self.cluster.turn.store(f"{self.path}/{txn.least}", b"committed" if commit else b"aborted")
        return self.effect


class Bench:
    """A coordinator on a store. A participant exists once it is in `parts`."""

    def __init__(self, store: HeldStorage | None = None, clock: Clock | None = None, **config: int) -> None:
        self.store = store or HeldStorage()
        self.cluster = cluster_of(self.store, **config)
        if clock is not None:
            self.cluster.clock.have_wall_of(clock)
        self.parts: dict[TransactionPart, FakePart] = {}
        self.answers: list[BrokerServiceError | None] = []
        last = self.cluster.recovered(PATH)
        transactions = recovered(self.cluster, PATH)
        self.coordinator = Coordinator(
            0, PATH, self.cluster, self.parts.get, -1 if last is None else int(last), transactions
        )

    def part(self, name: str, subscription: str | None = None) -> TransactionPart:
        """Create a participant, and return its key."""
        part = TransactionPart(f"{TOPIC}-{name}", subscription)
        self.parts[part] = FakePart(f"/parts/{name}-{subscription}", self.cluster)
        return part

    def begin(self, *parts: TransactionPart, timeout_ms: int = 60_000, owner: str | None = None) -> int:
        """Begin a transaction that has touched these participants, and return its number."""
        least = self.coordinator.begin(timeout_ms, owner, self.answers.append).least
        if parts:
            self.coordinator.add(least, parts, self.answers.append)
        self.finish()
        return least

    def add(self, least: int, *parts: TransactionPart) -> None:
        self.coordinator.add(least, parts, self.answers.append)
        self.finish()

    def end(self, least: int, *, commit: bool = True) -> None:
        self.coordinator.end(least, commit=commit, done=self.answers.append)
        self.finish()

    def finish(self) -> None:
        self.cluster.turn.finish()

    @property
    def open(self) -> list[int]:
        return [each.least for each in self.coordinator.transactions]
