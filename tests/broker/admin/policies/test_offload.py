"""/admin/v2: offload policies."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config import PULSAR_4_2
from tests.broker.admin.rest import NAMESPACES, TOPICS, Rest, rest_of
from tests.broker.admin.steps import EMPTY, Reason, Step, Text, play
from tests.broker.wire import serving

DEFAULT = f"{NAMESPACES}/public/default"
MISSING = f"{NAMESPACES}/public/missing"
TOPIC = f"{TOPICS}/t"
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
S3 = {
    "managedLedgerOffloadDriver": "aws-s3",
    "managedLedgerOffloadBucket": "bucket",
    "managedLedgerOffloadRegion": "us-west-2",
    "managedLedgerOffloadThresholdInBytes": 1000,
}
S3_SHOWN = UNSET | S3 | {"s3Driver": True}
NO_DRIVER = "The driver is not supported, support value: S3,aws-s3,google-cloud-storage,filesystem,azureblob,aliyun-oss"
NO_BUCKET = "The bucket must be specified for namespace offload."
NOTHING_SENT = "The offloadPolicies must be specified for namespace offload."


# word, unset, the part of the policies that it is, status of PUT
@pytest.mark.parametrize(
    ("word", "unset", "part", "status"),
    [
        ("offloadThreshold", -1, "managedLedgerOffloadThresholdInBytes", 204),
        ("offloadThresholdInSeconds", -1, "managedLedgerOffloadThresholdInSeconds", 200),
        ("offloadDeletionLagMs", EMPTY, "managedLedgerOffloadDeletionLagInMillis", 204),
    ],
)
async def test_numbers_that_are_part_of_them(rest: Rest, word: str, unset: Any, part: str, status: int) -> None:
    url, absent = f"{DEFAULT}/{word}", Reason("Namespace does not exist")
    await play(
        rest,
        Step(f"GET {url}", 200, unset),
        Step(f"PUT {url}", status, value=5),
        Step(f"GET {url}", 200, 5),
        Step(f"GET {DEFAULT}/offloadPolicies", 200, UNSET | {part: 5}),
        Step(f"PUT {url}", status, value=None),
        Step(f"GET {url}", 200, 0),
        Step(f"PUT {url}", 400, Text("Cannot deserialize value of type `long`"), "x"),
        Step(f"PUT {url}", 400, Text("The request entity cannot be empty.")),
        Step(f"GET {MISSING}/{word}", 404, absent),
        Step(f"PUT {MISSING}/{word}", 404, absent, 5),
        Step(f"DELETE {DEFAULT}/removeOffloadPolicies", 204),
        Step(f"GET {url}", 200, unset),
    )


async def test_a_deletion_lag_goes(rest: Rest) -> None:
    url = f"{DEFAULT}/offloadDeletionLagMs"
    await play(rest, Step(f"PUT {url}", 204, value=5), Step(f"DELETE {url}", 204), Step(f"GET {url}", 200))


async def test_older_numbers_of_a_new_namespace_become_part_of_them(rest: Rest) -> None:
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


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        ({}, NO_DRIVER),
        ({"managedLedgerOffloadDriver": "wrong"}, NO_DRIVER),
        ({"managedLedgerOffloadDriver": "aws-s3"}, NO_BUCKET),
        ({"managedLedgerOffloadDriver": "azureblob", "s3ManagedLedgerOffloadBucket": "b"}, NO_BUCKET),
        ({"managedLedgerOffloadDriver": "google-cloud-storage", "s3ManagedLedgerOffloadBucket": "b"}, NO_BUCKET),
        (None, NOTHING_SENT),
    ],
)
async def test_policies_that_are_refused(rest: Rest, sent: Any, reason: str) -> None:
    await rest.done("PUT", TOPIC)
    for where in (DEFAULT, TOPIC):
        await play(rest, Step(f"POST {where}/offloadPolicies", 412, {"reason": reason}, sent))
        await play(rest, Step(f"GET {where}/offloadPolicies", 200))


@pytest.mark.parametrize(
    ("sent", "flags"),
    [
        ({"managedLedgerOffloadDriver": "AWS-S3", "s3ManagedLedgerOffloadBucket": "b"}, {"s3Driver": True}),
        (
            {"managedLedgerOffloadDriver": "google-cloud-storage", "gcsManagedLedgerOffloadBucket": "b"},
            {"gcsDriver": True},
        ),
        ({"managedLedgerOffloadDriver": "filesystem"}, {"fileSystemDriver": True}),
        ({"managedLedgerOffloadDriver": "azureblob", "managedLedgerOffloadBucket": "b"}, {}),
    ],
)
async def test_drivers(rest: Rest, sent: Any, flags: Any) -> None:
    url = f"{DEFAULT}/offloadPolicies"
    await play(rest, Step(f"POST {url}", 204, value=sent), Step(f"GET {url}", 200, UNSET | sent | flags))
    assert list(await rest.get(url))[:2] == ["offloadersDirectory", "managedLedgerOffloadDriver"]


async def test_of_a_namespace(rest: Rest) -> None:
    url = f"{DEFAULT}/offloadPolicies"
    await play(
        rest,
        Step(f"GET {url}", 200),
        Step(f"POST {url}", 204, value=S3 | {"unknown": 1, "managedLedgerOffloadedReadPriority": "wrong"}),
        Step(f"GET {url}", 200, S3_SHOWN),
        Step(f"DELETE {DEFAULT}/removeOffloadPolicies", 204),
        Step(f"GET {url}", 200),
        Step(
            f"POST {url}",
            400,
            Text("Cannot deserialize value of type `java.lang.Integer`"),
            {"managedLedgerOffloadMaxThreads": "x"},
        ),
        Step(f"GET {MISSING}/offloadPolicies", 404, Reason("Namespace does not exist")),
        Step(f"POST {MISSING}/offloadPolicies", 404, Reason("Namespace does not exist"), S3),
        Step(f"DELETE {MISSING}/removeOffloadPolicies", 409, {"reason": "Concurrent modification"}),
    )


async def test_of_a_topic(rest: Rest) -> None:
    url = f"{TOPIC}/offloadPolicies"
    lag = {"managedLedgerOffloadDeletionLagInMillis": 5}
    await rest.done("PUT", TOPIC)
    await play(
        rest,
        Step(f"GET {url}", 200),
        Step(f"GET {url}?applied=true", 200),
        Step(f"PUT {DEFAULT}/offloadDeletionLagMs", 204, value=5),
        Step(f"GET {url}?applied=true", 200, UNSET | lag),
        Step(f"POST {url}", 204, value=S3),
        Step(f"GET {url}", 200, S3_SHOWN),
        Step(f"GET {url}?applied=true", 200, S3_SHOWN | lag),
        Step(f"DELETE {url}", 204),
        Step(f"GET {url}", 200),
    )


async def test_a_namespace_that_is_not_there_as_released() -> None:
    failed = Reason("\n --- An unexpected error occurred in the server ---\n\nMessage: org.apache.pulsar.metadata")
    async with serving(profile=PULSAR_4_2) as bed:
        await play(rest_of(bed), Step(f"POST {MISSING}/offloadPolicies", 500, failed, S3))
