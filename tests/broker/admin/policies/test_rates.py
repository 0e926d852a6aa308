"""/admin/v2: rates of dispatch and of publishing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.broker.admin.rest import NAMESPACES, TOPICS, Rest
from tests.broker.admin.steps import Reason, Step, Text, play

DEFAULT = f"{NAMESPACES}/public/default"
MISSING = f"{NAMESPACES}/public/missing"
TOPIC = f"{TOPICS}/t"
RATE = {
    "dispatchThrottlingRateInMsg": 100,
    "dispatchThrottlingRateInByte": 10000,
    "relativeToPublishRate": True,
    "ratePeriodInSecond": 2,
}
ZEROS = dict.fromkeys(RATE, 0) | {"relativeToPublishRate": False}
NONE = ZEROS | {"ratePeriodInSecond": 1}
PUBLISH = {"publishThrottlingRateInMsg": 100, "publishThrottlingRateInByte": 10000}
UNLIMITED = {"publishThrottlingRateInMsg": -1, "publishThrottlingRateInByte": -1}
MALFORMED = Text("Cannot deserialize value of type `int` from String")

# word, field of the whole policies, a rate, what {} is, what a namespace that is not there is told: GET, others
OF_NAMESPACES = [
    (
        "publishRate",
        "publishMaxMessageRate",
        PUBLISH,
        UNLIMITED,
        "Namespace does not exist",
        "Namespace does not exist",
    ),
    ("dispatchRate", "topicDispatchRate", RATE, ZEROS, "Namespace does not exist", "Namespace does not exist"),
    (
        "subscriptionDispatchRate",
        "subscriptionDispatchRate",
        RATE,
        ZEROS,
        "Namespace does not exist",
        "Namespace does not exist",
    ),
    ("replicatorDispatchRate", "replicatorDispatchRate", RATE, ZEROS, "Namespace policies does not exist", ""),
]


@pytest.mark.parametrize(("word", "field", "rate", "empty", "missing_get", "missing"), OF_NAMESPACES)
async def test_of_a_namespace(
    rest: Rest, word: str, field: str, rate: Any, empty: Any, missing_get: str, missing: str
) -> None:
    url, absent = f"{DEFAULT}/{word}", f"{MISSING}/{word}"
    before = await rest.get(DEFAULT)
    older = {"clusterDispatchRate": {"standalone": rate}} if word == "dispatchRate" else {}
    wrong = dict.fromkeys(rate, "x")
    await play(
        rest,
        Step(f"GET {url}", 200),
        Step(f"POST {url}", 204, value=rate),
        Step(f"GET {url}", 200, rate),
        Step(f"GET {DEFAULT}", 200, before | {field: {"standalone": rate}} | older),
        Step(f"POST {url}", 204, value={}),
        Step(f"GET {url}", 200, empty),
        Step(f"POST {url}", 400, MALFORMED, wrong),
        Step(f"POST {url}", 204, value=None),
        Step(f"GET {url}", 200),
        Step(f"POST {url}", 204, value=rate),
        Step(f"DELETE {url}", 204),
        Step(f"GET {DEFAULT}", 200, before),
        Step(f"GET {absent}", 404, {"reason": missing_get}),
        Step(f"POST {absent}", 404, {"reason": missing}, rate),
        Step(f"DELETE {absent}", 404, {"reason": missing}),
    )


@pytest.mark.parametrize("word", ["dispatchRate", "subscriptionDispatchRate", "replicatorDispatchRate"])
async def test_of_a_topic(rest: Rest, word: str) -> None:
    url = f"{TOPIC}/{word}"
    after_null: Any = RATE if word == "dispatchRate" else ""
    await rest.done("PUT", TOPIC)
    await play(
        rest,
        Step(f"GET {url}", 200),
        Step(f"GET {url}?applied=true", 200, NONE),
        Step(f"POST {DEFAULT}/{word}", 204, value=RATE),
        Step(f"GET {url}?applied=true", 200, RATE),
        Step(f"POST {url}", 204, value={}),
        Step(f"GET {url}?applied=true", 200, ZEROS),
        Step(f"POST {url}", 204, value=RATE),
        Step(f"POST {url}", 204, value=None),
        Step(f"GET {url}", 200, after_null),
        Step(f"DELETE {url}", 204),
        Step(f"GET {url}", 200),
        Step(f"GET {TOPICS}/absent/{word}", 404, Reason("Topic persistent://public/default/absent not found")),
    )


async def test_publish_rates_of_a_topic(rest: Rest) -> None:
    url = f"{TOPIC}/publishRate"
    await rest.done("PUT", TOPIC)
    await play(
        rest,
        Step(f"GET {url}", 204),
        Step(f"GET {url}?applied=true", 204),
        Step(f"POST {url}", 204, value=PUBLISH),
        Step(f"POST {url}", 204),  # nothing changes
        Step(f"GET {url}?applied=true", 200, PUBLISH),
        Step(f"GET {url}?isGlobal=true", 204),
        Step(f"DELETE {url}", 204),
        Step(f"GET {url}", 204),
    )
