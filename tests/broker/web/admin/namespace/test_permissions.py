"""/admin/v2: grants."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config import PULSAR_4_2
from tests.broker.web.admin.rest import NAMESPACES, TOPICS, Rest, rest_of
from tests.broker.web.admin.steps import PAGE, Step, Text, play
from tests.broker.wire import Bed

DEFAULT = f"{NAMESPACES}/public/default"
URL = f"{DEFAULT}/permissions"
TOPIC = f"{TOPICS}/t"
NAME = "persistent://public/default/t"
GRANT = f"POST {NAMESPACES}/grantPermissionsOnTopics"
REVOKE = f"POST {NAMESPACES}/revokePermissionsOnTopics"
NO_TOPIC = {"reason": "Topic persistent://public/default/absent not found"}


async def test_names_that_are_words_of_other_routes(rest: Rest) -> None:
    await play(
        rest,
        Step(f"DELETE {URL}/subscription/r1", 404, {"reason": "No grants of subscription subscription"}),
        Step(f"POST {URL}/subscription/subscription", 204, value=["r1", "r2"]),
        Step(f"DELETE {URL}/subscription/r1", 204),
        Step(f"GET {URL}/subscription/", 200, {"subscription": ["r2"]}),
        Step(f"POST {URL}/subscription", 204, value=["produce"]),
        Step(f"GET {URL}/", 200, {"subscription": ["produce"]}),
        Step(f"DELETE {URL}/subscription/", 204),
        Step(f"GET {URL}", 200, {}),
        Step(f"PUT {URL}/subscription", 405),
        Step(f"DELETE {DEFAULT}/topics", 412, {"reason": "Invalid bundle range: topics"}),
        Step(f"PUT {TOPICS}/partitioned", 204),
        Step(f"GET {TOPICS}", 200, ["persistent://public/default/partitioned"]),
    )


@pytest.mark.serving(profile=PULSAR_4_2)
async def test_a_subscription_without_grants_as_released(bed: Bed) -> None:
    for name in ("s1", "subscription"):
        status, text = await rest_of(bed).refused("DELETE", f"{URL}/{name}/r1")
        assert (status, "couldn't find subscription" in text) == (500, True)


async def test_grants_want_a_list_of_a_namespace_that_is_there(rest: Rest) -> None:
    of_missing = f"{NAMESPACES}/public/missing/permissions/subscription/s1"
    await play(
        rest,
        Step(f"POST {URL}/r1", 400, {"reason": "Actions should not be null"}),
        Step(f"POST {URL}/r1", 400, Text("Cannot deserialize value of type `java.util.HashSet"), {}),
        Step(f"POST {URL}/subscription/s1", 400, {"reason": "Roles should not be null"}),
        Step(f"POST {of_missing}", 404, {"reason": "Namespace does not exist"}, ["r1"]),
        Step(f"DELETE {TOPICS}/absent/permissions/r", 404, NO_TOPIC),
    )


async def test_grants_of_a_topic_are_added_to_those_of_its_namespace(rest: Rest) -> None:
    url = f"{TOPIC}/permissions"
    await rest.done("PUT", TOPIC)
    await play(
        rest,
        Step(f"POST {URL}/r1", 204, value=["consume"]),
        Step(f"POST {url}/r1", 204, value=["produce"]),
        Step(f"POST {url}/r2", 204, value=["wrong"]),
        Step(f"POST {url}/r3", 204, value=None),
        Step(f"GET {url}", 200, {"r1": ["consume", "produce"], "r2": [None], "r3": []}),
        Step(f"GET {URL}", 200, {"r1": ["consume"]}),
        *(Step(f"DELETE {url}/{role}", 204) for role in ("r1", "r1", "r2", "r3")),
        Step(f"GET {url}", 200, {"r1": ["consume"]}),
    )
    assert (await rest.get(DEFAULT))["auth_policies"]["destination_auth"] == {}


async def test_grants_of_a_partitioned_topic_are_not_those_of_its_partitions(rest: Rest) -> None:
    url, partition = f"{TOPICS}/p/permissions", f"{TOPICS}/p-partition-0/permissions"
    await rest.done("PUT", f"{TOPICS}/p/partitions", 2)
    await play(
        rest,
        Step(f"POST {url}/r", 204, value=["consume"]),
        Step(f"POST {partition}/r", 204, value=["produce"]),
        Step(f"GET {url}", 200, {"r": ["consume"]}),
        Step(f"GET {partition}", 200, {"r": ["produce"]}),
        Step(f"DELETE {url}/r", 204),
        Step(f"GET {partition}", 200, {}),
    )


async def test_grants_of_several_topics_are_made_at_once(rest: Rest) -> None:
    for local in ("t", "u"):
        await rest.done("PUT", f"{TOPICS}/{local}")
    both = [{"topic": NAME, "role": "r", "actions": ["produce"]}, {"topic": "u", "role": "r", "actions": ["consume"]}]
    await play(
        rest,
        Step(GRANT, 204, value=both),
        Step(f"GET {TOPIC}/permissions", 200, {"r": ["produce"]}),
        Step(f"GET {TOPICS}/u/permissions", 200, {"r": ["consume"]}),
        Step(REVOKE, 204, value=[{"topic": NAME, "role": "r"}, {"topic": NAME, "role": "none"}]),
        Step(f"GET {TOPIC}/permissions", 200, {}),
        Step(f"GET {TOPICS}/u/permissions", 200, {"r": ["consume"]}),
    )


@pytest.mark.parametrize(
    ("sent", "status", "answer"),
    [
        ([], 400, {"reason": "The namespace should be the same"}),
        (
            [{"topic": NAME, "role": "r"}, {"topic": "persistent://public/n/t", "role": "r"}],
            400,
            {"reason": "The namespace should be the same"},
        ),
        ([{"topic": "persistent://nope/ns/t", "role": "r"}], 404, {"reason": "Tenant does not exist"}),
        ([{"topic": "absent", "role": "r"}], 404, NO_TOPIC),
        ([{"topic": "a:/b", "role": "r"}], 400, Text(PAGE)),
        ({}, 400, Text("Cannot deserialize value of type `java.util.ArrayList")),
        ([1], 400, Text("Cannot deserialize value of type `java.util.ArrayList")),
        ([{"topic": NAME, "role": "r", "actions": "x"}], 400, Text("Cannot deserialize value of type")),
    ],
)
async def test_lists_of_grants_that_say_nonsense_are_refused(rest: Rest, sent: Any, status: int, answer: Any) -> None:
    await rest.done("PUT", TOPIC)
    await play(rest, Step(GRANT, status, answer, sent))
