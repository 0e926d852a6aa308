"""Reset, save, restore and seed the state of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import trio

from pulsarium.broker.cluster import LEDGER_COUNTER, START_COUNTER, Cluster
from pulsarium.broker.config.dynamic import DynamicSettings
from pulsarium.broker.config.version import VERSION
from pulsarium.broker.lab.acts import acts_of
from pulsarium.broker.lab.state.seed import SeedError, Seeding, read
from pulsarium.broker.model.compaction.compacted import CompactedLedger
from pulsarium.broker.model.compaction.record import LEDGER_PROPERTY
from pulsarium.broker.model.cursor.records import CursorFormat, read_cursor_info
from pulsarium.broker.model.ledger.info_compression import unpack
from pulsarium.broker.model.ledger.ledger import Ledger
from pulsarium.broker.model.namespace.metadata import Metadata
from pulsarium.broker.model.schema.registry import SchemaRegistry
from pulsarium.broker.model.topic.log import TopicLog
from pulsarium.broker.model.topic.topics import MANAGED_LEDGERS, Topics
from pulsarium.broker.storage import snapshot
from pulsarium.broker.storage.interface import Entries, EntryRun, StorageError
from pulsarium.broker.storage.memory import MemoryStorage
from pulsarium.broker.storage.snapshot import Snapshot
from pulsarium.broker.turn import Turn
from pulsarium.proto.generated import MLDataFormats_pb2 as ml

PASSING = ("/cursor-ledgers/", "/compaction/")
"""Metadata that only running work needs: cursors are complete without it, and a compaction starts anew."""
ALL = 2**31 - 1
AT_ONCE = 256  # entries of one read from the storage


class ClusterContents:
    """The contents of the cluster now. Use them before the event loop goes on. Reading blocks."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._storage = cluster.storage
        self._logs = cluster.topics.logs()
        cluster.turn.finish()
        cluster.storage.settle()
        kept = cluster.storage.load_metadata()
        self.metadata = {path: value for path, value in kept.items() if not path.startswith(PASSING)}
        # broker.conf limits how much of a cursor is stored; a snapshot has all of it
        unlimited = replace(
            cluster.config,
            managedLedgerMaxUnackedRangesToPersist=ALL,
            managedLedgerMaxBatchDeletedIndexToPersist=ALL,
        )
        form = CursorFormat(unlimited)
        for log in self._logs:
            for cursor in log.cursors.values():
                info = form.cursor_info(cursor, cursor.cursor_properties, cluster.clock.now_ms())
                self.metadata[cursor.path] = info

    def entries(self) -> Iterator[tuple[int, EntryRun]]:
        """Yield all entries, by ledgers. Raise `StorageError`."""
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
            # the name of the ledger is stored, but the topic does not know that yet
            compacted = CompactedLedger.recovered(named, cursor.mark_delete, self._cluster)
        yield compacted.ledger

    def _runs(self, ledger: Ledger) -> Iterator[EntryRun]:
        for block in ledger.blocks:
            if block.entries is not None:
                yield EntryRun(block.first, block.entries)
                continue
            for first in range(block.first, block.first + block.count, AT_ONCE):
                last = min(first + AT_ONCE, block.first + block.count) - 1
                yield EntryRun(first, self._storage.read_now(ledger.id, first, last))


COUNTERS = (LEDGER_COUNTER, START_COUNTER)
LEDGERS = 2**31  # ledger ids that a storage can have
LEDGER_DEPTH = 5  # /managed-ledgers/TENANT/NAMESPACE/DOMAIN/TOPIC; a deeper path is a cursor


