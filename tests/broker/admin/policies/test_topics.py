"""/admin/v2/persistent and non-persistent: policies of topics one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from pulsarium.broker.admin.policies.topics import POLICIES as TABLE
from pulsarium.broker.config import Config
from pulsarium.proto.topic_name import TopicName
from tests.broker.admin.rest import NAMESPACES, NON_PERSISTENT, TOPICS, Rest, rest_of
from tests.broker.wire import Bed, serving

DEFAULT = f"{NAMESPACES}/public/default"
RETENTION = {"retentionTimeInMinutes": 10, "retentionSizeInMB": 100}
DELAYS = {"tickTime": 2000, "active": True, "maxDeliveryDelayInMillis": 5000}
INACTIVE = {
    "inactiveTopicDeleteMode": "delete_when_subscriptions_caught_up",
    "maxInactiveDurationSeconds": 600,
    "deleteWhileInactive": False,
}
RATE = {"subscribeThrottlingRatePerConsumer": 10, "ratePeriodInSecond": 20}

TOO_LARGE = (
    "topic-level maxMessageSize must be greater than or equal to 0 and must be smaller than that in the broker-level"
)

# word, a value, what holds where nothing is set, what a value below zero is told
POLICIES = [
    ("retention", RETENTION, {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0}, None),
    ("deduplicationEnabled", True, False, None),
    ("delayedDelivery", DELAYS, {"tickTime": 1000, "active": True, "maxDeliveryDelayInMillis": 0}, None),
    (
        "inactiveTopicPolicies",
        INACTIVE,
        {
            "inactiveTopicDeleteMode": "delete_when_no_subscriptions",
            "maxInactiveDurationSeconds": 60,
            "deleteWhileInactive": True,
        },
        None,
    ),
    ("maxUnackedMessagesOnConsumer", 100, 50_000, "maxUnackedNum must be 0 or more"),
    ("maxUnackedMessagesOnSubscription", 100, 200_000, "maxUnackedNum must be 0 or more"),
    ("maxProducers", 10, 0, "maxProducers must be 0 or more"),
    ("maxConsumers", 0, 0, "maxConsumers must be 0 or more"),
    (
        "autoSubscriptionCreation",
        {"allowAutoSubscriptionCreation": False},
        {"allowAutoSubscriptionCreation": True},
        None,
    ),
    ("subscribeRate", RATE, {"subscribeThrottlingRatePerConsumer": 0, "ratePeriodInSecond": 30}, None),
]
# those that show no value that holds, with the status of one that is unset
NOT_APPLIED = [
    ("maxConsumersPerSubscription", 10, 204, "Invalid value for maxConsumersPerSubscription"),
    ("maxSubscriptionsPerTopic", 10, 204, "maxSubscriptionsPerTopic must be 0 or more"),
    (
        "maxMessageSize",
        1024,
        204,
        TOO_LARGE,
    ),
    ("deduplicationSnapshotInterval", 10, 200, "interval must be 0 or more"),
]
ANY = [(word, value) for word, value, *_ in [*POLICIES, *NOT_APPLIED]]


@pytest.fixture
async def topic(rest: Rest) -> str:
    await rest.done("PUT", f"{TOPICS}/t")
    return f"{TOPICS}/t"


@pytest.mark.parametrize(("word", "value", "default", "negative"), POLICIES)
async def test_a_policy_is_set_and_taken_away(
    rest: Rest, topic: str, word: str, value: Any, default: Any, negative: str | None
) -> None:
    url = f"{topic}/{word}"
    assert (await rest.call("GET", url)).body == b""
    assert await rest.get(f"{url}?applied=true") == default
    await rest.done("POST", url, value)
    assert await rest.get(url) == await rest.get(f"{url}?applied=true") == value
    if negative is not None:
        assert await rest.refused("POST", url, -1) == (412, negative)
    await rest.done("DELETE", url)
    assert await rest.get(f"{url}?applied=true") == default
    assert (await rest.call("GET", url)).body == b""


@pytest.mark.parametrize(("word", "value", "status", "negative"), NOT_APPLIED)
async def test_policies_that_show_only_what_is_set(
    rest: Rest, topic: str, word: str, value: Any, status: int, negative: str
) -> None:
    url = f"{topic}/{word}"
    assert (await rest.call("GET", f"{url}?applied=true")).status == status
    await rest.done("POST", url, value)
    assert await rest.get(url) == value
    assert await rest.refused("POST", url, -1) == (412, negative)
    await rest.done("DELETE", url)
    assert (await rest.call("GET", url)).status == status


async def test_a_message_may_not_be_larger_than_the_brokers(rest: Rest, topic: str) -> None:
    await rest.done("POST", f"{topic}/maxMessageSize", Config().maxMessageSize)
    status, _ = await rest.refused("POST", f"{topic}/maxMessageSize", Config().maxMessageSize + 1)
    assert status == 412


async def test_a_ttl_stands_in_the_query(rest: Rest, topic: str) -> None:
    url = f"{topic}/messageTTL"
    await rest.done("POST", f"{url}?messageTTL=3600", 5)
    assert await rest.get(url) == 3600
    assert await rest.refused("POST", f"{url}?messageTTL=-1") == (412, "Invalid value for message TTL")
    for wrong in ("abc", "1_0", "99999999999"):
        assert (await rest.call("POST", f"{url}?messageTTL={wrong}")).status == 404
    await rest.done("POST", url, 100)
    assert (await rest.call("GET", url)).body == b""


async def test_an_expiration_time_stands_there_too(rest: Rest, topic: str) -> None:
    url = f"{topic}/subscriptionExpirationTime"
    assert await rest.get(f"{url}?applied=true") == 0
    await rest.done("POST", f"{DEFAULT}/subscriptionExpirationTime", 30)
    assert await rest.get(f"{url}?applied=true") == 30
    await rest.done("POST", f"{url}?subscriptionExpirationTime=60")
    assert await rest.get(url) == await rest.get(f"{url}?applied=true") == 60
    refused = await rest.refused("POST", f"{url}?subscriptionExpirationTime=-1")
    assert refused == (412, "Invalid value for subscription expiration time")
    await rest.done("POST", url)
    assert (await rest.call("GET", url)).body == b""


async def test_a_pause_needs_no_body(rest: Rest, topic: str) -> None:
    url = f"{topic}/dispatcherPauseOnAckStatePersistent"
    assert await rest.get(url) is await rest.get(f"{url}?applied=true") is False
    await rest.done("POST", f"{DEFAULT}/dispatcherPauseOnAckStatePersistent")
    assert await rest.get(url) is False
    assert await rest.get(f"{url}?applied=true") is True
    await rest.done("POST", url)
    assert await rest.get(url) is True
    await rest.done("DELETE", url)
    assert await rest.get(url) is False


@pytest.mark.parametrize("policy", TABLE, ids=lambda each: each.word)
def test_who_may(policy: Any) -> None:
    """Each is guarded by a PolicyName of Pulsar's; the largest message only admins of the tenant see and set."""
    found = [str(policy.needs(write=write)) for write in (False, True)]
    if policy.word == "maxMessageSize":
        assert found == ["tenant admin", "tenant admin"]
    else:
        assert found == [f"topic policy READ {policy.row.right}", f"topic policy WRITE {policy.row.right}"]


