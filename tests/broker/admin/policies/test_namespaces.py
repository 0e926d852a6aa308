"""/admin/v2/namespaces: policies one by one."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.admin.policies.namespaces import POLICIES
from pulsarium.broker.config import PIP, PULSAR_4_2, Config
from tests.broker.admin.rest import NAMESPACES, Rest, rest_of
from tests.broker.wire import serving

DEFAULT = f"{NAMESPACES}/public/default"
MISSING = f"{NAMESPACES}/public/missing"
ADMINS_WORDS = "Namespace does not exist"
POLICIES_WORDS = "Namespace policies does not exist"
EMPTY = b"The request entity cannot be empty."
INVALID = "Invalid configuration for autoTopicCreationOverride. the detail is "
RETENTION = {"retentionTimeInMinutes": 10, "retentionSizeInMB": 100}
DELAYS = {"tickTime": 2000, "active": True, "maxDeliveryDelayInMillis": 100000}
INACTIVE = {
    "inactiveTopicDeleteMode": "delete_when_no_subscriptions",
    "maxInactiveDurationSeconds": 3600,
    "deleteWhileInactive": True,
}
PARTITIONED = {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 3}
RATE = {"subscribeThrottlingRatePerConsumer": 10, "ratePeriodInSecond": 20}

# word, its field in the whole policies, a value, what a namespace that is not there is told on POST
SET_AND_TAKEN_AWAY = [
    ("messageTTL", "message_ttl_in_seconds", 3600, ADMINS_WORDS),
    ("retention", "retention_policies", RETENTION, POLICIES_WORDS),
    ("deduplication", "deduplicationEnabled", False, ADMINS_WORDS),
    ("delayedDelivery", "delayed_delivery_policies", DELAYS, POLICIES_WORDS),
    ("inactiveTopicPolicies", "inactive_topic_policies", INACTIVE, POLICIES_WORDS),
    ("maxUnackedMessagesPerConsumer", "max_unacked_messages_per_consumer", 10, ADMINS_WORDS),
    ("maxUnackedMessagesPerSubscription", "max_unacked_messages_per_subscription", 10, ADMINS_WORDS),
    ("maxProducersPerTopic", "max_producers_per_topic", 10, ADMINS_WORDS),
    ("maxConsumersPerTopic", "max_consumers_per_topic", 0, ADMINS_WORDS),
    ("maxConsumersPerSubscription", "max_consumers_per_subscription", 10, ADMINS_WORDS),
    ("maxSubscriptionsPerTopic", "max_subscriptions_per_topic", 10, POLICIES_WORDS),
    ("subscriptionExpirationTime", "subscription_expiration_time_minutes", 60, ADMINS_WORDS),
    ("autoTopicCreation", "autoTopicCreationOverride", PARTITIONED, ADMINS_WORDS),
    ("autoTopicCreation", "autoTopicCreationOverride", {"allowAutoTopicCreation": False}, ADMINS_WORDS),
    (
        "autoSubscriptionCreation",
        "autoSubscriptionCreationOverride",
        {"allowAutoSubscriptionCreation": False},
        ADMINS_WORDS,
    ),
]


@pytest.mark.parametrize(("word", "field", "value", "missing"), SET_AND_TAKEN_AWAY)
async def test_a_policy_is_set_and_taken_away(rest: Rest, word: str, field: str, value: Any, missing: str) -> None:
    before = await rest.get(DEFAULT)
    assert (await rest.call("GET", f"{DEFAULT}/{word}")).body == b""
    await rest.done("DELETE", f"{DEFAULT}/{word}")
    await rest.done("POST", f"{DEFAULT}/{word}", value)
    assert await rest.get(f"{DEFAULT}/{word}") == value
    assert await rest.get(DEFAULT) == before | {field: value}
    await rest.done("DELETE", f"{DEFAULT}/{word}")
    unset = await rest.call("GET", f"{DEFAULT}/{word}")
    assert (unset.status, unset.body, "content-type" in unset.headers) == (200, b"", False)
    assert await rest.get(DEFAULT) == before
    assert await rest.refused("GET", f"{MISSING}/{word}") == (404, ADMINS_WORDS)
    assert await rest.refused("POST", f"{MISSING}/{word}", value) == (404, missing)
    assert await rest.refused("DELETE", f"{MISSING}/{word}") == (404, missing)


@pytest.mark.parametrize(
    ("word", "method", "unset", "value"),
    [
        ("encryptionRequired", "POST", False, True),
        ("subscriptionTypesEnabled", "POST", [], ["Failover", "Shared"]),
        ("schemaCompatibilityStrategy", "PUT", "UNDEFINED", "BACKWARD"),
        ("subscriptionAuthMode", "POST", "None", "Prefix"),
    ],
)
async def test_policies_that_always_have_a_value(rest: Rest, word: str, method: str, unset: Any, value: Any) -> None:
    assert await rest.get(f"{DEFAULT}/{word}") == unset
    await rest.done(method, f"{DEFAULT}/{word}", value)
    assert await rest.get(f"{DEFAULT}/{word}") == value
    await rest.done(method, f"{DEFAULT}/{word}", unset)
    assert await rest.get(f"{DEFAULT}/{word}") == unset


async def test_a_snapshot_interval_goes_with_null(rest: Rest) -> None:
    url = f"{DEFAULT}/deduplicationSnapshotInterval"
    await rest.done("POST", url, 10)
    assert await rest.get(url) == 10
    await rest.done("POST", url, None)
    assert (await rest.call("GET", url)).body == b""


async def test_a_subscribe_rate_is_kept_for_this_cluster(rest: Rest) -> None:
    url = f"{DEFAULT}/subscribeRate"
    await rest.done("POST", url, RATE)
    assert await rest.get(url) == RATE
    assert (await rest.get(DEFAULT))["clusterSubscribeRate"] == {"standalone": RATE}
    await rest.done("POST", url, {})
    assert await rest.get(url) == {"subscribeThrottlingRatePerConsumer": -1, "ratePeriodInSecond": 30}
    await rest.done("DELETE", url)
    assert (await rest.call("GET", url)).body == b""
    assert (await rest.get(DEFAULT))["clusterSubscribeRate"] == {}


async def test_subscription_types_are_shown_in_one_order(rest: Rest) -> None:
    url = f"{DEFAULT}/subscriptionTypesEnabled"
    await rest.done("POST", url, ["Exclusive", "Shared", "Failover", "Key_Shared", "Shared"])
    assert await rest.get(url) == ["Exclusive", "Key_Shared", "Failover", "Shared"]
    await rest.done("DELETE", url)
    assert await rest.get(url) == []


@pytest.mark.parametrize(
    ("word", "value", "status", "reason"),
    [
        ("messageTTL", -1, 412, "Invalid value for message TTL, message TTL must >= 0"),
        ("retention", {"retentionTimeInMinutes": -1, "retentionSizeInMB": -2}, 400, "size limit must be >= -1"),
        ("retention", {"retentionTimeInMinutes": -2, "retentionSizeInMB": -1}, 400, "time limit must be >= -1"),
        ("retention", {"retentionTimeInMinutes": 10}, 400, "Setting a single time or size limit to 0 is invalid"),
        ("subscriptionExpirationTime", -1, 412, "Invalid value for subscription expiration time"),
        ("deduplicationSnapshotInterval", -1, 412, "interval must be greater than or equal to 0"),
        ("maxProducersPerTopic", -1, 412, "maxProducersPerTopic must be 0 or more"),
        ("maxUnackedMessagesPerConsumer", -1, 412, "maxUnackedMessagesPerConsumer must be 0 or more"),
        ("autoTopicCreation", {"allowAutoTopicCreation": True}, 412, f"{INVALID}Unknown topic type [null]"),
        ("autoTopicCreation", PARTITIONED | {"topicType": "x"}, 412, f"{INVALID}Unknown topic type [x]"),
        ("autoTopicCreation", PARTITIONED | {"topicType": "non-partitioned"}, 412, "is not allowed to be set when the"),
        ("autoTopicCreation", PARTITIONED | {"defaultNumPartitions": 0}, 412, "cannot be less than 1 for partition"),
        ("autoTopicCreation", PARTITIONED | {"defaultNumPartitions": None}, 412, "cannot be null when the type is"),
    ],
)
async def test_values_that_are_refused(rest: Rest, word: str, value: Any, status: int, reason: str) -> None:
    found, text = await rest.refused("POST", f"{DEFAULT}/{word}", value)
    assert found == status
    assert reason in text
    assert await rest.get(DEFAULT) == await rest.get(f"{NAMESPACES}/pulsar/system")


async def test_more_partitions_than_a_topic_may_have() -> None:
    async with serving(Config(maxNumPartitionsPerPartitionedTopic=2)) as bed:
        answer = await rest_of(bed).refused("POST", f"{DEFAULT}/autoTopicCreation", PARTITIONED)
        assert answer == (406, "Number of partitions should be less than or equal to 2")


@pytest.mark.parametrize("value", [["Wrong"], None])
async def test_subscription_types_that_pulsar_stumbles_over(value: Any) -> None:
    for profile, status, message in ((PULSAR_4_2, 500, "Request failed."), (PIP, 400, "Bad Request")):
        async with serving(profile=profile) as bed:
            answer = await rest_of(bed).call("POST", f"{DEFAULT}/subscriptionTypesEnabled", value)
            assert (answer.status, answer.json["message"]) == (status, message)


async def test_bodies_are_read_before_anything_else(rest: Rest) -> None:
    unreadable = await rest.call("POST", f"{MISSING}/messageTTL", "abc")
    assert (unreadable.status, unreadable.headers["content-type"]) == (400, "text/plain")
    assert unreadable.body.startswith(b'Cannot deserialize value of type `int` from String "abc": not a valid `int`')
    empty = await rest.call("POST", f"{MISSING}/messageTTL")
    assert (empty.status, empty.body, empty.headers["content-type"]) == (400, EMPTY, "application/json")


# those that need a value beside the numbers and flags, with what one that is not there is told
WANTED = {
    "subscriptionTypesEnabled": 400,
    "persistence": 400,
    "replication": 412,
    "allowedClusters": 400,
    "offloadPolicies": 412,
}


@pytest.mark.parametrize(
    "policy", [each for each in POLICIES if each.methods != ("DELETE",)], ids=lambda each: each.word
)
async def test_no_body_at_all(rest: Rest, policy: Any) -> None:
    answer = await rest.call("PUT" if "PUT" in policy.methods else "POST", f"{DEFAULT}/{policy.word}")
    needs_body = policy.kind.is_primitive and policy.rule.read is None
    assert answer.status == (400 if needs_body else WANTED.get(policy.word, 204))


@pytest.mark.parametrize("policy", POLICIES, ids=lambda each: each.word)
def test_who_may(policy: Any) -> None:
    """Each is guarded by a PolicyName of Pulsar's; delayed delivery is only set by superusers."""
    assert str(policy.needs(write=False)) == f"namespace policy READ {policy.row.right}"
    writes = "superuser" if policy.word == "delayedDelivery" else f"namespace policy WRITE {policy.row.right}"
    assert str(policy.needs(write=True)) == writes


