"""Trimming of the ledgers of persistent topics, by subscriptions and retention (B-25)."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest
from trio.testing import MockClock

from pulsarium.broker.config.keys import APPEND_INDEX
from pulsarium.broker.model.compaction.compacted import CompactedWriter
from pulsarium.broker.model.ledger.ledger import Retention
from pulsarium.broker.model.ledger.managed_ledger import PendingPublish
from pulsarium.broker.model.ledger.position import EARLIEST, Position
from pulsarium.broker.model.topic.last_message import LastMessage, last_message
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.model.topic.producers import Producer
from pulsarium.broker.model.upkeep import trim
from pulsarium.proto.entry import parse_broker_metadata
from tests.broker.held import HeldStorage
from tests.broker.model.stores import Publisher
from tests.broker.model.upkeep.trimmed import NAME, publish, topic_of, topics
from tests.broker.wire import plain


@pytest.fixture
async def topic() -> PersistentTopic:
    """Return a topic whose entries have a ledger each, so that the open ledger is empty."""
    return topic_of(topics())


def ledgers(topic: PersistentTopic) -> list[int]:
    """Return the ids of the ledgers that have entries."""
    return [each.id for each in topic.ledger.ledgers.values() if each.count]


def consume(topic: PersistentTopic, subscription: str, through: Position) -> None:
    topic.subscriptions[subscription].acknowledge_through(through, save_now=False)
    topic.stores.turn.finish()


@pytest.mark.req("B-25")
async def test_ledgers_that_every_subscription_has_consumed_are_deleted(topic: PersistentTopic) -> None:
    topic.subscribe("a", earliest=True)
    topic.subscribe("b", earliest=True)
    first, second, third = publish(topic, 3)
    consume(topic, "a", third)
    assert ledgers(topic) == [first.ledger_id, second.ledger_id, third.ledger_id]
    consume(topic, "b", first)
    assert ledgers(topic) == [second.ledger_id, third.ledger_id]
    topic.unsubscribe("b")
    topic.stores.turn.finish()
    assert ledgers(topic) == []


@pytest.mark.req("B-25")
async def test_without_a_durable_subscription_only_the_last_ledger_stays() -> None:
    topic = topic_of(topics(managedLedgerMaxEntriesPerLedger=2))
    *_, last = publish(topic, 5)
    assert len(ledgers(topic)) == 3  # no check has run yet
    trim(topic)
    assert ledgers(topic) == [last.ledger_id]


@pytest.mark.req("B-25")
@pytest.mark.parametrize("start", [EARLIEST, Position(0, 0)])
async def test_a_reader_goes_on_behind_what_was_deleted(start: Position) -> None:
    topic = topic_of(topics(managedLedgerMaxEntriesPerLedger=2))
    reader = topic.open_reader("reader", start, earliest=False)
    *_, fourth, fifth = publish(topic, 5)
    trim(topic)
    assert ledgers(topic) == [fifth.ledger_id]
    assert (reader.cursor.mark_delete, reader.cursor.read_position) == (fourth, fifth)
    assert reader.cursor.backlog() == 1


async def test_ledgers_that_are_not_committed_stay(topic: PersistentTopic) -> None:
    store = topic.stores.storage
    assert isinstance(store, HeldStorage)
    topic.stores.turn.finish()
    store.holding = True
    publish(topic, 3)
    trim(topic)
    assert len(ledgers(topic)) == 3
    store.release(2)
    trim(topic)
    assert len(ledgers(topic)) == 1


@pytest.mark.req("B-25")
async def test_retention_keeps_what_was_consumed(topic: PersistentTopic, mock_clock: MockClock) -> None:
    topic.set_policies(replace(topic.policies, retention=Retention(minutes=10, megabytes=1)))
    topic.subscribe("a", earliest=True)
    *_, last = publish(topic, 3)
    consume(topic, "a", last)
    mock_clock.jump(600)
    trim(topic)
    assert len(ledgers(topic)) == 3
    mock_clock.jump(1)
    trim(topic)
    assert ledgers(topic) == []


@pytest.mark.req("B-25")
async def test_a_ledger_that_nobody_writes_to_ends_with_time(mock_clock: MockClock) -> None:
    topic = topic_of(topics(managedLedgerMaxEntriesPerLedger=2))
    (only,) = publish(topic)
    mock_clock.jump(239 * 60)
    trim(topic)
    assert ledgers(topic) == [only.ledger_id]
    mock_clock.jump(61)
    trim(topic)
    topic.stores.turn.finish()
    assert ledgers(topic) == []
    assert last_message(topic) == LastMessage(EARLIEST, -1)


@pytest.mark.req("B-25")
@pytest.mark.parametrize("restarts", [False, True])
async def test_the_index_goes_on_although_its_entries_are_gone(restarts: bool, mock_clock: MockClock) -> None:
    store = HeldStorage()
    found = topics(store, brokerEntryMetadataInterceptors=(APPEND_INDEX,))
    topic = topic_of(found)
    publish(topic, 3)
    mock_clock.jump(240 * 60)
    trim(topic)
    topic.stores.turn.finish()
    if restarts:
        found = topics(store, brokerEntryMetadataInterceptors=(APPEND_INDEX,))
    else:
        found.unload(NAME)
    topic = topic_of(found)
    (position,) = publish(topic)
    stamp = parse_broker_metadata(topic.ledger.read_now(position))
    assert stamp is not None
    assert stamp.index == 3


@pytest.mark.req("B-25")
async def test_after_a_restart_retention_counts_from_then(mock_clock: MockClock) -> None:
    """A kill left the ledger open. The broker closes it at the start, and retention counts from there."""
    store = HeldStorage()
    publish(topic_of(topics(store, managedLedgerMaxEntriesPerLedger=2)))
    mock_clock.jump(3600)
    topic = topic_of(topics(store, defaultRetentionTimeInMinutes=10, defaultRetentionSizeInMB=1))
    trim(topic)
    assert len(ledgers(topic)) == 1
    mock_clock.jump(601)
    trim(topic)
    assert ledgers(topic) == []


async def test_truncate_skips_everything_and_heeds_no_retention() -> None:
    topic = topic_of(topics(managedLedgerMaxEntriesPerLedger=2))
    topic.set_policies(replace(topic.policies, retention=Retention(minutes=-1, megabytes=-1)))
    cursor = topic.subscribe("a", earliest=True).cursor
    *_, last = publish(topic, 3)
    topic.trimmer.truncate()
    assert ledgers(topic) == [last.ledger_id]
    assert cursor.mark_delete == last
    assert cursor.backlog() == 0


async def test_truncate_leaves_what_waits_for_its_commit() -> None:
    store = HeldStorage()
    found = topics(store)
    publish(topic_of(found))
    store.holding = True
    topic = topic_of(found)
    publisher = Publisher()
    topic.publish(cast(Producer, publisher), PendingPublish(publisher, plain(b"1"), 1, 1))
    topic.stores.turn.finish()
    found.unload(NAME)
    topic = topic_of(found)
    topic.trimmer.truncate()
    topic.stores.turn.finish()
    store.release()
    assert [topic.ledger.last_confirmed] == publisher.kept
    assert topic.ledger.is_valid(publisher.kept[0])


@pytest.mark.parametrize("kept", [False, True])
async def test_compacted_ledgers_stay_until_the_compaction_is_committed(kept: bool) -> None:
    store = HeldStorage()
    found = topics(store)
    topic = topic_of(found)
    subscription, record, turn = topic.subscribe("a", earliest=True), topic.log.compaction, topic.stores.turn
    record.open_cursor()
    first, second = publish(topic, 2)
    writer = CompactedWriter(record.begin(), topic.stores)
    writer.write(first, topic.ledger.read_now(first))
    turn.finish()
    writer.committed(1)
    store.holding = True
    subscription.acknowledge_through(second, save_now=True)
    turn.finish()
    record.adopt(writer.ledger, first, lambda error: topic.trim_soon())
    turn.finish()
    store.release(1)
    assert ledgers(topic) == [first.ledger_id, second.ledger_id]
    if not kept:
        store.fail()
    store.release()
    topic = topic_of(found)
    turn.finish()
    left = [second.ledger_id] if kept else [first.ledger_id, second.ledger_id]
    assert ledgers(topic) == left
    assert [each for each in store.entries if each != writer.ledger.id] == left
