"""The state of a cluster as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from pulsarium.broker.cluster import LEDGER_COUNTER, START_COUNTER
from pulsarium.broker.config.dynamic import DynamicSettings
from pulsarium.broker.config.version import VERSION
from pulsarium.broker.lab.state.seed import SeedError, Seeding, read
from pulsarium.broker.model.compaction.compacted import CompactedLedger
from pulsarium.broker.model.compaction.record import LEDGER_PROPERTY
from pulsarium.broker.model.cursor.records import NO_LEDGER, CursorFormat, read_cursor_info
from pulsarium.broker.model.ledger.info_compression import unpack
from pulsarium.broker.model.namespace.metadata import Metadata
from pulsarium.broker.model.schema.registry import SchemaRegistry
from pulsarium.broker.model.topic.topics import MANAGED_LEDGERS, Topics
from pulsarium.broker.storage import snapshot
from pulsarium.broker.storage.interface import Run, StorageError
from pulsarium.broker.storage.memory import MemoryStorage
from pulsarium.broker.storage.snapshot import Snapshot
from pulsarium.broker.turn import Turn
from pulsarium.proto.generated import MLDataFormats_pb2 as ml

if TYPE_CHECKING:
    from pulsarium.broker.cluster import Cluster
    from pulsarium.broker.lab.lab import Lab
    from pulsarium.broker.model.ledger.ledger import Ledger
    from pulsarium.broker.model.topic.log import TopicLog
    from pulsarium.broker.storage.interface import Entries


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


COUNTERS = (LEDGER_COUNTER, START_COUNTER)
LEDGERS = 2**31  # as many as a store can number
LEDGER_DEPTH = 5  # /managed-ledgers/TENANT/NAMESPACE/DOMAIN/TOPIC; what is deeper is a cursor


def check(cluster: Cluster, path: Path, kept: Mapping[str, bytes]) -> None:
    """Raise StorageError for metadata that no broker has kept; `path` is where they are from."""
    turn = Turn(MemoryStorage())  # of nobody
    metadata, schemas = Metadata(turn, cluster.config.clusterName), SchemaRegistry(turn)
    try:
        if not all(0 <= int(kept.get(counter, b"0")) < LEDGERS for counter in COUNTERS):
            raise ValueError("a counter is beyond what can be counted")
        metadata.recover(dict(kept))
        for each in (metadata.clusters, metadata.tenants, metadata.namespaces, metadata.partitioned):
            if not all(isinstance(value, dict) for value in each.values()):
                raise ValueError("what is kept of clusters, tenants, namespaces or topics is no object")
        DynamicSettings(replace(cluster.config), metadata.records)
        schemas.recover(dict(kept))
        Topics(cluster, metadata, schemas).recover(kept)
        for name, value in kept.items():
            if name.startswith(MANAGED_LEDGERS) and name.count("/") == LEDGER_DEPTH:
                ml.ManagedLedgerInfo.FromString(unpack(value))
            elif name.startswith(MANAGED_LEDGERS):
                read_cursor_info(value)
    except Exception as error:  # whatever is wrong with a file of somebody else's
        raise StorageError(f"{path} is damaged: its metadata cannot be read: {error}") from error


class State:
    """Forgets it, writes it to a file, takes it from one. Meanwhile the broker does nothing else.

    Everything that a data directory keeps belongs to it, in memory too; connections, non-persistent topics and readers
    do not. Who is connected stays so; producers and consumers are closed as if their topics were unloaded.
    """

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._cluster = lab.cluster
        self._one = trio.Lock()  # a seed that was reset in its middle would go on in another state

    async def reset(self, *, lab: bool = True) -> None:
        """As if freshly started. Ledger ids go on, so that no message id comes twice.

        Without `lab` its faults, masks and the clock stay as they are; what only watches stays in any case.
        """
        if lab:
            self._lab.faults.clear()
            self._lab.masks.clear()
            self._lab.clock.reset()
        async with self._one:
            await self._replace({}, ())

    async def snapshot(self, path: Path) -> None:
        """Write everything that is committed to a file. Raises StorageError."""
        contents = Contents(self._cluster)
        about = {"pulsarium": VERSION, "createdMs": self._cluster.clock.now_ms()}
        snapshot.write(path, contents.metadata, contents.entries(), about)

    async def restore(self, path: Path) -> None:
        """Go on with the state of a snapshot, or of the database of a broker that has stopped.

        Raises StorageError for a file that is neither, or damaged; then nothing changed but that clients may have been
        disconnected.
        """
        with Snapshot(path) as found:
            check(self._cluster, path, found.metadata)
            async with self._one:
                await self._replace(found.metadata, found.entries())

    async def seed(self, path: Path) -> dict[str, int]:
        """Make what a TOML or JSON file describes, where it is not there yet; how much of each was new.

        Raises SeedError, whose text begins with the file and the place in it; then nothing was made.
        """
        try:
            text = path.read_bytes().decode()  # noqa: ASYNC240
        except OSError as error:
            raise SeedError(f"{path}: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise SeedError(f"{path}: {error}") from None
        try:
            return await self.seed_text(text)
        except SeedError as error:
            raise SeedError(f"{path}: {error}") from None

    async def seed_text(self, text: str) -> dict[str, int]:
        """The same of a file's text."""
        async with self._one:
            description = await trio.to_thread.run_sync(read, text)
            seeding = Seeding(self._cluster)
            seeding.check(description)
            await seeding.make(description)
            await self._committed()
            seeding.subscribe_at_the_end(description)
            await self._committed()
        return seeding.made

    async def _replace(self, kept: dict[str, bytes], entries: Entries) -> None:
        await self._settle()
        self._cluster.replace(kept, entries)
        await self._committed()

    async def _settle(self) -> None:
        """Until nothing is on its way to the store, which needs clients that send nothing: they have to come back."""
        topics, turn = self._cluster.topics, self._cluster.turn
        turn.finish()
        while not turn.is_settled:
            for topic in list(topics.loaded.values()):
                if not topic.closed:
                    topics.unload(topic.name)
            await self._committed()

    async def _committed(self) -> None:
        finished = trio.Event()
        self._cluster.turn.after_commit(lambda error: finished.set())
        self._cluster.turn.finish()
        await finished.wait()