async def test_subscription_types(rest: Rest, topic: str) -> None:
    url = f"{topic}/subscriptionTypesEnabled"
    assert await rest.get(url) == []
    await rest.done("POST", url, ["Shared", "Exclusive"])
    assert await rest.get(url) == ["Exclusive", "Shared"]
    for wrong in (["Wrong"], None):
        status, text = await rest.refused("POST", url, wrong)
        assert status == 400
        assert "is null" in text
    await rest.done("DELETE", url)
    assert await rest.get(url) == []


@pytest.mark.parametrize(("word", "value"), ANY)
async def test_topics_that_have_none(rest: Rest, word: str, value: Any) -> None:
    absent = (404, "Topic persistent://public/default/absent not found")
    await rest.done("PUT", f"{TOPICS}/p/partitions", 1)
    for method, sent in (("GET", {}), ("POST", {"value": value}), ("DELETE", {})):
        assert await rest.refused(method, f"{TOPICS}/absent/{word}", **sent) == absent
        assert await rest.refused(method, f"{TOPICS}/p-partition-0/{word}", **sent) == (
            412,
            "Not allowed to set/get topic policy for a partition",
        )
    elsewhere = TOPICS.replace("default", "nowhere")
    assert await rest.refused("GET", f"{elsewhere}/t/{word}") == (404, "Namespace not found")


