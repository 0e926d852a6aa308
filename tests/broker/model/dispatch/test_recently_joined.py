"""Key_Shared before Pulsar 4.0: a new consumer waits until all entries that were read before are acknowledged."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from trio.testing import MockClock

from pulsarium.broker.config import Config
from pulsarium.broker.config.profile import PULSAR_3_0
from pulsarium.broker.model.dispatch.key_shared import RecentlyJoinedDispatcher
from pulsarium.broker.model.subscription.reasons import Reason
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.model.dispatch.sharing import dispatcher, got, joined, keyed, payloads, sticky, why
from tests.broker.web.admin.rest import TOPICS, rest_of
from tests.broker.wire import Bed, Wire, plain, serving

KEYS = [f"key-{number}" for number in range(10)]
MOVED = {"key-0", "key-1", "key-6", "key-8"}  # they move from c0 to c1 when c1 joins, as on a real broker


def numbers(received: list[bytes]) -> list[int]:
    """Return the numbers of the keys in these payloads."""
    return [int(payload.split()[0][4:]) for payload in received]


@pytest.fixture
async def classic(autojump_clock: MockClock) -> AsyncIterator[Bed]:
    async with serving(Config(subscriptionKeySharedUseClassicPersistentImplementation=True)) as bed:
        yield bed


@pytest.fixture
async def sender(classic: Bed) -> Wire:
    wire = await classic.connect()
    await wire.producer()
    return wire


@pytest.mark.req("B-12")
async def test_a_consumer_that_joins_waits_for_entries_read_before(classic: Bed, sender: Wire) -> None:
    old = await joined(classic, "c0")
    await sender.publish(*keyed(KEYS))
    owed = await got(old)
    new = await joined(classic, "c1")
    assert isinstance(dispatcher(classic), RecentlyJoinedDispatcher)
    stats = await rest_of(classic).get(f"{TOPICS}/t/stats")
    after = f"{owed[-1].position.ledger_id}:{owed[-1].position.entry_id + 1}"
    assert stats["subscriptions"]["sub"]["consumersAfterMarkDeletePosition"] == {"c1": after}
    later = await sender.publish(*keyed(KEYS))
    its_own = await got(old)
    assert len(its_own) == len(KEYS) - len(MOVED)
    assert await got(new) == []
    assert {why(classic, later[KEYS.index(key)]) for key in MOVED} == {Reason.RECENTLY_JOINED}
    await old.ack(*[message.position for message in owed[1:]])
    assert await got(new) == []  # the first entry is not acknowledged
    await old.ack(owed[0].position)
    assert {payload.decode().split()[0] for payload in await payloads(new)} == MOVED
    await sender.publish(*keyed(KEYS))
    assert len(await got(new)) == len(MOVED)  # the new consumer no longer waits


@pytest.mark.req("B-12")
async def test_a_consumer_that_joins_gets_the_unacknowledged_entries_of_one_that_left(
    classic: Bed, sender: Wire
) -> None:
    first, second = await joined(classic, "c0"), await joined(classic, "c1")
    await sender.publish(*keyed(KEYS))
    await got(first)
    assert len(await got(second)) == len(MOVED)
    third = await joined(classic, "c2")
    await sender.publish(*keyed(KEYS))
    assert numbers(await payloads(first)) == [2, 3, 5, 9]  # as on a real broker
    assert numbers(await payloads(second)) == [0, 1]
    assert await got(third) == []
    await second.aclose()
    assert numbers(await payloads(first)) == [0, 1, 0, 1]
    assert numbers(await payloads(third)) == [6, 8]


@pytest.mark.req("B-12")
async def test_alone_there_is_nothing_to_wait_for(classic: Bed, sender: Wire) -> None:
    old = await joined(classic, "c0")
    await sender.publish(*keyed(KEYS))
    await got(old)
    new = await joined(classic, "c1")
    await sender.publish(*keyed(KEYS))
    await got(old)
    await old.aclose()
    assert len(await got(new)) == 2 * len(KEYS)


@pytest.mark.req("B-12")
async def test_a_consumer_that_joins_waits_for_nothing_when_all_is_acknowledged(classic: Bed, sender: Wire) -> None:
    old = await joined(classic, "c0")
    await sender.publish(*keyed(KEYS))
    await old.ack(*[message.position for message in await got(old)])
    new = await joined(classic, "c1")
    await sender.publish(*keyed(KEYS))
    assert len(await got(new)) == len(MOVED)


@pytest.fixture
async def of_3_0(autojump_clock: MockClock) -> AsyncIterator[Bed]:
    config = Config(subscriptionKeySharedUseClassicPersistentImplementation=True)
    async with serving(config, profile=PULSAR_3_0) as bed:
        yield bed


async def test_entries_without_a_key_go_to_one_consumer_of_3_0(of_3_0: Bed) -> None:
    consumers = [await joined(of_3_0, f"c{number}") for number in range(3)]
    sender = await of_3_0.connect()
    await sender.producer()
    await sender.publish(*(plain(f"{number}".encode()) for number in range(20)))
    assert [len(await got(consumer)) for consumer in consumers] == [20, 0, 0]  # c0 has them on a real broker too


async def test_consumers_of_3_0_may_ask_for_different_modes(of_3_0: Bed) -> None:
    await joined(of_3_0, "c0")
    await joined(of_3_0, "c1", keySharedMeta=sticky((0, 99)))
    await joined(of_3_0, "c2", keySharedMeta={"keySharedMode": pb.AUTO_SPLIT, "allowOutOfOrderDelivery": True})
    assert dispatcher(of_3_0).mode == pb.AUTO_SPLIT


async def test_stats_of_3_0_have_no_fields_of_later_releases(of_3_0: Bed) -> None:
    await joined(of_3_0, "c0")
    of_topic = await rest_of(of_3_0).get(f"{TOPICS}/t/stats")
    shown = of_topic["subscriptions"]["sub"]
    later = {"msgExpired", "drainingHashesCount", "dispatchThrottledMsgEventsByTopicLimit"}
    assert later.isdisjoint(shown)
    assert "lastPublishTimeStamp" not in of_topic
    assert {"firstConsumedFlowTimestamp", "keyHashRangeArrays", "drainingHashes"}.isdisjoint(shown["consumers"][0])
    assert "consumersAfterMarkDeletePosition" in shown
