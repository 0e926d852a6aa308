"""/admin/v2/persistent and non-persistent: policies of topics one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.web.admin.policies.topics import POLICIES as TABLE
from pulsarium.proto.topic_name import TopicName
from tests.broker.web.admin.rest import NAMESPACES, NON_PERSISTENT, TOPICS, Rest, rest_of
from tests.broker.wire import Bed, serving

DEFAULT = f"{NAMESPACES}/public/default"


@pytest.fixture
async def topic(rest: Rest) -> str:
    await rest.done("PUT", f"{TOPICS}/t")
    return f"{TOPICS}/t"


async def test_a_message_may_not_be_larger_than_the_brokers(rest: Rest, topic: str) -> None:
    await rest.done("POST", f"{topic}/maxMessageSize", Config().maxMessageSize)
    status, _ = await rest.refused("POST", f"{topic}/maxMessageSize", Config().maxMessageSize + 1)
    assert status == 412


def test_each_policy_of_a_topic_is_guarded_by_a_policy_name_of_pulsar() -> None:
    """Admins of the tenant alone may read and set maxMessageSize."""
    for policy in TABLE:
        found = [str(policy.needs(write=write)) for write in (False, True)]
        right = policy.row.right
        usual = [f"topic policy READ {right}", f"topic policy WRITE {right}"]
        assert found == (["tenant admin"] * 2 if policy.word == "maxMessageSize" else usual), policy.word


async def test_no_policy_of_a_partition_or_of_nothing_is_deleted(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/p/partitions", 1)
    no_partition = (412, "Not allowed to set/get topic policy for a partition")
    for policy in TABLE:
        if "DELETE" in policy.methods:
            assert await rest.refused("DELETE", f"{TOPICS}/p-partition-0/{policy.word}") == no_partition, policy.word
            assert (await rest.refused("DELETE", f"{TOPICS}/absent/{policy.word}"))[0] == 404, policy.word


@pytest.mark.parametrize("wrong", [["Wrong"], None])
async def test_subscription_types_of_a_topic_are_types(rest: Rest, topic: str, wrong: Any) -> None:
    status, text = await rest.refused("POST", f"{topic}/subscriptionTypesEnabled", wrong)
    assert (status, "is null" in text) == (400, True)


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


async def test_local_policies_hold_before_global_ones(rest: Rest, topic: str, bed: Bed) -> None:
    url, loaded = f"{topic}/maxConsumers", bed.topic()
    await rest.done("POST", f"{url}?isGlobal=true", 10)
    assert await rest.get(f"{url}?isGlobal=true") == await rest.get(f"{url}?isGlobal=true&applied=true") == 10
    assert (await rest.call("GET", url)).body == b""
    assert await rest.get(f"{url}?applied=true") == 0  # as in Pulsar, although the global value takes effect
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


async def test_policies_of_a_non_persistent_topic_stay_until_its_namespace_goes(rest: Rest, bed: Bed) -> None:
    await rest.done("PUT", f"{NON_PERSISTENT}/t")
    await rest.done("POST", f"{NON_PERSISTENT}/t/maxConsumers", 3)
    assert await rest.get(f"{NON_PERSISTENT}/t/maxConsumers") == 3
    await rest.done("PUT", f"{NON_PERSISTENT}/t/unload")
    assert list(bed.broker.metadata.topic_policies) == ["non-persistent://public/default/t"]
    await rest.done("DELETE", DEFAULT)
    assert bed.broker.metadata.topic_policies == {}


async def test_policies_are_still_there_after_a_restart(tmp_path: Path) -> None:
    async with serving(data=tmp_path) as bed:
        rest = rest_of(bed)
        await rest.done("PUT", f"{TOPICS}/t")
        await rest.done("POST", f"{TOPICS}/t/maxConsumers", 3)
        await rest.done("POST", f"{DEFAULT}/maxProducersPerTopic", 4)
    async with serving(data=tmp_path) as bed:
        policies = bed.topic().policies
        assert (policies.max_consumers, policies.max_producers) == (3, 4)
