"""What a cluster holds, as its store would have it after a clean stop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from pulsarium.broker.model.compaction.compacted import CompactedLedger
from pulsarium.broker.model.compaction.record import LEDGER_PROPERTY
from pulsarium.broker.model.cursor.records import NO_LEDGER, CursorFormat
from pulsarium.broker.storage.interface import Run

if TYPE_CHECKING:
    from pulsarium.broker.cluster import Cluster
    from pulsarium.broker.model.ledger.ledger import Ledger
    from pulsarium.broker.model.topic.log import TopicLog

PASSING = ("/cursor-ledgers/", "/compaction/")
"""Kept while something runs: cursors are complete without, a compaction begins anew."""
ALL = 2**31 - 1
AT_ONCE = 256  # entries that are read from a store at a time


class Contents:
    """Of this moment: use it before the event loop goes on. Blocks while it is made, and while entries are read."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._storage = cluster.storage
        self._logs = cluster.topics.logs()
        cluster.turn.finish()
        cluster.storage.settle()
        kept = cluster.storage.load_metadata()
        self.metadata = {path: value for path, value in kept.items() if not path.startswith(PASSING)}
        # whatever broker.conf says of how much a cursor keeps, nothing is lost here
        unlimited = replace(
            cluster.config,
            managedLedgerMaxUnackedRangesToPersist=ALL,
            managedLedgerMaxBatchDeletedIndexToPersist=ALL,
        )
        form = CursorFormat(unlimited)
        for log in self._logs:
            for cursor in log.cursors.values():
                info = form.cursor_info(cursor, NO_LEDGER, cursor.cursor_properties, cluster.clock.now_ms())
                self.metadata[cursor.path] = info

    def entries(self) -> Iterator[tuple[int, Run]]:
        """All of them, by ledgers. Raises StorageError."""
        for log in self._logs:
            for ledger in self._ledgers(log):
                for run in self._runs(ledger):
                    yield ledger.id, run

    def _ledgers(self, log: TopicLog) -> Iterator[Ledger]:
        yield from log.ledger.owned
        cursor, compacted = log.compaction.cursor, log.compaction.compacted
        named = None if cursor is None else cursor.properties.get(LEDGER_PROPERTY)
        if cursor is None or named is None:
            return
        if not (isinstance(compacted, CompactedLedger) and compacted.ledger.id == named):
            # its name is kept, and who waits for that was not told yet
            compacted = CompactedLedger.recovered(named, cursor.mark_delete, self._cluster)
        yield compacted.ledger

    def _runs(self, ledger: Ledger) -> Iterator[Run]:
        for block in ledger.blocks:
            if block.entries is not None:
                yield Run(block.first, block.entries)
                continue
            for first in range(block.first, block.first + block.count, AT_ONCE):
                last = min(first + AT_ONCE, block.first + block.count) - 1
                yield Run(first, self._storage.read_now(ledger.id, first, last))
