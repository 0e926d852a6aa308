"""Connections that close in the middle of a delivery, together with all their consumers."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from pulsarium.broker.model.dispatch.key_shared import KeySharedDispatcher
from pulsarium.proto.numbers import INT_MAX
from tests.broker.model.dispatch.clients import FakeClient, Loud, Stand
from tests.broker.wire import Exclusive, Failover, KeyShared, Shared, plain

KEYS = [f"key-{number}" for number in range(10)]
SHARING = pytest.mark.parametrize("type", [Shared, KeyShared])


def keyed(*keys: str) -> list[bytes]:
    return [plain(key.encode(), partition_key=key) for key in keys]


@SHARING
async def test_messages_of_lost_consumers_go_to_the_remaining_consumer(type: int) -> None:
    stand, leaving, staying = Stand(), FakeClient(), FakeClient()
    for client in (leaving, leaving, staying):
        stand.join(client, type, 100)
    leaving.closes = True
    with patch("pulsarium.broker.turn.log", Loud):
        positions = stand.publish(*keyed(*KEYS))
    assert leaving.closed
    assert sorted(delivery.position for delivery in staying.got) == positions
    assert {delivery.redelivery_count for delivery in staying.got} == {0}


@SHARING
async def test_when_nobody_is_left_the_next_one_begins_anew(type: int) -> None:
    stand, client, later = Stand(), FakeClient(), FakeClient()
    for _ in range(2):
        stand.join(client, type, 100)
    client.closes = True
    with patch("pulsarium.broker.turn.log", Loud):
        positions = stand.publish(*keyed(*KEYS))
    dispatcher = stand.subscription.dispatcher
    assert isinstance(dispatcher, KeySharedDispatcher) or type == Shared
    assert client.closed
    assert dispatcher is not None
    assert dispatcher.waiting_count == dispatcher.unacked == 0
    stand.join(later, type, 100)
    assert [delivery.position for delivery in later.got] == positions


@pytest.mark.parametrize("type", [Exclusive, Failover, Shared, KeyShared])
async def test_permits_that_would_wrap_for_one_who_is_lost_by_them(type: int) -> None:
    """The broker first delivers for the permits that the consumer had, and this delivery closes the connection."""
    stand, client = Stand(activeConsumerFailoverDelayTimeMillis=0), FakeClient()
    consumer = stand.join(client, type, INT_MAX)
    client.closes = True
    stand.topic.log.topic = None  # the FLOW dispatches the entry, and not its publishing
    stand.publish(plain(b"x"))
    stand.flow(consumer, INT_MAX)
    assert client.closed
    assert list(stand.subscription.consumers) == []


@pytest.mark.parametrize("type", [Exclusive, Failover, Shared, KeyShared])
async def test_permits_wrap_and_come_back(type: int) -> None:
    stand, client = Stand(activeConsumerFailoverDelayTimeMillis=0), FakeClient()
    consumer = stand.join(client, type, INT_MAX)
    stand.flow(consumer, INT_MAX)
    assert consumer.permits == -2
    stand.publish(plain(b"x"))
    assert client.got == []
    stand.flow(consumer, 3)
    assert (len(client.got), consumer.permits) == (1, 0)


async def test_permits_of_one_who_owes_too_much_wrap_as_often() -> None:
    stand, client = Stand(maxUnackedMessagesPerConsumer=1), FakeClient()
    consumer = stand.join(client, Shared, 1)
    (position,) = stand.publish(plain(b"x"))
    for _ in range(5):
        stand.flow(consumer, INT_MAX)
    stand.ack(consumer, position)
    assert consumer.permits == 2**31 - 5


@pytest.mark.parametrize("type", [Failover, Shared, KeyShared])
async def test_clients_that_cannot_be_told_lose_all_their_consumers_at_once(type: int) -> None:
    stand, old, other = Stand(), FakeClient(takes_closings=False), FakeClient()
    for client in (old, old, other):
        stand.join(client, type)
    stand.subscription.disconnect_consumers()
    assert list(stand.subscription.consumers) == []
    assert old.closed
    assert not other.closed
