"""Topics without connections, for tests of trimming."""

from __future__ import annotations

from typing import cast

from pulsarium.broker.model.ledger.managed_ledger import PendingPublish
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.model.topic.producers import Producer
from pulsarium.broker.model.topic.topics import Topics
from pulsarium.proto.topic_name import TopicName
from tests.broker.held import HeldStorage
from tests.broker.model.stores import Publisher, cluster_of
from tests.broker.wire import plain

NAME = TopicName.parse("t")


def topics(storage: HeldStorage | None = None, **config: object) -> Topics:
    cluster = cluster_of(
        storage, **{"managedLedgerMaxEntriesPerLedger": 1, "managedLedgerMinLedgerRolloverTimeMinutes": 0, **config}
    )
    return cluster.topics


def topic_of(topics: Topics) -> PersistentTopic:
    made = topics.create(NAME)
    assert isinstance(made, PersistentTopic)
    return made


def publish(topic: PersistentTopic, count: int = 1) -> list[Position]:
    """Publish so many entries, each in a turn of its own, and return their positions."""
    publisher = Publisher()
    for number in range(count):
        topic.publish(cast(Producer, publisher), PendingPublish(publisher, plain(b"%d" % number), number, number))
        topic.stores.turn.finish()
    return publisher.kept
