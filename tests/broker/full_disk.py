"""A broker whose disk can be full for the next change."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio
import trio.testing

from pulsarium.broker.config import Config
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.held import HeldStorage
from tests.broker.web.admin.rest import Answer, rest_of
from tests.broker.wire import TOPIC, Bed, Shared, Wire, plain, serving

NAME = TopicName.parse(TOPIC)
STRING = {"name": "", "schema_data": b"", "type": pb.Schema.Type.Value("String")}
ROLLING: dict[str, Any] = {"managedLedgerMaxEntriesPerLedger": 1, "managedLedgerMinLedgerRolloverTimeMinutes": 0}
FULL = "the disk is full"


class Disk:
    """A broker whose next change can be made to fail."""

    def __init__(self, bed: Bed, store: HeldStorage) -> None:
        self.bed = bed
        self.store = store
        self.rest = rest_of(bed)
        self.topics = bed.broker.topics

    async def full(self, method: str, url: str, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Make a call whose changes cannot be stored, and expect the error in its answer."""
        answers: list[Answer] = []

        async def ask() -> None:
            answers.append(await self.rest.call(method, url))

        async with trio.open_nursery() as nursery:
            self.store.holding = True
            nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked()
            assert not answers
            meanwhile()
            await trio.testing.wait_all_tasks_blocked()
            self.store.fail()
            self.store.release()
        (answer,) = answers
        assert answer.status == 500
        assert FULL in answer.reason

    @property
    def topic(self) -> PersistentTopic:
        found = self.topics.find(NAME)
        assert isinstance(found, PersistentTopic)
        return found

    def backlogs(self) -> dict[str, int]:
        return {name: each.cursor.backlog() for name, each in self.topic.subscriptions.items()}

    def left(self, *also: str) -> list[str]:
        """Return the paths of topics that the store still has."""
        roots = (
            "/managed-ledgers/",
            "/cursor-ledgers/",
            "/schemas/",
            "/admin/topic-policies/",
            "/transactions/",
            *also,
        )
        return sorted(path for path in self.store.metadata if path.startswith(roots) and "__change_events" not in path)


@asynccontextmanager
async def disk(store: HeldStorage | None = None, **config: Any) -> AsyncIterator[Disk]:
    store = store or HeldStorage()
    async with serving(Config(**config), storage=store) as bed:
        yield Disk(bed, store)


async def used(wire: Wire) -> None:
    """Publish three messages. Of two subscriptions, one acknowledges the first and the third message."""
    await wire.producer(schema=STRING)
    await wire.subscribe(name="some", type=Shared)
    await wire.subscribe(name="none", consumer_id=1)
    positions = await wire.publish(*[plain(b"%d" % number) for number in range(3)])
    await wire.flow()
    await wire.messages(3)
    await wire.ack(positions[0], positions[2])
    await wire.quiet()
