"""Stats of topics: fields, order and figures."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from pulsarium.broker.config import PIP, PROFILES, PULSAR_4_2, Config, Profile, profile_of
from pulsarium.broker.config.keys import APPEND_BROKER_TIMESTAMP, APPEND_INDEX
from pulsarium.broker.config.profile import PULSAR_5_0
from pulsarium.broker.lab import Lab
from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.topic import backlog
from pulsarium.broker.model.topic.log import TopicLog
from pulsarium.broker.net import slices
from pulsarium.broker.web.admin.topic import stats_json
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.passes import passes_of_the_loop
from tests.broker.web.admin.rest import ADMIN, NON_PERSISTENT, TOPICS, Rest, rest_of
from tests.broker.web.admin.topic.shown import kinds, recorded
from tests.broker.wire import TOPIC, Bed, Cumulative, Earliest, Failover, Shared, Type, Wire, batch_of, plain, serving

STATS = f"{TOPICS}/t/stats"
_TOPIC_FIELDS = """
msgRateIn msgThroughputIn msgRateOut msgThroughputOut bytesInCounter msgInCounter systemTopicBytesInCounter
bytesOutCounter msgOutCounter bytesOutInternalCounter averageMsgSize msgChunkPublished storageSize backlogSize
backlogQuotaLimitSize backlogQuotaLimitTime oldestBacklogMessageAgeSeconds publishRateLimitedTimes
earliestMsgPublishTimeInBacklogs offloadedStorageSize lastOffloadLedgerId lastOffloadSuccessTimeStamp
lastOffloadFailureTimeStamp ongoingTxnCount abortedTxnCount committedTxnCount publishers waitingPublishers
subscriptions replication deduplicationStatus nonContiguousDeletedMessagesRanges
nonContiguousDeletedMessagesRangesSerializedSize delayedMessageIndexSizeInBytes compaction ownerBroker
topicCreationTimeStamp lastPublishTimeStamp
"""
TOPIC_FIELDS = _TOPIC_FIELDS.split()
_NON_PERSISTENT_END = """
waitingPublishers nonContiguousDeletedMessagesRanges nonContiguousDeletedMessagesRangesSerializedSize
delayedMessageIndexSizeInBytes compaction ownerBroker topicCreationTimeStamp lastPublishTimeStamp msgDropRate
publishers subscriptions replication
"""
NON_PERSISTENT_END = _NON_PERSISTENT_END.split()


async def test_what_stats_tell_of_all_subscriptions_is_looked_up_in_slices(
    rest: Rest, monkeypatch: pytest.MonkeyPatch
) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    seen, slowest = list[int](), backlog.slowest_cursor

    def noting(log: TopicLog) -> ManagedCursor | None:
        seen.append(passes.number)
        return slowest(log)

    monkeypatch.setattr(slices, "SLICE", 0)
    monkeypatch.setattr(backlog, "slowest_cursor", noting)
    with passes_of_the_loop() as passes:
        await rest.get(STATS)
    assert len(seen) == len(set(seen)) == 2


async def test_stats_of_a_fresh_topic_have_pulsars_order(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    stats = await rest.get(STATS)
    assert list(stats) == TOPIC_FIELDS
    assert (stats["publishers"], stats["subscriptions"], stats["replication"]) == ([], {}, {})
    assert stats["ownerBroker"] == "localhost:8080"
    assert stats["deduplicationStatus"] == "Disabled"
    assert stats["topicCreationTimeStamp"] > 1_700_000_000_000
    assert stats["msgRateIn"] == 0.0
    assert isinstance(stats["msgRateOut"], float)
    numbers = {name: stats[name] for name in TOPIC_FIELDS if isinstance(stats[name], int) and stats[name] > 0}
    assert list(numbers) == ["topicCreationTimeStamp"]


async def test_stats_of_a_fresh_non_persistent_topic_have_pulsars_order(rest: Rest) -> None:
    await rest.done("PUT", f"{NON_PERSISTENT}/t")
    stats = await rest.get(f"{NON_PERSISTENT}/t/stats")
    assert list(stats) == TOPIC_FIELDS[: TOPIC_FIELDS.index("publishers")] + NON_PERSISTENT_END


@pytest.mark.req("B-51")
async def test_fields_of_publishers_and_subscriptions_are_as_recorded(rest: Rest, wire: Wire) -> None:
    await wire.producer(producer_name="p1", metadata=[{"key": "k", "value": "v"}])
    publishers = (await rest.get(STATS))["publishers"]
    assert kinds(publishers) == kinds(recorded("025")[:1])
    await wire.subscribe(
        name="s",
        metadata=[{"key": "mk", "value": "mv"}],
        subscription_properties=[{"key": "k", "value": "v"}],
        replicate_subscription_state=True,
    )
    assert kinds((await rest.get(STATS))["subscriptions"]["s"]) == kinds(recorded("061"))


async def test_stats_show_who_publishes(rest: Rest, wire: Wire) -> None:
    await wire.producer(producer_id=7, producer_name="p", metadata=[{"key": "k", "value": "v"}])
    (publisher,) = (await rest.get(STATS))["publishers"]
    assert publisher["producerId"] == 7
    assert publisher["producerName"] == "p"
    assert publisher["accessMode"] == "Shared"
    assert publisher["address"] == "/test:1"
    assert publisher["clientVersion"] == "wire"
    assert publisher["metadata"] == {"k": "v"}
    assert publisher["connectedSince"].startswith("20")
    assert publisher["connectedSince"].endswith("Z")


@pytest.mark.req("P-04")
async def test_the_epoch_of_a_topic_that_had_an_exclusive_producer(rest: Rest, wire: Wire) -> None:
    await wire.producer()
    assert "topicEpoch" not in await rest.get(STATS)
    await wire.ask(Type.CLOSE_PRODUCER, producer_id=0)
    await wire.producer(producer_access_mode=pb.Exclusive)
    assert (await rest.get(STATS))["topicEpoch"] == 0


@pytest.mark.serving(Config(brokerEntryMetadataInterceptors=(APPEND_BROKER_TIMESTAMP, APPEND_INDEX)))
async def test_stats_count_sizes_and_backlogs(bed: Bed) -> None:
    """A producer's bytes count as they came, storage and deliveries with the broker's entry metadata."""
    rest, wire = rest_of(bed), await bed.connect()
    entry = plain(b"x" * 100)
    await wire.producer()
    for name, kind in (("e", 0), ("s", Shared)):
        await wire.subscribe(name=name, type=kind, consumer_id=kind, initialPosition=Earliest)
    positions = await wire.publish(*[entry] * 10)
    await wire.flow(4, consumer_id=Shared)
    await wire.messages(4)
    await wire.ack(positions[1], positions[3], consumer_id=Shared)
    await wire.ack(positions[4], type=Cumulative)
    stats = await rest.get(f"{STATS}?getEarliestTimeInBacklog=true")
    stored = stats["storageSize"] // 10
    assert stored > len(entry)
    assert (stats["msgInCounter"], stats["bytesInCounter"]) == (10, 10 * len(entry))
    assert (stats["msgOutCounter"], stats["bytesOutCounter"]) == (4, 4 * stored)
    assert stats["storageSize"] == stats["backlogSize"] == 10 * stored
    assert stats["lastPublishTimeStamp"] == stats["earliestMsgPublishTimeInBacklogs"] == 1
    assert stats["nonContiguousDeletedMessagesRanges"] == 2
    exclusive, shared = stats["subscriptions"]["e"], stats["subscriptions"]["s"]
    assert (exclusive["msgBacklog"], exclusive["backlogSize"]) == (5, 5 * stored)
    assert (shared["msgBacklog"], shared["backlogSize"]) == (8, 10 * stored)
    assert (shared["type"], "activeConsumerName" in shared) == ("Shared", False)
    assert (exclusive["type"], exclusive["activeConsumerName"]) == ("Exclusive", "")
    assert shared["nonContiguousDeletedMessagesRanges"] == 2
    assert shared["nonContiguousDeletedMessagesRangesSerializedSize"] == 6  # one ledger, one word
    assert (shared["unackedMessages"], exclusive["unackedMessages"]) == (2, 0)
    (consumer,) = shared["consumers"]
    assert (consumer["availablePermits"], consumer["unackedMessages"]) == (0, 2)
    assert (consumer["msgOutCounter"], consumer["avgMessagesPerEntry"]) == (4, 1)
    for field in ("lastAckedTimestamp", "lastConsumedTimestamp", "lastConsumedFlowTimestamp"):
        assert shared[field] == consumer[field] > 1_700_000_000_000
    assert consumer["firstMessagesSentTimestamp"] == consumer["lastConsumedTimestamp"]
    assert consumer["lastAckedTime"] != "1970-01-01T00:00:00Z"
    assert shared["lastMarkDeleteAdvancedTimestamp"] == 0
    assert exclusive["lastMarkDeleteAdvancedTimestamp"] > 1_700_000_000_000
    assert exclusive["lastConsumedTimestamp"] == 0


async def test_messages_an_entry_are_a_running_average(rest: Rest, wire: Wire) -> None:
    """Pulsar weighs the last average with 0.9 and the newest entry with 0.1."""
    await wire.producer()
    await wire.subscribe()
    await wire.flow()
    averages = []
    for payloads in (b"a", b"ab", b"ab", b"ab", b"ab", b"ab", b"ab", b"ab"):
        await wire.publish(batch_of(*(bytes([each]) for each in payloads)))
        await wire.message()
        averages.append((await rest.get(STATS))["subscriptions"]["sub"]["consumers"][0]["avgMessagesPerEntry"])
    assert averages == [1] * 7 + [2]


async def test_a_consumer_that_left_still_counts(rest: Rest, wire: Wire) -> None:
    await wire.producer()
    await wire.subscribe(type=Failover)
    await wire.publish(batch_of(b"a", b"b", b"c"))
    await wire.flow()
    await wire.next()
    await wire.message()
    during = (await rest.get(STATS))["subscriptions"]["sub"]
    assert during["consumers"][0]["avgMessagesPerEntry"] == 3
    await wire.aclose()
    after = await rest.get(STATS)
    subscription = after["subscriptions"]["sub"]
    assert (subscription["msgOutCounter"], subscription["consumers"]) == (3, [])
    await rest.done("DELETE", f"{TOPICS}/t/subscription/sub")
    assert (await rest.get(f"{TOPICS}/t/stats"))["msgOutCounter"] == 3
    assert subscription["lastConsumedTimestamp"] == during["lastConsumedTimestamp"]
    assert "activeConsumerName" not in subscription
    assert after["publishers"] == []


async def test_redelivery_of_all_counts_as_a_flow_on_the_subscription(rest: Rest, wire: Wire) -> None:
    await wire.subscribe()
    await wire.redeliver()
    await wire.alive()
    stats = (await rest.get(STATS))["subscriptions"]["sub"]
    assert stats["lastConsumedFlowTimestamp"] > 0
    assert stats["consumers"][0]["lastConsumedFlowTimestamp"] == 0


async def test_publishers_consumers_and_backlog_sizes_can_be_left_out(rest: Rest, wire: Wire) -> None:
    await wire.producer()
    await wire.subscribe()
    stats = await rest.get(f"{STATS}?excludePublishers=true&excludeConsumers=true&subscriptionBacklogSize=false")
    assert stats["publishers"] == stats["subscriptions"]["sub"]["consumers"] == []
    assert stats["subscriptions"]["sub"]["backlogSize"] == -1


async def test_an_empty_backlog_has_no_earliest_time(rest: Rest, wire: Wire) -> None:
    await wire.subscribe()
    stats = await rest.get(f"{STATS}?getEarliestTimeInBacklog=true")
    assert stats["subscriptions"]["sub"]["earliestMsgPublishTimeInBacklog"] == -1
    assert stats["earliestMsgPublishTimeInBacklogs"] == 0


BACKLOG_AGE = "oldestBacklogMessageAgeSeconds"
PRECISE = Config(exposeSubscriptionBacklogAgeInPrometheus=True, preciseTimeBasedBacklogQuotaCheck=True)
WITH_AGES = profile_of("pip", pip=[488])


async def ages(rest: Rest, url: str = STATS) -> dict[str, int]:
    return {name: each[BACKLOG_AGE] for name, each in (await rest.get(url))["subscriptions"].items()}


@pytest.mark.serving(PRECISE, profile=WITH_AGES)
async def test_the_age_of_a_backlog_is_that_of_its_first_unacknowledged_message(
    bed: Bed, rest: Rest, wire: Wire
) -> None:
    await wire.producer()
    for consumer_id, name in enumerate(("none", "first", "second", "all")):
        await wire.subscribe(name=name, type=Shared, consumer_id=consumer_id)
        await wire.flow(consumer_id=consumer_id)
    now = bed.broker.clock.now_ms()
    first, second = await wire.publish(*(plain(b"x", publish_time=now - age) for age in (20_000, 10_000)))
    await wire.messages(8)
    await wire.ack(first, consumer_id=1)
    await wire.ack(second, consumer_id=2)
    await wire.ack(first, second, consumer_id=3)
    assert await ages(rest) == {"none": 20, "first": 10, "second": 20, "all": -1}


@pytest.mark.serving(
    Config(
        exposeSubscriptionBacklogAgeInPrometheus=True,
        managedLedgerMaxEntriesPerLedger=1,
        managedLedgerMinLedgerRolloverTimeMinutes=0,
    ),
    profile=PULSAR_5_0,
)
async def test_an_estimated_age_of_a_backlog_is_that_of_the_closed_ledger(bed: Bed, rest: Rest, wire: Wire) -> None:
    """A real 5.0.1 answers so."""
    await wire.producer()
    for consumer_id, name in enumerate(("none", "first", "all")):
        await wire.subscribe(name=name, consumer_id=consumer_id)
    lab = bed.broker.cluster.attached(Lab)
    (first,) = await wire.publish(plain(b"x"))
    await lab.clock.advance(30)
    (second,) = await wire.publish(plain(b"x"))
    await lab.clock.advance(10)
    await wire.ack(first, type=Cumulative, consumer_id=1)
    await wire.ack(second, type=Cumulative, consumer_id=2)
    assert await ages(rest) == {"none": 40, "first": 10, "all": -1}


@pytest.mark.serving(PRECISE, profile=WITH_AGES)
async def test_only_durable_subscriptions_have_an_age_of_a_backlog(rest: Rest, wire: Wire) -> None:
    """A real 5.0.1 answers so."""
    await wire.producer()
    await wire.publish(plain(b"x", partition_key="k"))
    await rest.done("PUT", f"{TOPICS}/t/compaction")
    await trio.sleep(1)
    assert (await rest.get(f"{TOPICS}/t/compaction"))["status"] == "SUCCESS"
    await wire.subscribe(name="reader", durable=False, initialPosition=Earliest, consumer_id=1)
    await wire.publish(plain(b"x", partition_key="k"))
    await wire.subscribe("non-persistent://public/default/n", consumer_id=2)
    assert await ages(rest) == {"reader": -1, "__compaction": -1}
    assert await ages(rest, f"{NON_PERSISTENT}/n/stats") == {"sub": -1}


@pytest.mark.parametrize(("profile", "shown"), [(PIP, False), (PROFILES["pulsar-5.0-m1"], False), (PULSAR_5_0, True)])
async def test_the_age_of_a_backlog_is_computed_on_request_only(
    profile: Profile, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed = list[ManagedCursor]()
    monkeypatch.setattr(stats_json, "oldest_of", lambda cursor, config: computed.append(cursor))
    async with serving(profile=profile) as bed:
        wire = await bed.connect()
        await wire.producer()
        await wire.subscribe()
        await wire.publish(plain(b"x"))
        stats = (await rest_of(bed).get(STATS))["subscriptions"]["sub"]
    assert (BACKLOG_AGE in stats, stats.get(BACKLOG_AGE, -1), computed) == (shown, -1, [])


@asynccontextmanager
async def with_delayed(profile: Profile, count: int) -> AsyncIterator[tuple[Rest, Wire, list[Position]]]:
    """Serve a producer and a Shared consumer, and publish messages that are delayed by an hour."""
    async with serving(profile=profile) as bed:
        rest, wire = rest_of(bed), await bed.connect()
        await wire.producer()
        await wire.subscribe(type=Shared)
        await wire.flow()
        later = bed.broker.clock.now_ms() + 3_600_000
        yield rest, wire, await wire.publish(*[plain(b"x", deliver_at_time=later)] * count)


async def delayed(rest: Rest) -> tuple[int, int, int]:
    stats = (await rest.get(STATS))["subscriptions"]["sub"]
    return stats["msgBacklog"], stats["msgDelayed"], stats["msgBacklogNoDelayed"]


@pytest.mark.parametrize(("profile", "left"), [(PIP, (1, 0)), (PULSAR_4_2, (5, -4))])
async def test_delayed_messages_that_were_acknowledged_are_delayed_no_more(
    profile: Profile, left: tuple[int, int]
) -> None:
    async with with_delayed(profile, 5) as (rest, wire, positions):
        assert await delayed(rest) == (5, 5, 0)
        await wire.ack(positions[2], positions[4])
        await rest.done("POST", f"{TOPICS}/t/subscription/sub/skip/2")
        assert await delayed(rest) == (1, *left)


@pytest.mark.parametrize(("profile", "left"), [(PIP, (0, 0)), (PULSAR_4_2, (3, -3))])
async def test_delayed_messages_before_a_cursor_that_was_reset_are_delayed_no_more(
    profile: Profile, left: tuple[int, int]
) -> None:
    async with with_delayed(profile, 3) as (rest, wire, _):
        await rest.done("POST", f"{TOPICS}/t/subscription/sub/resetcursor/{2**62}")
        assert await delayed(rest) == (0, *left)
        assert (await wire.next())[0].type == Type.CLOSE_CONSUMER
        await wire.subscribe(consumer_id=2, type=Shared)
        await wire.flow(consumer_id=2)
        await wire.alive()
        assert await delayed(rest) == (0, 0, 0)


@pytest.mark.parametrize(("profile", "left"), [(PIP, (0, 3)), (PULSAR_4_2, (3, 0))])
async def test_delayed_messages_wait_for_a_consumer_once_nobody_is_there(
    profile: Profile, left: tuple[int, int]
) -> None:
    async with with_delayed(profile, 3) as (rest, wire, _):
        await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
        assert await delayed(rest) == (3, *left)
        await wire.subscribe(consumer_id=2, type=Shared)
        assert await delayed(rest) == (3, 0, 3)
        await wire.flow(consumer_id=2)
        await wire.alive()
        assert await delayed(rest) == (3, 3, 0)


@pytest.mark.parametrize("profile", [PIP, PULSAR_4_2])
async def test_nothing_is_delayed_once_everything_was_skipped(profile: Profile) -> None:
    async with with_delayed(profile, 3) as (rest, wire, _):
        await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
        await rest.done("POST", f"{TOPICS}/t/subscription/sub/skip_all")
        assert await delayed(rest) == (0, 0, 0)


async def test_a_negative_publish_time_is_shown_as_such(rest: Rest, wire: Wire) -> None:
    await wire.producer()
    await wire.subscribe()
    await wire.publish(plain(b"x", publish_time=2**64 - 5))
    assert (await rest.get(STATS))["lastPublishTimeStamp"] == -5


async def test_stats_of_a_subscription_that_nobody_ever_used(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/t/subscription/s?replicated=true")
    subscription = (await rest.get(STATS))["subscriptions"]["s"]
    assert (subscription["type"], subscription["isReplicated"], subscription["replicated"]) == ("None", True, True)


async def test_stats_of_a_non_persistent_topic_in_use(rest: Rest, wire: Wire) -> None:
    await wire.producer(f"non-{TOPIC}")
    await wire.subscribe(f"non-{TOPIC}", type=Shared)
    await wire.flow(1)
    await wire.alive()
    await wire.write(wire.sends(plain(b"a")))
    assert {(await wire.next()).command.type for _ in range(2)} == {Type.MESSAGE, Type.SEND_RECEIPT}
    stats = await rest.get(f"{NON_PERSISTENT}/t/stats")
    subscription = stats["subscriptions"]["sub"]
    assert stats["publishers"][0]["msgDropRate"] == subscription["msgDropRate"] == 0.0
    assert list(subscription)[-3:] == ["msgDropRate", "durable", "replicated"]
    assert (subscription["isDurable"], subscription["msgOutCounter"], subscription["msgBacklog"]) == (False, 1, 0)
    assert subscription["consumers"][0]["lastConsumedTimestamp"] > subscription["lastConsumedTimestamp"] == 0


async def test_partitions_that_were_never_made_have_no_internal_stats(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/p/partitions", 2)
    missing = (404, "Topic partitions were not yet created")
    assert await rest.refused("GET", f"{TOPICS}/p-partition-2/internalStats") == missing
    nowhere = f"{ADMIN}/persistent/public/nope/t/internalStats"
    assert await rest.refused("GET", nowhere) == (404, "Namespace not found")
