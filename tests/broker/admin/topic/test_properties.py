"""Properties of topics and subscriptions."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.config.keys import APPEND_INDEX
from tests.broker.admin.rest import NON_PERSISTENT, TOPICS, Answer, Rest, rest_of
from tests.broker.wire import TOPIC, serving

URL = f"{TOPICS}/t/properties"
SUBSCRIPTION = f"{TOPICS}/t/subscription/s"


async def test_of_a_topic(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/t", {"a": "1", "n": 2})
    assert await rest.get(URL) == {"a": "1", "n": "2"}
    await rest.done("PUT", URL, {"b": "x"})
    assert await rest.get(URL) == {"a": "1", "n": "2", "b": "x"}
    await rest.done("PUT", URL)
    await rest.done("DELETE", f"{URL}?key=a")
    await rest.done("DELETE", f"{URL}?key=nokey")
    assert await rest.get(URL) == {"n": "2", "b": "x"}
    assert (await rest.refused("DELETE", URL))[0] == 400


async def test_of_a_partitioned_topic(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/t/partitions", 2)
    await rest.done("PUT", URL, {"k": "v", "l": "w"})
    await rest.done("DELETE", f"{URL}?key=l")
    assert await rest.get(URL) == {"k": "v"}
    assert (await rest.get(f"{TOPICS}/t/partitions"))["partitions"] == 2


async def test_an_interceptor_keeps_one_too() -> None:
    async with serving(Config(brokerEntryMetadataInterceptors=(APPEND_INDEX,))) as bed:
        rest = rest_of(bed)
        await rest.done("PUT", f"{TOPICS}/t", {"a": "1"})
        assert await rest.get(URL) == {"a": "1", "index": "-1"}


async def test_they_survive_a_restart(tmp_path: Path) -> None:
    async with serving(data=tmp_path) as bed:
        await rest_of(bed).done("PUT", f"{TOPICS}/t", {"a": "not a number"})
    async with serving(data=tmp_path) as bed:
        assert await rest_of(bed).get(URL) == {"a": "not a number"}


async def test_of_nothing(rest: Rest) -> None:
    assert await rest.refused("GET", URL) == (404, f"Topic {TOPIC} not found")
    answers: list[Answer] = [await rest.call("PUT", URL, {"k": "v"}), await rest.call("DELETE", f"{URL}?key=k")]
    assert [(answer.status, answer.body) for answer in answers] == [(404, b"")] * 2


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_of_a_non_persistent_topic(rest: Rest, method: str) -> None:
    refused = (406, "Need to provide a persistent topic name")
    assert await rest.refused(method, f"{NON_PERSISTENT}/t/properties") == refused


async def test_of_a_subscription(rest: Rest) -> None:
    url = f"{SUBSCRIPTION}/properties"
    missing = (404, f"Topic {TOPIC} not found")
    assert await rest.refused("GET", url) == missing
    await rest.done("PUT", SUBSCRIPTION, {"ledgerId": -1, "entryId": -1, "properties": {"sp": "1"}})
    assert await rest.get(url) == {"sp": "1"}
    await rest.done("PUT", url, {"a": "1"})
    assert await rest.get(url) == {"a": "1"}
    await rest.done("PUT", url)
    assert await rest.get(url) == {}
    nosub = (404, f"Subscription nosub not found for topic {TOPIC}")
    assert await rest.refused("GET", f"{TOPICS}/t/subscription/nosub/properties") == nosub
