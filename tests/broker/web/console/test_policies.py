"""Policies in the console, with the level that each value comes from."""

from __future__ import annotations

from typing import Any

from tests.broker.web.admin.rest import NAMESPACES, TOPICS, Rest

OF_NAMESPACE = "/pulsarium/policies/public/default"
OF_TOPIC = "/pulsarium/policies/persistent/public/default/t"


async def policy(rest: Rest, url: str, word: str) -> tuple[Any, str]:
    (found,) = (each for each in await rest.get(url) if each["word"] == word)
    return found["value"], found["from"]


async def test_a_value_comes_from_the_broker_the_namespace_or_the_topic(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    assert await policy(rest, OF_TOPIC, "compactionThreshold") == (0, "broker")
    await rest.done("PUT", f"{NAMESPACES}/public/default/compactionThreshold", 5)
    assert await policy(rest, OF_TOPIC, "compactionThreshold") == (5, "namespace")
    assert await policy(rest, OF_NAMESPACE, "compactionThreshold") == (5, "namespace")
    await rest.done("POST", f"{TOPICS}/t/compactionThreshold", 7)
    assert await policy(rest, OF_TOPIC, "compactionThreshold") == (7, "topic")
    assert await policy(rest, OF_NAMESPACE, "compactionThreshold") == (5, "namespace")


async def test_a_policy_says_how_its_value_is_set_and_removed(rest: Rest) -> None:
    (found,) = (each for each in await rest.get(OF_NAMESPACE) if each["word"] == "retention")
    assert (found["set"], found["remove"], found["removeAt"]) == ("POST", "DELETE", "retention")
    assert "defaultRetentionTimeInMinutes" in found["key"]


async def test_a_missing_namespace_is_not_found(rest: Rest) -> None:
    assert await rest.refused("GET", "/pulsarium/policies/public/none") == (404, "Namespace does not exist")