async def test_a_pause_needs_no_body(rest: Rest) -> None:
    url, word = f"{DEFAULT}/dispatcherPauseOnAckStatePersistent", "dispatcherPauseOnAckStatePersistent"
    assert await rest.get(url) is False
    await rest.done("POST", url)
    assert await rest.get(url) is True
    await rest.done("DELETE", url)
    assert await rest.get(url) is False
    assert await rest.refused("GET", f"{MISSING}/{word}") == (404, POLICIES_WORDS)
    assert await rest.refused("POST", f"{MISSING}/{word}") == (404, ADMINS_WORDS)


async def test_most_topics_of_a_namespace(rest: Rest) -> None:
    url = f"{DEFAULT}/maxTopicsPerNamespace"
    assert await rest.get(url) == 0
    await rest.done("POST", url, 100)
    assert await rest.get(url) == 100
    assert await rest.refused("POST", url, -1) == (412, "maxTopicsPerNamespace must be 0 or more")
    await rest.done("DELETE", url)
    assert await rest.get(url) == 0
    assert await rest.refused("POST", f"{MISSING}/maxTopicsPerNamespace", 1) == (404, POLICIES_WORDS)


async def test_names_that_metrics_may_show(rest: Rest) -> None:
    url = f"{DEFAULT}/allowedTopicPropertyKeysForMetrics"
    await rest.done("POST", url, ["k1", "k2", "k1"])
    assert await rest.get(url) == ["k1", "k2"]
    wrong = await rest.call("POST", url, "x")
    assert wrong.status == 400
    assert wrong.body.startswith(b"Cannot construct instance of `java.util.HashSet`")
    await rest.done("DELETE", url)
    assert (await rest.call("GET", url)).body == b""


