"""/admin/v2/namespaces: policies one by one."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config import PIP, PULSAR_4_2, Config
from pulsarium.broker.web.admin.policies.namespaces import POLICIES
from tests.broker.web.admin.rest import NAMESPACES, Rest, rest_of
from tests.broker.wire import Bed, serving

DEFAULT = f"{NAMESPACES}/public/default"
MISSING = f"{NAMESPACES}/public/missing"
ADMINS_WORDS = "Namespace does not exist"
PARTITIONED = {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 3}


@pytest.mark.serving(Config(maxNumPartitionsPerPartitionedTopic=2))
async def test_more_partitions_than_a_topic_may_have(bed: Bed) -> None:
    answer = await rest_of(bed).refused("POST", f"{DEFAULT}/autoTopicCreation", PARTITIONED)
    assert answer == (406, "Number of partitions should be less than or equal to 2")


@pytest.mark.parametrize("value", [["Wrong"], None])
async def test_subscription_types_that_pulsar_stumbles_over(value: Any) -> None:
    for profile, status, message in ((PULSAR_4_2, 500, "Request failed."), (PIP, 400, "Bad Request")):
        async with serving(profile=profile) as bed:
            answer = await rest_of(bed).call("POST", f"{DEFAULT}/subscriptionTypesEnabled", value)
            assert (answer.status, answer.json["message"]) == (status, message)


# Policies that need a body besides numbers and flags, with the status of a request without one.
WANTED = {
    "subscriptionTypesEnabled": 400,
    "persistence": 400,
    "replication": 412,
    "allowedClusters": 400,
    "offloadPolicies": 412,
}


async def test_only_numbers_flags_and_a_few_others_need_a_body(rest: Rest) -> None:
    for policy in POLICIES:
        if policy.methods != ("DELETE",):
            answer = await rest.call("PUT" if "PUT" in policy.methods else "POST", f"{DEFAULT}/{policy.word}")
            needs_body = policy.kind.is_primitive and policy.rule.read is None
            assert answer.status == (400 if needs_body else WANTED.get(policy.word, 204)), policy.word


def test_each_policy_of_a_namespace_is_guarded_by_a_policy_name_of_pulsar() -> None:
    """Superusers alone may set delayed delivery."""
    for policy in POLICIES:
        right = policy.row.right
        writes = "superuser" if policy.word == "delayedDelivery" else f"namespace policy WRITE {right}"
        found = [str(policy.needs(write=write)) for write in (False, True)]
        assert found == [f"namespace policy READ {right}", writes], policy.word


async def test_a_negative_time_of_retention_is_refused(rest: Rest) -> None:
    sent = {"retentionTimeInMinutes": -2, "retentionSizeInMB": -1}
    status, reason = await rest.refused("POST", f"{DEFAULT}/retention", sent)
    assert (status, "time limit must be >= -1" in reason) == (400, True)


QUOTA = {"limitSize": 1000, "limitTime": -1, "policy": "producer_exception"}


async def test_backlog_quotas_that_are_none_are_refused(rest: Rest) -> None:
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


async def test_policies_of_a_new_namespace_are_read_alike(rest: Rest) -> None:
    url = f"{NAMESPACES}/public/n"
    given = {
        "retention_policies": {"retentionTimeInMinutes": "5", "retentionSizeInMB": 7.5, "other": 1},
        "backlog_quota_map": {"destination_storage": {"limit": 5}, "other": None},
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
        {"backlog_quota_map": {"DESTINATION_STORAGE": {"limit": 5}}},
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
