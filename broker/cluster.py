"""The cluster: what brokers share, and the only owner of metadata and storage."""

from __future__ import annotations

from collections.abc import Sequence

from pulsarium.broker.clock import Clock
from pulsarium.broker.config.keys import Config
from pulsarium.broker.config.profile import Profile
from pulsarium.broker.model.ledger.cache import EntryCache
from pulsarium.broker.model.namespace.metadata import Metadata
from pulsarium.broker.model.schema.registry import SchemaRegistry
from pulsarium.broker.storage.interface import Storage
from pulsarium.broker.turn import Turn

LEDGER_COUNTER = "/counters/ledger-id"
COUNTER_RETRY = 1.0  # seconds
START_COUNTER = "/counters/starts"


class Cluster:
    """Storage, metadata, schemas, clock and turn. Must be made inside a trio run."""

    def __init__(self, config: Config, profile: Profile, storage: Storage) -> None:
        self.config = config
        self.profile = profile
        self.storage = storage
        self.clock = Clock()
        self.turn = Turn(storage)
        self.cache = EntryCache(storage, config.managedLedgerCacheSizeMB << 20)
        self.turn.every_turn(self.cache.trim)
        self._kept = storage.load_metadata()
        self._folders: dict[str, list[str]] = {}
        for path in self._kept:
            self._folders.setdefault(path.rpartition("/")[0], []).append(path)
        self._ledger_ids = int(self._kept.get(LEDGER_COUNTER, b"0"))
        self.starts_before = int(self._kept.get(START_COUNTER, b"0"))
        self.turn.store(START_COUNTER, str(self.starts_before + 1).encode())
        self.metadata = Metadata(self.turn, config.clusterName)
        self.metadata.recover(self._kept)
        self.schemas = SchemaRegistry(self.turn)
        self.schemas.recover(self._kept)

    def next_ledger_id(self) -> int:
        """A ledger id that was never used in this cluster."""
        ledger_id = self._ledger_ids
        self._ledger_ids += 1
        self._store_counter()
        return ledger_id

    def _store_counter(self) -> None:
        self.turn.store(LEDGER_COUNTER, str(self._ledger_ids).encode())
        self.turn.after_commit(self._counter_stored)

    def _counter_stored(self, error: Exception | None) -> None:
        if error is not None:  # whoever got an id may go on with it
            self.clock.call_later(COUNTER_RETRY, self._store_counter)

    def recovered(self, path: str) -> bytes | None:
        """What the store held at `path` when the broker started; handed out once, to the one who goes on from it."""
        return self._kept.pop(path, None)

    def recovered_under(self, path: str) -> Sequence[tuple[str, bytes]]:
        """What it held in the folder `path`: names and values; handed out once."""
        return [(kept[len(path) + 1 :], self._kept.pop(kept)) for kept in self._folders.pop(path, [])]

    def recovered_paths(self) -> list[str]:
        return list(self._kept)
