"""The state of a cluster as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import trio

from pulsarium.broker.config.version import VERSION
from pulsarium.broker.lab.state.contents import Contents
from pulsarium.broker.lab.state.rehearsal import check
from pulsarium.broker.lab.state.seed import SeedError, Seeding, read
from pulsarium.broker.storage import snapshot
from pulsarium.broker.storage.snapshot import Snapshot

if TYPE_CHECKING:
    from pulsarium.broker.lab.lab import Lab
    from pulsarium.broker.storage.interface import Entries


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