def check(cluster: Cluster, path: Path, kept: Mapping[str, bytes]) -> None:
    """Raise `StorageError` for metadata that a broker cannot have stored. `path` is their file, for the error."""
    turn = Turn(MemoryStorage())  # stores nothing that anybody reads
    metadata, schemas = Metadata(turn, cluster.config.clusterName), SchemaRegistry(turn)
    try:
        if not all(0 <= int(kept.get(counter, b"0")) < LEDGERS for counter in COUNTERS):
            raise ValueError("a counter is out of range")
        metadata.recover(dict(kept))
        for each in (metadata.clusters, metadata.tenants, metadata.namespaces, metadata.partitioned):
            if not all(isinstance(value, dict) for value in each.values()):
                raise ValueError("clusters, tenants, namespaces or topics are not JSON objects")
        DynamicSettings(cluster.config, metadata.records)
        schemas.recover(dict(kept))
        Topics(cluster, metadata, schemas).recover(kept)
        for name, value in kept.items():
            if name.startswith(MANAGED_LEDGERS) and name.count("/") == LEDGER_DEPTH:
                ml.ManagedLedgerInfo.FromString(unpack(value))
            elif name.startswith(MANAGED_LEDGERS):
                read_cursor_info(value)
    except Exception as error:  # a damaged file may raise any error
        raise StorageError(f"{path} is damaged: its metadata cannot be read: {error}") from error


class StateControl:
    """Reset, save and restore the state. Meanwhile the broker does nothing else.

    The state is everything that a data directory stores, in memory too, but not connections, non-persistent topics and
    readers. Clients stay connected. Their producers and consumers are closed, as if their topics were unloaded.
    """

    def __init__(self, cluster: Cluster, reset_lab: Callable[[], None]) -> None:
        self._cluster = cluster
        self._reset_lab = reset_lab
        self._one = trio.Lock()  # one change at a time: a reset during a seed would mix two states

    async def reset(self, *, lab: bool = True) -> None:
        """Delete everything, as if the broker had just started. Ledger ids go on, so that no message id repeats.

        With `lab`, also remove faults and masks, and reset the clock. Captures and the linter stay in any case.
        """
        acts_of(self._cluster).note("deleted everything", command_line="pulsarium state reset")
        if lab:
            self._reset_lab()
        self._cluster.refusals.clear()
        async with self._one:
            await self._replace({}, ())

    async def snapshot(self, path: Path) -> None:
        """Write everything that is committed to a file. Raise `StorageError`."""
        contents = ClusterContents(self._cluster)
        about = {"pulsarium": VERSION, "createdMs": self._cluster.clock.now_ms()}
        snapshot.write(path, contents.metadata, contents.entries(), about)

    async def restore(self, path: Path) -> None:
        """Replace the state by a snapshot, or by the database of a stopped broker.

        Raise `StorageError` for another or a damaged file. The state is unchanged then, but clients may be
        disconnected.
        """
        with Snapshot(path) as found:
            acts_of(self._cluster).note("restored a snapshot")
            check(self._cluster, path, found.metadata)
            async with self._one:
                await self._replace(found.metadata, found.entries())

    async def seed(self, path: Path) -> dict[str, int]:
        """Create what a TOML or JSON file describes, where it does not exist yet. Return how much of each was new.

        Raise `SeedError`, whose text begins with the file and the place in it, before anything is created.
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
        """Create what a text describes, as `seed` does for a file."""
        acts_of(self._cluster).note("created what a seed describes")
        async with self._one:
            description = await trio.to_thread.run_sync(read, text)
            seeding = Seeding(self._cluster)
            seeding.check(description)
            await seeding.make(description)
            await self._committed()
            seeding.subscribe_at_the_end(description)
            await self._committed()
        return seeding.made

    async def crash(self) -> None:
        """Start all brokers again with what is stored, as after the end of their process. The rest is lost."""
        acts_of(self._cluster).note("the brokers crashed, and started again")
        async with self._one:
            await self._settle()
            self._cluster.restart()
            await self._committed()

    async def _replace(self, kept: dict[str, bytes], entries: Entries) -> None:
        await self._settle()
        self._cluster.replace(kept, entries)
        await self._committed()

    async def _settle(self) -> None:
        """Wait until all writes are committed.

        Unload topics meanwhile, because clients that go on sending would prevent that.
        """
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
