"""Lookup over HTTP."""

from __future__ import annotations

import pytest

from pulsarium.broker.config import Config
from tests.broker.web.admin.rest import TOPICS, Rest, rest_of
from tests.broker.wire import Bed, serving

LOOKUP = "/lookup/v2/topic"
T = f"{LOOKUP}/persistent/public/default/t"


@pytest.mark.req("B-49")
@pytest.mark.parametrize(
    ("host", "http", "binary"),
    [
        ("127.0.0.1:8080", "http://127.0.0.1:8080", "pulsar://127.0.0.1:6650"),
        ("mapped.internal:18080", "http://mapped.internal:18080", "pulsar://mapped.internal:6650"),
        ("plain.internal", "http://plain.internal", "pulsar://plain.internal:6650"),
        ("[::1]:8080", "http://[::1]:8080", "pulsar://[::1]:6650"),
        ("[::1]", "http://[::1]", "pulsar://[::1]:6650"),
        ("", "http://localhost:8080", "pulsar://localhost:6650"),
    ],
)
async def test_lookup_answers_with_the_address_that_the_client_came_by(
    rest: Rest, host: str, http: str, binary: str
) -> None:
    urls = await rest.get(T, host=host)
    assert urls == {"brokerUrl": binary, "httpUrl": http, "nativeUrl": binary, "brokerUrlSsl": ""}
    assert list(urls) == ["brokerUrl", "httpUrl", "nativeUrl", "brokerUrlSsl"]


@pytest.mark.parametrize("host", ["evil/", 'a"b', "a b", "x@y:1", "a:b:c", "a:port", "<script>"])
async def test_lookup_does_not_repeat_a_host_that_is_none(rest: Rest, host: str) -> None:
    assert (await rest.get(T, host=host))["httpUrl"] == "http://localhost:8080"


@pytest.mark.serving(Config(advertisedAddress="broker.internal"))
async def test_lookup_prefers_the_advertised_address(bed: Bed) -> None:
    urls = await rest_of(bed).get(T, host="other.internal:1")
    assert (urls["brokerUrl"], urls["httpUrl"]) == ("pulsar://broker.internal:6650", "http://broker.internal:8080")


async def test_lookup_answers_with_the_urls_of_a_listener() -> None:
    listeners = "in:pulsar://in.example:1,out:pulsar://out.example:2"
    async with serving(Config(advertisedListeners=listeners)) as bed:
        rest = rest_of(bed)
        assert (await rest.get(T))["brokerUrl"] == "pulsar://in.example:1"
        assert (await rest.get(f"{T}?listenerName=out"))["brokerUrl"] == "pulsar://out.example:2"
        assert (await rest.get(T, x_pulsar_listenername="out"))["brokerUrl"] == "pulsar://out.example:2"


async def test_lookup_refuses_an_unknown_listener(rest: Rest) -> None:
    assert await rest.refused("GET", f"{T}?listenerName=x") == (400, "the broker do not have x listener")


@pytest.mark.serving(Config(allowAutoTopicCreation=False))
async def test_lookup_refuses_an_absent_topic_that_clients_may_not_create(rest: Rest) -> None:
    assert await rest.refused("GET", T) == (404, "Topic not found persistent://public/default/t")
    assert (await rest.call("GET", T.replace("persistent", "non-persistent"))).status == 200
    await rest.done("PUT", f"{TOPICS}/t")
    await rest.done("PUT", f"{TOPICS}/p/partitions", 2)
    await rest.done("DELETE", f"{TOPICS}/p-partition-1")  # the next client creates it again
    for name in ("t", "p", "p-partition-0", "p-partition-1"):
        assert (await rest.call("GET", f"{LOOKUP}/persistent/public/default/{name}")).status == 200
    assert (await rest.call("GET", f"{LOOKUP}/persistent/public/default/p-partition-2")).status == 404


async def test_lookup_finds_no_partition_of_a_topic_without_a_name(rest: Rest) -> None:
    reason = "Topic not found persistent://public/default/-partition-2"
    assert await rest.refused("GET", f"{LOOKUP}/persistent/public/default/-partition-2") == (404, reason)


async def test_lookup_makes_no_topic(rest: Rest) -> None:
    await rest.get(f"{T}?authoritative=true")
    await rest.get(f"{LOOKUP}/non-persistent/public/default/bad%20name")
    assert await rest.get(TOPICS) == []


@pytest.mark.parametrize("path", ["wrong-domain/public/default/x", "persistent/public/default/with%2Fslash"])
async def test_lookup_refuses_names_that_are_none(rest: Rest, path: str) -> None:
    answer = await rest.call("GET", f"{LOOKUP}/{path}")
    assert (answer.status, answer.json["message"]) == (400, "Bad Request")