# backlog quotas


QUOTA = {"limitSize": 1000, "limitTime": -1, "policy": "producer_exception"}


async def test_backlog_quotas_of_two_kinds(rest: Rest) -> None:
    quotas, quota = f"{DEFAULT}/backlogQuotaMap", f"{DEFAULT}/backlogQuota"
    assert await rest.get(quotas) == {}
    await rest.done("POST", quota, {"limit": 5, "policy": "producer_request_hold"})
    aged = {"limitTime": 3600, "policy": "consumer_backlog_eviction"}
    await rest.done("POST", f"{quota}?backlogQuotaType=message_age", aged)
    shown = {"destination_storage": {"limit": 5, "limitSize": 5, "limitTime": 0, "policy": "producer_request_hold"}}
    aged_shown = {"limit": 0, "limitSize": 0, **aged}
    assert await rest.get(quotas) == shown | {"message_age": aged_shown}
    await rest.done("DELETE", f"{quota}?backlogQuotaType=destination_storage")
    assert await rest.get(quotas) == {"message_age": aged_shown}
    await rest.done("DELETE", f"{quota}?backlogQuotaType=message_age")
    assert await rest.get(quotas) == (await rest.get(DEFAULT))["backlog_quota_map"] == {}


async def test_quotas_that_are_none(rest: Rest) -> None:
    url = f"{DEFAULT}/backlogQuota"
    status, text = await rest.refused("POST", url, {"limitSize": 5, "policy": "wrong"})
    assert status == 400
    assert text.startswith("Set namespace[public/default] backlog quota failed because the data validation failed.")
    assert (await rest.call("POST", f"{url}?backlogQuotaType=wrong", QUOTA)).status == 404
    wrong = await rest.call("DELETE", f"{url}?backlogQuotaType=wrong")
    assert (wrong.status, wrong.body) == (404, b"")
    assert (await rest.call("POST", url, None)).status == 400
    assert await rest.refused("POST", f"{MISSING}/backlogQuota", QUOTA) == (404, "")
    assert await rest.refused("DELETE", f"{MISSING}/backlogQuota") == (404, "")
    assert await rest.refused("GET", f"{MISSING}/backlogQuotaMap") == (404, ADMINS_WORDS)


