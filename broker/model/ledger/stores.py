"""Declare the objects that ledgers and cursors share. `Cluster` provides them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pulsarium.broker.clock import SteeredTime
from pulsarium.broker.config.keys import Config
from pulsarium.broker.config.profile import Profile
from pulsarium.broker.model.delay_ticks import DelayTicks
from pulsarium.broker.model.ledger.ledger import EntryCache
from pulsarium.broker.model.moves import Moves
from pulsarium.broker.model.news import News
from pulsarium.broker.storage.interface import Storage
from pulsarium.broker.turn import Turn
from pulsarium.proto.topic_name import TopicName


@dataclass(slots=True)
class Stat:
    """Version, creation time and change time of a value in the metadata store, counted since the broker started."""

    created_ms: int
    modified_ms: int = 0
    version: int = -1

    def changed(self, now_ms: int) -> None:
        """Count a change at `now_ms`."""
        self.modified_ms, self.version = now_ms, self.version + 1


def takes_transactions(config: Config, managed_ledger: str) -> bool:
    """Return whether a topic, which its managed ledger names, takes messages and acknowledgements of transactions."""
    if TopicName.from_managed_ledger(managed_ledger).is_segment:
        return config.transactionCoordinatorScalableTopicsEnabled
    return config.transactionCoordinatorEnabled


class Stores(Protocol):
    """Configuration, profile, turn, storage and cache of a cluster, the metadata from before its start, and the time.

    The time is that of the namespace, for everything in a namespace (`Context.of`).
    """

    config: Config
    profile: Profile
    delay_ticks: DelayTicks
    turn: Turn
    storage: Storage
    cache: EntryCache
    moves: Moves
    news: News

    @property
    def clock(self) -> SteeredTime: ...

    def next_ledger_id(self) -> int: ...

    def recovered(self, path: str) -> bytes | None:
        """Return the value stored at `path` when the broker started, or None."""
        ...

    def recovered_under(self, path: str) -> Sequence[tuple[str, bytes]]:
        """Return the names and values stored below `path` when the broker started."""
        ...
