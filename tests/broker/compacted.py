"""A compacted topic that tests fill by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.proto import batch
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import plain


class Retained:
    """Entries that compaction kept, at their positions. While `loading`, readers have to wait."""

    def __init__(self, horizon: Position, entries: Mapping[Position, bytes]) -> None:
        self.horizon: Position | None = horizon
        self.entries = sorted(entries.items())
        self.loading = False
        self._waiting: list[Callable[[], None]] = []

    def read(self, start: Position, limit: int, ready: Callable[[], None]) -> list[tuple[Position, bytes]] | None:
        if self.loading:
            self._waiting.append(ready)
            return None
        return [each for each in self.entries if each[0] >= start][:limit]

    def last_entry(self) -> tuple[Position, bytes] | None:
        return self.entries[-1] if self.entries else None

    def loaded(self) -> None:
        self.loading = False
        waiting, self._waiting = self._waiting, []
        for ready in waiting:
            ready()


def compacted(topic: PersistentTopic, retained: Retained) -> Retained:
    """Make `retained` the compacted entries of a topic."""
    cast(Any, topic.log.compaction).compacted = retained
    return retained


def trim(topic: PersistentTopic) -> None:
    """Delete all entries of a topic. The next entries go to a new ledger."""
    topic.ledger.reopen()
    topic.ledger.truncate(list(topic.ledger.ledgers.values())[:-1], topic.ledgers_going)


def compacted_batch(*kept: bytes | None, **metadata: Any) -> bytes:
    """Build a batch as compaction rewrites it. None stands for a message that compaction removed."""
    packed = batch.pack(
        (pb.SingleMessageMetadata(payload_size=0, compacted_out=True), b"")
        if payload is None
        else (pb.SingleMessageMetadata(payload_size=0, partition_key="k"), payload)
        for payload in kept
    )
    return plain(packed, **{"num_messages_in_batch": len(kept), "uncompressed_size": len(packed), **metadata})
