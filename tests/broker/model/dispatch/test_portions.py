"""Key_Shared gives a consumer the entries of several reads at once, but not where that changes what is read next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pulsarium.broker.model.client import Delivery
from pulsarium.broker.model.dispatch import key_shared
from pulsarium.broker.model.dispatch.draining import KeyOwners
from pulsarium.broker.model.dispatch.key_shared import KeySharedDispatcher
from pulsarium.broker.model.subscription.reasons import Reason
from pulsarium.broker.net import slices
from tests.broker.model.dispatch.clients import PLENTY, FakeClient, Stand
from tests.broker.model.dispatch.sharing import keyed
from tests.broker.wire import KeyShared

READ = 10
ENTRIES = keyed(f"key-{number}" for number in range(4 * READ))


@pytest.fixture(autouse=True)
def one_dispatch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a dispatch end at no time of its own."""
    monkeypatch.setattr(slices, "SLICE", 60)


class Counting(FakeClient):
    """A connection that notes the consumer of each delivery."""

    def __init__(self, room: int) -> None:
        super().__init__(room)
        self.calls: list[int] = []

    def messages(
        self, consumer_id: int, partition: int, consumer_epoch: int | None, deliveries: Sequence[Delivery]
    ) -> None:
        self.calls.append(consumer_id)
        super().messages(consumer_id, partition, consumer_epoch, deliveries)


class TwoConsumers(Stand):
    """A subscription with two consumers on one connection, whose backlog is four reads of ten."""

    def __init__(self, room: int = PLENTY, **config: Any) -> None:
        super().__init__(dispatcherMaxReadBatchSize=READ, **config)
        self.client = Counting(room)
        self.positions = self.publish(*ENTRIES)
        self.consumers = [self.join(self.client, KeyShared) for _ in range(2)]

    def start(self, permits: int = 1000) -> None:
        for consumer in self.consumers:
            self.subscription.flow(consumer, permits)
        self.end_turn()

    @property
    def dispatcher(self) -> KeySharedDispatcher:
        assert isinstance(self.subscription.dispatcher, KeySharedDispatcher)
        return self.subscription.dispatcher


async def test_a_consumer_gets_its_entries_of_several_reads_at_once() -> None:
    stand = TwoConsumers()
    stand.start()
    assert sorted(delivery.position for delivery in stand.client.got) == stand.positions
    assert stand.client.calls == [1, 2]


async def test_reading_ends_with_the_read_that_reaches_the_limit_of_the_subscription() -> None:
    stand = TwoConsumers(maxUnackedMessagesPerSubscription=READ + 1)
    stand.start()
    assert len(stand.client.got) == 2 * READ
    assert stand.subscription.reason is Reason.SUBSCRIPTION_OWES


async def test_reading_ends_with_the_read_that_fills_the_connection() -> None:
    stand = TwoConsumers(room=sum(map(len, ENTRIES[: 2 * READ - 3])))
    stand.start()
    assert len(stand.client.got) == 2 * READ
    assert stand.subscription.reason is Reason.NOT_WRITABLE


async def test_reading_ends_with_the_read_that_takes_the_last_permits() -> None:
    stand = TwoConsumers()
    stand.start(permits=1)
    assert len(stand.client.got) == 2
    assert stand.dispatcher.waiting_count == READ - 2
    assert stand.subscription.cursor.read_position == stand.positions[READ]


async def test_keys_and_hashes_without_unacknowledged_entries_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_shared, "MOST_KEYS", 5)
    monkeypatch.setattr("pulsarium.broker.model.dispatch.draining.FEW", 5)
    stand = TwoConsumers()
    stand.dispatcher.key_owners = KeyOwners()
    for consumer in stand.consumers:
        stand.dispatcher.key_owners.join(consumer)
    stand.start()
    assert stand.dispatcher.key_owners.is_full
    for consumer in stand.consumers:
        stand.ack(consumer, *consumer.pending)
    stand.publish(*keyed(["key-0"]))
    stand.subscription.dispatch()
    assert sum(len(stand.dispatcher.key_owners._keys_of[consumer]) for consumer in stand.consumers) <= 2
    assert len(stand.dispatcher._by_key) == 1