async def test_partitions_share_what_is_set_for_their_parent(rest: Rest, bed: Bed) -> None:
    await rest.done("PUT", f"{TOPICS}/p/partitions", 2)
    await rest.done("POST", f"{TOPICS}/p/maxProducers", 7)
    partitions = [TopicName.parse(f"persistent://public/default/p-partition-{index}") for index in range(2)]
    assert [bed.broker.topics.find(name).policies.max_producers for name in partitions] == [7, 7]
    await rest.done("DELETE", f"{TOPICS}/p/partitions")
    await rest.done("PUT", f"{TOPICS}/p/partitions", 2)
    assert [bed.broker.topics.find(name).policies.max_producers for name in partitions] == [0, 0]
    assert (await rest.call("GET", f"{TOPICS}/p/maxProducers")).body == b""


async def test_policies_go_with_their_topic(rest: Rest, topic: str, bed: Bed) -> None:
    await rest.done("POST", f"{topic}/maxProducers", 7)
    await rest.done("DELETE", topic)
    assert bed.broker.metadata.topic_policies == {}
    await rest.done("PUT", topic)
    assert (await rest.call("GET", f"{topic}/maxProducers")).body == b""


async def test_all_policies_at_once(rest: Rest, topic: str) -> None:
    await rest.done("POST", f"{topic}/maxProducers", 7)
    await rest.done("POST", f"{topic}/maxConsumers?isGlobal=true", 7)
    await rest.done("DELETE", f"{topic}/policies")
    assert (await rest.call("GET", f"{topic}/maxProducers")).body == b""
    assert await rest.get(f"{topic}/maxConsumers?applied=true") == 0
    await rest.done("DELETE", f"{TOPICS}/absent/policies")


async def test_local_policies_hold_before_global_ones(rest: Rest, topic: str, bed: Bed) -> None:
    url, loaded = f"{topic}/maxConsumers", bed.broker.topics.find(TopicName.parse("persistent://public/default/t"))
    await rest.done("POST", f"{url}?isGlobal=true", 10)
    assert await rest.get(f"{url}?isGlobal=true") == await rest.get(f"{url}?isGlobal=true&applied=true") == 10
    assert (await rest.call("GET", url)).body == b""
    assert await rest.get(f"{url}?applied=true") == 0  # by Pulsar's words, though the other one holds
    assert loaded.policies.max_consumers == 10
    await rest.done("POST", url, 5)
    assert await rest.get(f"{url}?applied=true") == loaded.policies.max_consumers == 5
    await rest.done("DELETE", url)
    assert loaded.policies.max_consumers == 10
    await rest.done("DELETE", f"{url}?isGlobal=true")
    assert loaded.policies.max_consumers == 0
    assert bed.broker.metadata.topic_policies == {}


