"""Limits of unacknowledged messages (B-06): a consumer that reaches its limit waits until only half of them remain."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.model.subscription.reasons import Reason
from tests.broker.model.dispatch.sharing import got, joined, payloads, reason
from tests.broker.wire import Bed, Exclusive, KeyShared, Shared, Wire, batch_of, plain

NAMESPACE = "public/default"


pytestmark = pytest.mark.serving(Config(maxUnackedMessagesPerConsumer=4, maxUnackedMessagesPerSubscription=6))


def numbered(count: int) -> list[bytes]:
    return [plain(b"%d" % number) for number in range(count)]


@pytest.mark.req("B-06")
@pytest.mark.parametrize("type", [Shared, KeyShared])
async def test_a_consumer_is_held_at_the_limit_and_freed_at_half(bed: Bed, sender: Wire, type: int) -> None:
    wire = await joined(bed, "c", type=type)
    positions = await sender.publish(*numbered(10))
    assert await payloads(wire) == [b"0", b"1", b"2", b"3"]
    assert reason(bed) is Reason.CONSUMERS_OWE
    await wire.ack(positions[0])
    assert await got(wire) == []
    await wire.ack(positions[1])
    assert await payloads(wire) == [b"4", b"5"]


@pytest.mark.req("B-06")
async def test_permits_that_come_meanwhile_count_later(bed: Bed, sender: Wire) -> None:
    wire = await joined(bed, "c", type=Shared, permits=4)
    positions = await sender.publish(*numbered(10))
    assert len(await got(wire)) == 4
    await wire.flow(3)
    assert await got(wire) == []
    consumer = next(iter(bed.subscription().consumers))
    assert (consumer.permits, consumer.blocked_permits, consumer.blocked) == (0, 3, True)
    await wire.ack(*positions[:4])
    assert await payloads(wire) == [b"4", b"5", b"6"]


@pytest.mark.req("B-06")
async def test_redelivery_frees_a_consumer_at_the_limit(bed: Bed, sender: Wire) -> None:
    wire = await joined(bed, "c", type=Shared)
    positions = await sender.publish(*numbered(5))
    assert len(await got(wire)) == 4
    await wire.redeliver(positions[:1])
    assert [message.position.entry_id for message in await got(wire)] == [0]


@pytest.mark.req("B-06")
async def test_a_batch_may_go_over_the_limit(bed: Bed, sender: Wire) -> None:
    wire = await joined(bed, "c", type=Shared)
    await sender.publish(*[batch_of(b"a", b"b", b"c")] * 3, num_messages=3)
    assert len(await got(wire)) == 2
    assert next(iter(bed.subscription().consumers)).unacked == 6


@pytest.mark.req("B-06")
async def test_all_consumers_of_a_subscription_together(bed: Bed, sender: Wire) -> None:
    one, two = await joined(bed, "a", type=Shared), await joined(bed, "b", type=Shared)
    positions = [(await sender.publish(entry))[0] for entry in numbered(10)]
    assert (await payloads(one), await payloads(two)) == ([b"0", b"2", b"4"], [b"1", b"3", b"5"])
    assert reason(bed) is Reason.SUBSCRIPTION_OWES
    await one.ack(*positions[:3])
    assert await got(one) + await got(two) == []
    await two.ack(positions[3])  # two unacknowledged messages are less than half of the limit
    assert {message.position for message in await got(one) + await got(two)} == set(positions[6:])


@pytest.mark.req("B-06")
async def test_a_consumer_that_leaves_frees_the_unacked_limit(bed: Bed, sender: Wire) -> None:
    one, two = await joined(bed, "a", type=Shared), await joined(bed, "b", type=Shared)
    await sender.publish(*numbered(6))
    owed = await got(one)
    assert len(owed) + len(await got(two)) == 6
    await one.aclose()
    assert await got(two)


@pytest.mark.req("B-06")
@pytest.mark.parametrize("reader", [{"type": Exclusive}, {"type": Shared, "durable": False}])
async def test_the_limit_does_not_apply_to_ordered_subscriptions_and_readers(
    bed: Bed, sender: Wire, reader: dict[str, Any]
) -> None:
    wire = await joined(bed, "c", **reader)
    await sender.publish(*numbered(10))
    assert len(await got(wire)) == 10


@pytest.mark.req("B-06")
async def test_another_limit_takes_effect_at_once(bed: Bed, sender: Wire) -> None:
    wire = await joined(bed, "c", type=Shared)
    await sender.publish(*numbered(6))
    assert len(await got(wire)) == 4
    metadata = bed.broker.metadata
    unlimited = {"max_unacked_messages_per_consumer": 0, "max_unacked_messages_per_subscription": 0}
    metadata.put_namespace(NAMESPACE, {**metadata.namespaces[NAMESPACE], **unlimited})
    assert len(await got(wire)) == 2