async def test_quota_and_retention_leave_room_for_each_other(rest: Rest) -> None:
    retention = {"retentionTimeInMinutes": 1, "retentionSizeInMB": 1}
    await rest.done("POST", f"{DEFAULT}/retention", retention)
    for quota in ({"limitSize": 2**20}, {"limitTime": 60}):
        answer = await rest.refused("POST", f"{DEFAULT}/backlogQuota", {**QUOTA, **quota})
        assert answer[0] == 412
        assert answer[1].startswith("Backlog Quota exceeds configured retention quota for namespace.")
    await rest.done("POST", f"{DEFAULT}/backlogQuota", {**QUOTA, "limitSize": 2**20 - 1, "limitTime": 59})
    await rest.done("DELETE", f"{DEFAULT}/retention")
    await rest.done("POST", f"{DEFAULT}/backlogQuota", {**QUOTA, "limitSize": 2**20})
    text = "Retention Quota must exceed configured backlog quota for namespace."
    assert await rest.refused("POST", f"{DEFAULT}/retention", retention) == (412, text)


# with a new namespace


async def test_policies_of_a_new_namespace_are_read_alike(rest: Rest) -> None:
    url = f"{NAMESPACES}/public/n"
    given = {
        "retention_policies": {"retentionTimeInMinutes": "5", "retentionSizeInMB": 7.5, "other": 1},
        "backlog_quota_map": {"destination_storage": {"limit": 5}, "other": {}},
        "clusterSubscribeRate": {"standalone": {"subscribeThrottlingRatePerConsumer": 1}},
        "subscription_types_enabled": ["Shared"],
    }
    await rest.done("PUT", url, given)
    shown = await rest.get(url)
    assert shown["retention_policies"] == {"retentionTimeInMinutes": 5, "retentionSizeInMB": 7}
    assert list(shown["backlog_quota_map"]) == ["destination_storage"]
    assert shown["backlog_quota_map"]["destination_storage"] == {"limit": 5, "limitSize": 5, "limitTime": 0}
    assert await rest.get(f"{url}/subscribeRate") == {"subscribeThrottlingRatePerConsumer": 1, "ratePeriodInSecond": 30}


@pytest.mark.parametrize(
    "policies",
    [
        {"retention_policies": {"retentionTimeInMinutes": "x"}},
        {"backlog_quota_map": {"destination_storage": 1}},
        {"clusterSubscribeRate": {"standalone": 1}},
        {"max_producers_per_topic": {}},
        {"subscription_types_enabled": [[]]},
        {"retention_policies": {"retentionTimeInMinutes": 5}},
        {"max_producers_per_topic": []},
    ],
)
async def test_policies_that_no_namespace_is_made_with(rest: Rest, policies: Any) -> None:
    answer = await rest.call("PUT", f"{NAMESPACES}/public/n", policies)
    assert answer.status == 400
    assert (await rest.call("GET", f"{NAMESPACES}/public/n")).status == 404
