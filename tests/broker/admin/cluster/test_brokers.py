"""/admin/v2/brokers."""

from __future__ import annotations

import pytest

from tests.broker.admin.rest import ADMIN, Rest

BROKERS = f"{ADMIN}/brokers"


@pytest.mark.parametrize("path", ["health", "health?topicVersion=V2", "health?brokerId=localhost%3A8080", "ready"])
async def test_it_is_well(rest: Rest, path: str) -> None:
    answer = await rest.call("GET", f"{BROKERS}/{path}")
    assert (answer.status, answer.body, answer.headers["content-type"]) == (200, b"ok", "application/json")


async def test_the_health_of_another_broker(rest: Rest) -> None:
    refused = (404, "Broker id 'nope:1' not found in available brokers.")
    assert await rest.refused("GET", f"{BROKERS}/health?brokerId=nope%3A1") == refused


async def test_which_brokers_there_are(rest: Rest) -> None:
    for cluster in ("", "/standalone", "/whatever"):
        assert await rest.get(f"{BROKERS}{cluster}") == ["localhost:8080"]
    leader = {"serviceUrl": "http://localhost:8080", "brokerId": "localhost:8080"}
    assert await rest.get(f"{BROKERS}/leaderBroker") == leader


async def test_configuration(rest: Rest) -> None:
    runtime = await rest.get(f"{BROKERS}/configuration/runtime")
    assert runtime["maxMessageSize"] == "5242880"
    assert runtime["allowAutoTopicCreation"] == "true"
    assert runtime["advertisedAddress"] == ""
    assert runtime["subscriptionTypesEnabled"] == "Exclusive,Failover,Key_Shared,Shared"
    assert all(isinstance(value, str) for value in runtime.values())


async def test_version_and_quotas(rest: Rest) -> None:
    version = await rest.call("GET", f"{BROKERS}/version")
    assert version.body
    assert b" " not in version.body
    await rest.done("GET", f"{BROKERS}/backlog-quota-check")
