"""Topics over REST: creation, deletion and lists."""

from __future__ import annotations

from itertools import chain, pairwise
from pathlib import Path

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.config.keys import APPEND_INDEX
from tests.broker.admin.rest import NAMESPACES, NON_PERSISTENT, TOPICS, Rest, rest_of
from tests.broker.wire import TOPIC, Bed, Shared, Type, Wire, serving


@pytest.mark.parametrize(
    ("encoded", "name"),
    [("with%20space", "with space"), ("with%25percent", "with%percent"), ("uni%C3%A9", "unié"), ("a+b", "a b")],
)
async def test_odd_names_are_decoded_once(rest: Rest, encoded: str, name: str) -> None:
    await rest.done("PUT", f"{TOPICS}/{encoded}")
    assert await rest.get(TOPICS) == [f"persistent://public/default/{name}"]


async def test_a_topic_in_use_stays(rest: Rest, wire: Wire) -> None:
    await wire.subscribe(type=Shared)
    words = "Topic has 1 client connected Including 1 consumers, 0 producers, and 0 replicators."
    assert await rest.refused("DELETE", f"{TOPICS}/t") == (412, words)
    await wire.producer()
    words = "Topic has 2 clients connected Including 1 consumers, 1 producers, and 0 replicators."
    assert await rest.refused("DELETE", f"{TOPICS}/t") == (412, words)
    await rest.done("DELETE", f"{TOPICS}/t?force=true")
    assert {(await wire.next()).command.type for _ in range(2)} == {Type.CLOSE_PRODUCER, Type.CLOSE_CONSUMER}
    refused = (404, f"Topic {TOPIC} not found")
    assert await rest.refused("DELETE", f"{TOPICS}/t?force=true") == refused


async def test_a_non_persistent_topic_in_use_stays(rest: Rest, wire: Wire) -> None:
    await wire.subscribe(f"non-{TOPIC}")
    await wire.producer(f"non-{TOPIC}")
    assert await rest.refused("DELETE", f"{NON_PERSISTENT}/t") == (412, "Topic has 2 connected producers/consumers")


@pytest.mark.req("B-50")
async def test_an_unloaded_topic_disconnects_its_clients(rest: Rest, wire: Wire, bed: Bed) -> None:
    await wire.producer()
    await rest.done("PUT", f"{TOPICS}/t/unload")
    await wire.expect(Type.CLOSE_PRODUCER)
    assert TOPIC not in bed.broker.topics.loaded
    await wire.producer(producer_id=1)
    await rest.done("PUT", f"{TOPICS}/p/partitions", 2)
    await wire.producer(f"{TOPIC[:-1]}p-partition-1", producer_id=2)
    await rest.done("PUT", f"{TOPICS}/p/unload")
    assert (await wire.expect(Type.CLOSE_PRODUCER)).producer_id == 2


async def test_a_topic_is_listed_with_the_bundle_that_its_lookup_names(rest: Rest) -> None:
    names = [f"non-{TOPIC}{i}" for i in range(20)]
    for i in range(20):
        await rest.done("PUT", f"{NON_PERSISTENT}/t{i}")
    bundles = (await rest.get(f"{NAMESPACES}/public/default/bundles"))["boundaries"]
    ranges = [f"{low}_{high}" for low, high in pairwise(bundles)]
    found = [await rest.get(f"{NON_PERSISTENT}?bundle={name}") for name in ranges]
    assert sorted(chain.from_iterable(found)) == sorted(names)
    assert [await rest.get(f"{NON_PERSISTENT}/{name}") for name in ranges] == found
    for name in found[0]:
        answer = await rest.call("GET", f"/lookup/v2/topic/{name.replace('://', '/')}/bundle")
        assert answer.body.decode() == ranges[0]


@pytest.mark.parametrize("body", [b"[1]", b"5", b'"x"', b'{"a":{}}'])
async def test_properties_of_wrong_types_are_refused(rest: Rest, body: bytes) -> None:
    assert (await rest.call("PUT", f"{TOPICS}/t", body=body)).status == 400
    assert await rest.get(TOPICS) == []


@pytest.mark.serving(Config(brokerEntryMetadataInterceptors=(APPEND_INDEX,)))
async def test_an_interceptor_keeps_a_property_beside_those_that_were_sent(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/t", {"a": "1"})
    assert await rest.get(f"{TOPICS}/t/properties") == {"a": "1", "index": "-1"}


async def test_properties_survive_a_restart(tmp_path: Path) -> None:
    async with serving(data=tmp_path) as bed:
        await rest_of(bed).done("PUT", f"{TOPICS}/t", {"a": "not a number"})
    async with serving(data=tmp_path) as bed:
        assert await rest_of(bed).get(f"{TOPICS}/t/properties") == {"a": "not a number"}


async def test_a_property_is_deleted_by_its_key(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/t", {"a": "1", "n": 2})
    await rest.done("DELETE", f"{TOPICS}/t/properties?key=a")
    assert await rest.get(f"{TOPICS}/t/properties") == {"n": "2"}
    assert (await rest.refused("DELETE", f"{TOPICS}/t/properties"))[0] == 400
