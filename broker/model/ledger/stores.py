"""Has what ledgers and cursors share with all others of their cluster; `Cluster` is it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pulsarium.broker.clock import Clock, DelayTicks
from pulsarium.broker.config.keys import Config
from pulsarium.broker.config.profile import Profile
from pulsarium.broker.model.ledger.cache import EntryCache
from pulsarium.broker.storage.interface import Storage
from pulsarium.broker.turn import Turn


@dataclass(slots=True)
class Stat:
    """What a metadata store tells of a value: how often it was changed, and when. Counted from the broker's start."""

    created_ms: int
    modified_ms: int = 0
    version: int = -1

    def changed(self, now_ms: int) -> None:
        """It was made, or changed."""
        self.modified_ms, self.version = now_ms, self.version + 1


class Stores(Protocol):
    """Configuration, profile, clock, ticks, turn, storage, cache, and what was stored before the broker started."""

    config: Config
    profile: Profile
    clock: Clock
    delay_ticks: DelayTicks
    turn: Turn
    storage: Storage
    cache: EntryCache

    def next_ledger_id(self) -> int: ...

    def recovered(self, path: str) -> bytes | None:
        """What the store held at `path` when the broker started."""
        ...

    def recovered_under(self, path: str) -> Sequence[tuple[str, bytes]]:
        """What it held in the folder `path`: names and values."""
        ...