async def test_quota_and_retention_of_topic_and_namespace_leave_room_for_each_other(rest: Rest, topic: str) -> None:
    retention = {"retentionTimeInMinutes": 1, "retentionSizeInMB": 1}
    large = {"limitSize": 2**20, "policy": "producer_exception"}
    old = {"limitTime": 60, "policy": "producer_exception"}
    too_large = "Backlog Quota exceeds configured retention quota for topic. Please increase retention quota and retry"
    too_short = (
        "Retention Quota must exceed configured backlog quota for topic. Please increase retention quota and retry"
    )
    for where in (topic, DEFAULT):
        await rest.done("POST", f"{where}/retention", retention)
        for query, quota in (("", large), ("?backlogQuotaType=message_age", old)):
            assert await rest.refused("POST", f"{topic}/backlogQuota{query}", quota) == (412, too_large)
        await rest.done("DELETE", f"{where}/retention")
    for where in (topic, DEFAULT):
        for query, quota in (("", large), ("?backlogQuotaType=message_age", old)):
            await rest.done("POST", f"{where}/backlogQuota{query}", quota)
            assert await rest.refused("POST", f"{topic}/retention", retention) == (412, too_short)
            await rest.done("DELETE", f"{where}/backlogQuota{query}")
    await rest.done("POST", f"{topic}/retention", retention)


async def test_the_quotas_that_are_applied_are_those_of_one_place(rest: Rest, topic: str) -> None:
    old = {"limitTime": 60, "policy": "producer_exception"}
    await rest.done("POST", f"{DEFAULT}/backlogQuota?backlogQuotaType=message_age", old)
    of_namespace = {"message_age": {"limit": 0, "limitSize": 0, **old}}
    assert await rest.get(f"{topic}/backlogQuotaMap?applied=true") == of_namespace
    await rest.done("POST", f"{topic}/backlogQuota", {"limitSize": 5, "policy": "producer_exception"})
    assert list(await rest.get(f"{topic}/backlogQuotaMap?applied=true")) == ["destination_storage"]


async def test_backlog_quotas(rest: Rest, topic: str) -> None:
    quotas, quota = f"{topic}/backlogQuotaMap", f"{topic}/backlogQuota"
    none = {"limit": -1, "limitSize": -1, "limitTime": -1, "policy": "producer_request_hold"}
    assert await rest.get(quotas) == {}
    assert await rest.get(f"{quotas}?applied=true") == {"destination_storage": none, "message_age": none}
    await rest.done("POST", f"{quota}?backlogQuotaType=message_age", {"limitTime": 5, "policy": "producer_exception"})
    aged = {"message_age": {"limit": 0, "limitSize": 0, "limitTime": 5, "policy": "producer_exception"}}
    assert await rest.get(quotas) == await rest.get(f"{quotas}?applied=true") == aged
    await rest.done("POST", f"{quota}?backlogQuotaType=message_age", None)
    assert await rest.get(quotas) == {}
    await rest.done("POST", quota, {"limitSize": 5, "policy": "producer_exception"})
    await rest.done("DELETE", quota)
    assert await rest.get(quotas) == {}
    for method in ("POST", "DELETE"):
        assert (await rest.refused(method, f"{TOPICS}/absent/backlogQuota"))[0] == 404


async def test_of_a_non_persistent_topic(rest: Rest, bed: Bed) -> None:
    """They stay while the topic is not there, until its namespace goes."""
    await rest.done("PUT", f"{NON_PERSISTENT}/t")
    await rest.done("POST", f"{NON_PERSISTENT}/t/maxConsumers", 3)
    assert await rest.get(f"{NON_PERSISTENT}/t/maxConsumers") == 3
    await rest.done("PUT", f"{NON_PERSISTENT}/t/unload")
    assert list(bed.broker.metadata.topic_policies) == ["non-persistent://public/default/t"]
    await rest.done("DELETE", DEFAULT)
    assert bed.broker.metadata.topic_policies == {}


def test_policies_are_still_there_after_a_restart(tmp_path: Path) -> None:
    async def first() -> None:
        async with serving(data=tmp_path) as bed:
            rest = rest_of(bed)
            await rest.done("PUT", f"{TOPICS}/t")
            await rest.done("POST", f"{TOPICS}/t/maxConsumers", 3)
            await rest.done("POST", f"{DEFAULT}/maxProducersPerTopic", 4)

    async def second() -> None:
        async with serving(data=tmp_path) as bed:
            policies = bed.broker.topics.find(TopicName.parse("persistent://public/default/t")).policies
            assert (policies.max_consumers, policies.max_producers) == (3, 4)

    trio.run(first)
    trio.run(second)
