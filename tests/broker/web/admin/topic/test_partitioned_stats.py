"""Stats of partitions, added up."""

from __future__ import annotations

import pytest

from pulsarium.broker.config import PROFILES, Config
from tests.broker.web.admin.rest import NON_PERSISTENT, TOPICS, Rest, rest_of
from tests.broker.wire import Bed, Shared, Wire, plain

PARTS = [f"persistent://public/default/p-partition-{i}" for i in range(3)]
URL = f"{TOPICS}/p/partitioned-stats"


async def used(rest: Rest, wire: Wire) -> None:
    """Create three partitions with a producer and a consumer each, and publish 1, 2 and 3 messages."""
    await rest.done("PUT", f"{TOPICS}/p/partitions", 3)
    for index, name in enumerate(PARTS):
        await wire.producer(name, index, producer_name="p")
        await wire.subscribe(name, type=Shared, consumer_id=index, consumer_name="c")
        await wire.publish(*[plain(b"x" * 10)] * (index + 1), producer_id=index)


@pytest.mark.serving(
    Config(exposeSubscriptionBacklogAgeInPrometheus=True, preciseTimeBasedBacklogQuotaCheck=True),
    profile=PROFILES["pulsar-5.0"],
)
async def test_the_age_of_a_backlog_is_that_of_the_oldest_partition(bed: Bed, rest: Rest, wire: Wire) -> None:
    """Pulsar 5.0.1 answers so."""
    await rest.done("PUT", f"{TOPICS}/p/partitions", 3)
    for index, name in enumerate(PARTS):
        await wire.producer(name, index, producer_name="p")
        await wire.subscribe(name, consumer_id=index)
    now = bed.broker.clock.now_ms()
    for index, age in ((0, 4_000), (1, 9_000)):
        await wire.publish(plain(b"x", publish_time=now - age), producer_id=index)
    stats = await rest.get(URL)
    assert stats["subscriptions"]["sub"]["oldestBacklogMessageAgeSeconds"] == 9
    assert stats["oldestBacklogMessageAgeSeconds"] == 9


async def test_stats_of_partitions_are_added_up(rest: Rest, wire: Wire) -> None:
    await used(rest, wire)
    for index in range(3):
        await wire.flow(100, consumer_id=index)
    await wire.messages(6)
    stats = await rest.get(URL)
    each = stats["partitions"]
    assert list(each) == PARTS
    assert [partition["msgInCounter"] for partition in each.values()] == [1, 2, 3]
    assert (stats["msgInCounter"], stats["msgOutCounter"]) == (6, 6)
    assert stats["storageSize"] == sum(partition["storageSize"] for partition in each.values()) > 0
    assert stats["backlogQuotaLimitSize"] == -1
    assert stats["oldestBacklogMessageAgeSeconds"] == 0
    assert stats["metadata"] == {"partitions": 3, "deleted": False}
    assert list(stats)[-2:] == ["metadata", "partitions"]
    assert not {"ownerBroker", "deduplicationStatus"} & stats.keys()
    (publisher,) = stats["publishers"]
    assert list(publisher) == [
        "msgRateIn",
        "msgThroughputIn",
        "averageMsgSize",
        "chunkedMessageRate",
        "producerId",
        "supportsPartialProducer",
    ]
    subscription = stats["subscriptions"]["sub"]
    assert (subscription["type"], subscription["msgBacklog"], subscription["lastConsumedTimestamp"]) == ("Shared", 6, 0)
    (consumer,) = subscription["consumers"]
    assert (consumer["consumerName"], consumer["availablePermits"], consumer["unackedMessages"]) == ("c", 294, 6)
    assert consumer["lastConsumedTime"] == "1970-01-01T00:00:00Z"
    assert consumer["firstConsumedFlowTimestamp"] > 0
    assert not {"address", "connectedSince", "clientVersion", "metadata"} & consumer.keys()


async def test_stats_come_without_single_partitions_when_asked(rest: Rest, wire: Wire) -> None:
    await used(rest, wire)
    assert (await rest.get(f"{URL}?perPartition=false"))["partitions"] == {}


@pytest.mark.req("P-10")
@pytest.mark.serving(Config(aggregatePublisherStatsByProducerName=True))
async def test_partial_producers_are_added_up_to_one_publisher(bed: Bed) -> None:
    rest, wire = rest_of(bed), await bed.connect(flags=["supports_partial_producer"])
    await used(rest, wire)
    (publisher,) = (await rest.get(URL))["publishers"]
    assert (publisher["producerName"], publisher["supportsPartialProducer"]) == ("p", True)


@pytest.mark.req("P-10")
async def test_partial_producers_are_not_added_up_unless_asked(rest: Rest, bed: Bed) -> None:
    wire = await bed.connect(flags=["supports_partial_producer"])
    await used(rest, wire)
    (publisher,) = (await rest.get(URL))["publishers"]
    assert ("producerName" in publisher, publisher["supportsPartialProducer"]) == (False, False)


async def test_stats_of_partitions_that_are_unlike_are_added_up(rest: Rest, wire: Wire) -> None:
    """The last partition has another subscription, and the second one has two consumers."""
    await used(rest, wire)
    await wire.subscribe(PARTS[1], type=Shared, consumer_id=8, consumer_name="d")
    await wire.subscribe(PARTS[2], "other", consumer_id=9)
    subscriptions = (await rest.get(URL))["subscriptions"]
    assert [each["consumerName"] for each in subscriptions["sub"]["consumers"]] == ["c", "d"]
    assert list(subscriptions) == ["sub", "other"]
    assert "activeConsumerName" not in subscriptions["other"]


async def test_stats_of_non_persistent_partitions_are_added_up(rest: Rest, wire: Wire) -> None:
    await rest.done("PUT", f"{NON_PERSISTENT}/p/partitions", 2)
    for index in range(2):
        await wire.producer(f"non-{PARTS[index]}", index)
    stats = await rest.get(f"{NON_PERSISTENT}/p/partitioned-stats")
    assert list(stats)[-6:] == ["msgDropRate", "metadata", "partitions", "publishers", "subscriptions", "replication"]
    assert stats["publishers"][0]["msgDropRate"] == 0.0


async def test_a_topic_whose_partitions_nobody_used_has_stats(rest: Rest) -> None:
    await rest.done("PUT", f"{NON_PERSISTENT}/p/partitions", 2)
    stats = await rest.get(f"{NON_PERSISTENT}/p/partitioned-stats")
    assert stats["metadata"]["partitions"] == 2
