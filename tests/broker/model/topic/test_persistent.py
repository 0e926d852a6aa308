"""What a persistent topic keeps, and for whom."""

from __future__ import annotations

import pytest

from pulsarium.broker.model.ledger.position import EARLIEST, Position
from pulsarium.broker.model.schema.registry import SchemaRegistry
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.model.topic.topics import Topics
from pulsarium.proto.topic_name import TopicName
from tests.broker.model.stores import append, cluster_of


@pytest.fixture
async def topic() -> PersistentTopic:
    """A topic with three entries, each in a ledger of its own."""
    cluster = cluster_of(managedLedgerMaxEntriesPerLedger=1, managedLedgerMinLedgerRolloverTimeMinutes=0)
    made = Topics(cluster, cluster.metadata, SchemaRegistry(cluster.turn)).create(TopicName.parse("t"))
    assert isinstance(made, PersistentTopic)
    for entry in (b"0", b"1", b"2"):
        append(made.ledger, cluster, entry)
    return made


def consume(topic: PersistentTopic, subscription: str, through: Position) -> None:
    topic.subscriptions[subscription].acknowledge_through(through, ())
    topic.subscriptions[subscription].acknowledged({}, save_now=False)
    topic.stores.turn.finish()


async def test_ledgers_that_every_subscription_has_consumed_are_deleted(topic: PersistentTopic) -> None:
    first, second, third = topic.ledger.ledgers
    topic.subscribe("a", earliest=True)
    topic.subscribe("b", earliest=True)
    consume(topic, "a", Position(third, 0))
    assert list(topic.ledger.ledgers) == [first, second, third]
    consume(topic, "b", Position(second, 0))
    assert list(topic.ledger.ledgers) == [second, third]


async def test_a_reader_keeps_what_it_has_not_read(topic: PersistentTopic) -> None:
    ledgers = list(topic.ledger.ledgers)
    topic.subscribe("durable", earliest=False)
    reader = topic.open_reader("reader", EARLIEST, earliest=False)
    consume(topic, "durable", Position(ledgers[-1], 0))
    consume(topic, "reader", Position(ledgers[0], 0))
    assert list(topic.ledger.ledgers) == ledgers
    topic.forget_reader(reader)
    topic.stores.turn.finish()
    assert list(topic.ledger.ledgers) == ledgers[-1:]


async def test_a_topic_without_subscriptions_keeps_everything(topic: PersistentTopic) -> None:
    ledgers = list(topic.ledger.ledgers)
    reader = topic.open_reader("reader", EARLIEST, earliest=False)
    consume(topic, "reader", Position(ledgers[-1], 0))
    topic.forget_reader(reader)
    topic.stores.turn.finish()
    assert list(topic.ledger.ledgers) == ledgers
