"""Rules of single policies, beyond the recorded calls (conformance/rest)."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config import PULSAR_4_2
from tests.broker.web.admin.rest import ADMIN, NAMESPACES, TENANTS, TOPICS, Rest, rest_of
from tests.broker.web.admin.steps import Reason, Step, Text, play
from tests.broker.wire import Bed, serving

DEFAULT = f"{NAMESPACES}/public/default"
MISSING = f"{NAMESPACES}/public/missing"
TOPIC = f"{TOPICS}/t"
BOTH = ["standalone", "other"]
RATE = {
    "dispatchThrottlingRateInMsg": 100,
    "dispatchThrottlingRateInByte": 10000,
    "relativeToPublishRate": True,
    "ratePeriodInSecond": 2,
}
ZEROS = dict.fromkeys(RATE, 0) | {"relativeToPublishRate": False}


@pytest.fixture
async def topic(rest: Rest) -> str:
    await rest.done("PUT", TOPIC)
    return TOPIC


@pytest.mark.parametrize("word", ["dispatchRate", "subscriptionDispatchRate", "replicatorDispatchRate"])
async def test_a_rate_without_fields_is_zero_in_each_and_replaces_that_of_the_namespace(
    rest: Rest, topic: str, word: str
) -> None:
    await play(
        rest,
        Step(f"POST {DEFAULT}/{word}", 400, Text("Cannot deserialize value of type `int`"), dict.fromkeys(RATE, "x")),
        Step(f"POST {DEFAULT}/{word}", 204, value={}),
        Step(f"GET {DEFAULT}/{word}", 200, ZEROS),
        Step(f"POST {DEFAULT}/{word}", 204, value=RATE),
        Step(f"GET {topic}/{word}?applied=true", 200, RATE),
        Step(f"POST {topic}/{word}", 204, value={}),
        Step(f"GET {topic}/{word}?applied=true", 200, ZEROS),
        Step(f"POST {topic}/{word}", 204, value=RATE),
        Step(f"POST {topic}/{word}", 204, value=None),
        Step(f"GET {topic}/{word}", 200, RATE if word == "dispatchRate" else ""),
    )


async def test_a_publish_rate_without_fields_limits_nothing(rest: Rest) -> None:
    unlimited = {"publishThrottlingRateInMsg": -1, "publishThrottlingRateInByte": -1}
    url = f"{DEFAULT}/publishRate"
    await play(rest, Step(f"POST {url}", 204, value={}), Step(f"GET {url}", 200, unlimited))


async def test_the_rate_of_a_subscription_holds_before_that_of_all(rest: Rest, topic: str, bed: Bed) -> None:
    url, other = f"{topic}/sub%2F1/dispatchRate", RATE | {"dispatchThrottlingRateInMsg": 7}
    await play(
        rest,
        Step(f"POST {DEFAULT}/subscriptionDispatchRate", 204, value=other),
        Step(f"GET {url}?applied=true", 200, other),
        Step(f"POST {url}", 204, value={}),  # an empty rate is no limit
        Step(f"GET {url}", 200),
        Step(f"POST {url}", 204, value=RATE),
        Step(f"GET {url}", 200, RATE),
        Step(f"GET {url}?applied=true", 200, RATE),
        Step(f"GET {topic}/other/dispatchRate", 200),
        Step(f"DELETE {url}", 204),
        Step(f"GET {url}", 200),
    )
    assert bed.broker.metadata.topic_policies == {}


# persistence: quorums of bookies


def quorums(ensemble: int, writes: int, acks: int, rate: float) -> dict[str, Any]:
    return {
        "bookkeeperEnsemble": ensemble,
        "bookkeeperWriteQuorum": writes,
        "bookkeeperAckQuorum": acks,
        "managedLedgerMaxMarkDeleteRate": rate,
    }


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (quorums(1, 2, 1, 0), "Bookkeeper Ensemble (1) >= WriteQuorum (2) >= AckQuorum (1)"),
        (quorums(3, 2, 3, 0), "Bookkeeper Ensemble (3) >= WriteQuorum (2) >= AckQuorum (3)"),
        (quorums(0, 0, 0, -1), "Bookkeeper-Ensemble must be <= 5 and > 0."),
        (quorums(6, 2, 2, 0), "Bookkeeper-Ensemble must be <= 5 and > 0."),
        (quorums(5, 0, 0, 0), "Bookkeeper-WriteQuorum must be <= 5 and > 0."),
        (quorums(5, 5, 0, 0), "Bookkeeper-AckQuorum must be <= 5 and > 0."),
        ({"bookkeeperEnsemble": None}, "Bookkeeper-Ensemble must be <= 5 and > 0."),
        (None, "persistence policies should not be null"),
    ],
)
async def test_quorums_that_do_not_fit_are_refused(rest: Rest, topic: str, sent: Any, reason: str) -> None:
    for where in (DEFAULT, topic):
        refused = Step(f"POST {where}/persistence", 400, {"reason": reason}, sent)
        await play(rest, refused, Step(f"GET {where}/persistence", 200))


async def test_quorums_that_are_not_sent_are_two(rest: Rest, topic: str) -> None:
    wrong = Text("Cannot deserialize value of type `double`")
    url = f"{topic}/persistence"
    await play(
        rest,
        Step(f"POST {url}", 204, value={}),
        Step(f"GET {url}", 200, quorums(2, 2, 2, -1.0)),
        Step(f"POST {DEFAULT}/persistence", 400, wrong, {"managedLedgerMaxMarkDeleteRate": "x"}),
        Step(f"POST {DEFAULT}/persistence", 400, wrong, {"managedLedgerMaxMarkDeleteRate": True}),
    )


# offloading

UNSET = {
    "offloadersDirectory": "./offloaders",
    "managedLedgerOffloadMaxThreads": 2,
    "managedLedgerOffloadReadThreads": 2,
    "managedLedgerOffloadPrefetchRounds": 1,
    "managedLedgerExtraConfigurations": {},
    "s3ManagedLedgerOffloadMaxBlockSizeInBytes": 67108864,
    "s3ManagedLedgerOffloadReadBufferSizeInBytes": 1048576,
    "s3ManagedLedgerOffloadRoleSessionName": "pulsar-s3-offload",
    "gcsManagedLedgerOffloadMaxBlockSizeInBytes": 134217728,
    "gcsManagedLedgerOffloadReadBufferSizeInBytes": 1048576,
    "s3Driver": False,
    "gcsDriver": False,
    "fileSystemDriver": False,
}
FILES = {"managedLedgerOffloadDriver": "filesystem"}


@pytest.mark.parametrize(
    ("sent", "flags"),
    [
        ({"managedLedgerOffloadDriver": "AWS-S3", "s3ManagedLedgerOffloadBucket": "b"}, {"s3Driver": True}),
        (
            {"managedLedgerOffloadDriver": "google-cloud-storage", "gcsManagedLedgerOffloadBucket": "b"},
            {"gcsDriver": True},
        ),
        (FILES, {"fileSystemDriver": True}),
        ({"managedLedgerOffloadDriver": "azureblob", "managedLedgerOffloadBucket": "b"}, {}),
    ],
)
async def test_offload_policies_are_shown_with_what_was_not_sent(rest: Rest, sent: Any, flags: Any) -> None:
    url = f"{DEFAULT}/offloadPolicies"
    unknown = {"unknown": 1, "managedLedgerOffloadedReadPriority": "wrong"}
    await play(rest, Step(f"POST {url}", 204, value=sent | unknown), Step(f"GET {url}", 200, UNSET | sent | flags))
    assert list(await rest.get(url))[:2] == ["offloadersDirectory", "managedLedgerOffloadDriver"]


@pytest.mark.parametrize(
    "sent",
    [
        {"managedLedgerOffloadDriver": "aws-s3"},
        {"managedLedgerOffloadDriver": "azureblob", "s3ManagedLedgerOffloadBucket": "b"},
        {"managedLedgerOffloadDriver": "google-cloud-storage", "s3ManagedLedgerOffloadBucket": "b"},
    ],
)
async def test_a_driver_without_its_bucket_is_refused(rest: Rest, topic: str, sent: Any) -> None:
    refused = (412, "The bucket must be specified for namespace offload.")
    assert await rest.refused("POST", f"{topic}/offloadPolicies", sent) == refused


async def test_single_numbers_are_part_of_the_offload_policies(rest: Rest, topic: str) -> None:
    part = {"managedLedgerOffloadDeletionLagInMillis": 5}
    await rest.done("PUT", f"{DEFAULT}/offloadDeletionLagMs", 5)
    await play(
        rest,
        Step(f"GET {DEFAULT}/offloadPolicies", 200, UNSET | part),
        Step(f"GET {topic}/offloadPolicies?applied=true", 200, UNSET | part),
        Step(f"POST {topic}/offloadPolicies", 204, value=FILES),
        Step(f"GET {topic}/offloadPolicies?applied=true", 200, UNSET | FILES | part | {"fileSystemDriver": True}),
        Step(f"POST {DEFAULT}/offloadPolicies", 400, Text("Cannot des"), {"managedLedgerOffloadMaxThreads": "x"}),
    )


async def test_older_numbers_of_a_new_namespace_become_part_of_the_offload_policies(rest: Rest) -> None:
    url = f"{NAMESPACES}/public/n"
    await rest.done("PUT", url, {"offload_threshold": 7, "offload_deletion_lag_ms": 8})
    await play(
        rest,
        Step(f"GET {url}/offloadThreshold", 200, 7),
        Step(f"PUT {url}/offloadThresholdInSeconds", 200, value=9),
        Step(f"GET {url}/offloadThreshold", 200, 7),
        Step(f"GET {url}/offloadDeletionLagMs", 200, 8),
    )
    policies = await rest.get(url)
    assert policies["offload_threshold"] == -1
    assert policies["offload_policies"]["managedLedgerOffloadThresholdInBytes"] == 7


async def test_offload_policies_of_a_namespace_that_is_not_there_are_a_fault_of_the_released_broker() -> None:
    failed = Reason("\n --- An unexpected error occurred in the server ---\n\nMessage: org.apache.pulsar.metadata")
    async with serving() as bed:
        await play(rest_of(bed), Step(f"POST {MISSING}/offloadPolicies", 404, Reason("Namespace does not"), FILES))
    async with serving(profile=PULSAR_4_2) as bed:
        await play(rest_of(bed), Step(f"POST {MISSING}/offloadPolicies", 500, failed, FILES))


# replication clusters


async def other_cluster(rest: Rest, *, allowed: bool) -> None:
    """Make a second cluster. With `allowed`, tenant public may use it."""
    assert (await rest.call("PUT", f"{ADMIN}/clusters/other", {})).status == 200
    if allowed:
        await rest.done("POST", f"{TENANTS}/public", {"allowedClusters": BOTH})


async def test_a_namespace_is_copied_to_clusters_that_its_tenant_may_use(rest: Rest) -> None:
    url = f"{DEFAULT}/replication"
    not_allowed = Reason("Cluster [other] is not in the list of allowed clusters list for tenant")
    await other_cluster(rest, allowed=False)
    await play(
        rest,
        Step(f"POST {url}", 403, {"reason": "Invalid cluster id: nope"}, ["nope"]),
        Step(f"POST {url}", 403, not_allowed, BOTH),
        Step(f"POST {TENANTS}/public", 204, value={"allowedClusters": BOTH}),
        Step(f"POST {url}", 200, value=BOTH),
        Step(f"GET {url}", 200, BOTH),
    )


async def test_a_namespace_is_copied_to_clusters_that_it_allows(rest: Rest) -> None:
    await other_cluster(rest, allowed=True)
    outside = "Cluster [other] is not in the list of allowed clusters list for namespace [public/default]"
    await play(
        rest,
        Step(f"POST {DEFAULT}/allowedClusters", 200, value=["standalone"]),
        Step(f"POST {DEFAULT}/replication", 400, {"reason": outside}, BOTH),
    )


async def test_clusters_that_are_peers_have_no_namespace_and_no_topic_in_common(rest: Rest, topic: str) -> None:
    await other_cluster(rest, allowed=True)
    await rest.done("POST", f"{ADMIN}/clusters/other/peers", ["standalone"])
    peers = {"reason": "other's peer-clusters [standalone] can't be part of replication-clusters [standalone, other]"}
    await play(
        rest,
        Step(f"POST {DEFAULT}/replication", 409, peers, BOTH),
        Step(f"POST {DEFAULT}/allowedClusters", 409, peers, BOTH),
        Step(f"POST {topic}/replication", 409, peers, BOTH),
        Step(f"POST {DEFAULT}/replication", 200, value=["other"]),
    )


async def test_clusters_of_a_topic_for_all_clusters_are_some_of_its_namespace(rest: Rest, topic: str) -> None:
    url = f"{topic}/replication?isGlobal=true"
    await other_cluster(rest, allowed=True)
    await play(
        rest,
        Step(f"POST {topic}/replication", 403, {"reason": "Invalid cluster id: nope"}, ["standalone", "nope"]),
        Step(f"POST {url}", 412, Reason("Please do not use the global topic level policy when"), ["standalone"]),
        Step(f"POST {DEFAULT}/replication", 200, value=BOTH),
        Step(f"POST {url}", 412, Reason("The policies at the global topic level will only be copied to"), ["nope"]),
        Step(f"POST {url}", 204, value=["other"]),
        Step(f"GET {url}", 200, ["other"]),
    )


async def test_a_shadow_topic_is_persistent_and_there(rest: Rest, topic: str) -> None:
    url, shadow = f"{topic}/shadowTopics", "persistent://public/default/shadow"
    only = {"reason": "Only persistent topic can be set as shadow topic"}
    await play(
        rest,
        Step(f"PUT {url}", 412, {"reason": f"Shadow topic [{shadow}] not exists."}, [shadow]),
        Step(f"PUT {TOPICS}/shadow", 204),
        Step(f"PUT {url}", 204, value=[shadow]),
        Step(f"GET {url}", 200, [shadow]),
        Step(f"PUT {url}", 412, only, [f"non-{shadow}"]),
    )


# entry filters, of which the broker has none

NO_NAMES = {"reason": "entryFilterNames can't be empty. To remove entry filters use the remove method."}


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        ({}, NO_NAMES),
        ({"entryFilterNames": ""}, NO_NAMES),
        ({"entryFilterNames": " , "}, NO_NAMES),
        ({"entryFilterNames": "a,b"}, {"reason": "Entry filter 'a' not found"}),
        ("jms", {"reason": "Entry filter 'jms' not found"}),
        (1, Text("Cannot construct instance")),
    ],
)
async def test_no_entry_filter_can_be_set(rest: Rest, topic: str, sent: Any, answer: Any) -> None:
    for where in (DEFAULT, topic, MISSING):  # the value is checked before the namespace
        await play(rest, Step(f"POST {where}/entryFilters", 400, answer, sent))


async def test_there_is_but_one_schema_strategy_of_a_topic(rest: Rest, topic: str) -> None:
    url = f"{topic}/schemaCompatibilityStrategy"
    await play(
        rest,
        Step(f"PUT {url}", 204, value="BACKWARD"),
        Step(f"GET {url}?isGlobal=true", 200, "BACKWARD"),
        Step(f"PUT {url}", 204, value="WRONG"),
        Step(f"GET {url}", 200),
    )
