"""A subscription whose broker is stopped or killed, and starts again on the same store."""

from __future__ import annotations

from typing import Any

from pulsarium.broker.cluster import Cluster
from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.cursor.records import read_cursor_info
from pulsarium.broker.model.topic.log import TopicLog
from pulsarium.proto.generated import MLDataFormats_pb2 as ml
from tests.broker.held import HeldStorage
from tests.broker.model.stores import NAME, Publisher, append, cluster_of


class Kept:
    """A topic with a subscription, on a store that outlives both."""

    def __init__(self, *ledgers: int, **config: Any) -> None:
        """Create the topic, with one ledger for each number in `ledgers`, of so many entries."""
        self.store = HeldStorage()
        self.config = config
        publisher = Publisher()
        self.start()
        self.log.open_cursor("s", self.log.ledger.first_position()).save()
        for count in ledgers:
            append(self.log.ledger, self.cluster, *[b"x"] * count, publisher=publisher)
            self.log.ledger.reopen()
        self.cluster.turn.finish()
        self.positions = publisher.kept

    def start(self) -> None:
        self.cluster: Cluster = cluster_of(self.store, **self.config)
        self.log = TopicLog(NAME, self.cluster)

    @property
    def cursor(self) -> ManagedCursor:
        return self.log.cursors["s"]

    def ack(self, *indexes: int) -> None:
        """Acknowledge these entries and save the cursor, as for a client that waits for the answer."""
        for index in indexes:
            self.cursor.ack(self.positions[index])
        self.save()

    def save(self) -> None:
        self.cursor.save()
        self.cluster.turn.finish()

    def crash(self, **config: Any) -> None:
        self.config |= config
        before, self.store = self.store, HeldStorage()  # another process opens the store
        self.store.entries, self.store.metadata = before.entries, before.metadata
        self.start()

    def restart(self, **config: Any) -> None:
        self.cursor.close()
        self.cluster.turn.finish()
        self.crash(**config)

    def acked(self) -> list[int]:
        return [index for index, position in enumerate(self.positions) if self.cursor.is_acked(position)]

    def is_in_ledger(self) -> bool:
        return self.record is not None

    @property
    def info(self) -> ml.ManagedCursorInfo:
        return read_cursor_info(self.store.metadata[self.cursor.path])

    @property
    def record(self) -> ml.PositionInfo | None:
        records = [value for path, value in self.store.metadata.items() if path.startswith("/cursor-ledgers/")]
        assert len(records) <= 1
        return ml.PositionInfo.FromString(records[0]) if records else None
