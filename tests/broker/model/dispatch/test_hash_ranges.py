"""Hash ranges that consumers bring: the subscriptions on which they filter messages, as measured on Pulsar 4.2.4."""

from __future__ import annotations

import pytest

from pulsarium.broker.model.subscription.reasons import Reason
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.model.dispatch.sharing import got, joined, payloads, sticky, why
from tests.broker.wire import TOPIC, Bed, Exclusive, Failover, KeyShared, Message, Shared, Wire, plain

KEYS = [f"k{number}" for number in range(12)]
LOW = [0, 1, 2, 4, 6, 8, 10, 11]  # the numbers of the keys with a hash below 32768
NON_PERSISTENT = TOPIC.replace("persistent", "non-persistent")


def entries() -> list[bytes]:
    return [plain(b"%d" % number, partition_key=key) for number, key in enumerate(KEYS)]


def numbers(messages: list[Message]) -> list[int]:
    return [int(message.payload) for message in messages]


@pytest.mark.req("B-10")
@pytest.mark.parametrize(
    ("topic", "type", "durable", "expected"),
    [
        (TOPIC, Exclusive, True, LOW),
        (TOPIC, Exclusive, False, LOW),
        (TOPIC, Failover, True, range(12)),
        (TOPIC, Shared, True, range(12)),
        (TOPIC, KeyShared, True, LOW),
        (TOPIC, KeyShared, False, LOW),
        (NON_PERSISTENT, Exclusive, False, range(12)),
        (NON_PERSISTENT, Failover, True, range(12)),
        (NON_PERSISTENT, Shared, True, range(12)),
        (NON_PERSISTENT, KeyShared, True, LOW),
    ],
)
async def test_hash_ranges_filter_exclusive_and_key_shared(
    bed: Bed, topic: str, type: int, durable: bool, expected: list[int]
) -> None:
    """Pulsar ignores the ranges of an Exclusive consumer of a non-persistent topic."""
    consumer = await joined(bed, "low", topic=topic, type=type, durable=durable, keySharedMeta=sticky((0, 32767)))
    if type == Failover:
        await consumer.rest(2)  # ACTIVE_CONSUMER_CHANGE
    sender = await bed.connect()
    await sender.producer(topic)
    await sender.publish(*entries())
    assert numbers(await got(consumer)) == list(expected)


async def test_filtered_messages_cost_no_permits_and_stay_in_the_backlog(bed: Bed, sender: Wire) -> None:
    await sender.publish(*entries())
    reader = await joined(bed, "low", permits=5, type=Exclusive, keySharedMeta=sticky((0, 32767)))
    assert numbers(await got(reader)) == LOW[:5]
    await reader.flow(5)
    assert numbers(await got(reader)) == LOW[5:]
    assert bed.subscription().cursor.backlog() == 12
    assert next(iter(bed.subscription().consumers)).permits == 2


async def test_hash_ranges_need_no_sticky_mode_and_may_have_a_gap(bed: Bed, sender: Wire) -> None:
    await sender.publish(*entries())
    ranges = sticky((0, 20000), (40000, 65535)) | {"keySharedMode": pb.AUTO_SPLIT}
    assert numbers(await got(await joined(bed, "ends", type=Exclusive, keySharedMeta=ranges))) == [3, 5, 7, 9, 10, 11]


@pytest.mark.parametrize("ranges", [[(100, 50)], [(0, 100), (50, 40000)]])
async def test_an_exclusive_consumer_with_invalid_hash_ranges_joins_and_gets_nothing(
    bed: Bed, sender: Wire, ranges: list[tuple[int, int]]
) -> None:
    await sender.publish(*entries())
    assert await payloads(await joined(bed, "none", type=Exclusive, keySharedMeta=sticky(*ranges))) == []


async def test_a_filtered_message_has_no_owner_until_another_consumer_takes_all_keys(bed: Bed, sender: Wire) -> None:
    positions = await sender.publish(*entries())
    low = await joined(bed, "low", type=Exclusive, keySharedMeta=sticky((0, 32767)))
    await got(low)
    expected = [Reason.DELIVERED if number in LOW else Reason.NO_OWNER for number in range(12)]
    assert [why(bed, position) for position in positions] == expected
    await low.aclose()
    assert why(bed, positions[3]) is Reason.NO_CONSUMER
    assert numbers(await got(await joined(bed, "all", type=Exclusive))) == list(range(12))
