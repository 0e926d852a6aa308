"""Helpers that build managed ledgers and cursors for tests of the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pulsarium.broker.cluster import Cluster
from pulsarium.broker.config import PIP, Config
from pulsarium.broker.model.ledger.managed_ledger import LedgerListener, ManagedLedger, PendingPublish
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.storage.interface import Done, Storage
from tests.broker.held import HeldStorage

NAME = "public/default/persistent/t"


def cluster_of(storage: Storage | None = None, **config: Any) -> Cluster:
    """Return the cluster that a broker's ledgers share, by default over a store in memory."""
    return Cluster(Config(**config), PIP, storage or HeldStorage())


@dataclass(eq=False)  # compared by identity, as a producer is
class Publisher:
    """A publisher that remembers which of its entries were stored, failed or forgotten."""

    kept: list[Position] = field(default_factory=list)
    sequence_ids: list[int] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    lost: int = 0

    def persisted(self, entries: Sequence[PendingPublish]) -> None:
        self.kept += [entry.position for entry in entries]
        self.sequence_ids += [entry.sequence_id for entry in entries]

    def failed(self, entries: Sequence[PendingPublish], error: Exception) -> None:
        self.failures += [str(error)] * len(entries)

    def forgotten(self, entries: Sequence[PendingPublish]) -> None:
        self.lost += len(entries)


class Heard(LedgerListener):
    """A listener of a ledger that calls the functions of a test."""

    def __init__(self) -> None:
        self.on_confirmed: Callable[[], object] = lambda: None
        self.on_rolled: Callable[[], object] = lambda: None
        self.on_fenced: Callable[[], object] = lambda: None

    def confirmed(self) -> None:
        self.on_confirmed()

    def rolled(self) -> None:
        self.on_rolled()

    def fenced(self) -> None:
        self.on_fenced()


def heard(ledger: ManagedLedger) -> Heard:
    """Return the listener of a ledger that was made with a `Heard`."""
    assert isinstance(ledger.listener, Heard)
    return ledger.listener


def append(ledger: ManagedLedger, cluster: Cluster, *entries: bytes, publisher: Publisher | None = None) -> None:
    """Append entries to a ledger in one turn."""
    publisher = publisher or Publisher()
    for number, entry in enumerate(entries):
        ledger.append_run([PendingPublish(publisher, entry, number, number)])
    cluster.turn.finish()


def read_all(ledger: ManagedLedger) -> list[tuple[Position, bytes]]:
    """Return all visible entries, read one after the other, from disk if they are not in memory."""
    found = []
    position = ledger.next(ledger.first_position())
    while position <= ledger.last_confirmed:
        found.append((position, ledger.read_now(position)))
        position = ledger.next(position)
    return found


class Paths(dict[str, bytes]):
    """Values by path, in a metadata store that commits each value at once."""

    def store(self, path: str, value: bytes | None) -> None:
        if value is None:
            del self[path]
        else:
            self[path] = value

    def after_commit(self, done: Done) -> None:
        done(None)
