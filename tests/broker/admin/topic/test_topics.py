"""Topics come, go and are listed."""

from __future__ import annotations

from itertools import chain, pairwise

import pytest

from tests.broker.admin.rest import ADMIN, NAMESPACES, NON_PERSISTENT, TOPICS, Rest
from tests.broker.wire import TOPIC, Bed, Shared, Type, Wire

BOTH = pytest.mark.parametrize("root", [TOPICS, NON_PERSISTENT])


def name_of(root: str, topic: str) -> str:
    domain, rest = root.removeprefix(f"{ADMIN}/").split("/", 1)
    return f"{domain}://{rest}/{topic}"


@BOTH
@pytest.mark.parametrize(
    ("encoded", "name"),
    [("with%20space", "with space"), ("with%25percent", "with%percent"), ("uni%C3%A9", "unié"), ("a+b", "a b")],
)
async def test_odd_names(rest: Rest, root: str, encoded: str, name: str) -> None:
    await rest.done("PUT", f"{root}/{encoded}")
    assert await rest.get(root) == [name_of(root, name)]


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


async def test_a_subscription_without_consumers_keeps_no_topic(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/t/subscription/s")
    await rest.done("DELETE", f"{TOPICS}/t")


@pytest.mark.req("B-50")
async def test_unload(rest: Rest, wire: Wire, bed: Bed) -> None:
    await wire.producer()
    await rest.done("PUT", f"{TOPICS}/t/unload")
    await wire.expect(Type.CLOSE_PRODUCER)
    assert TOPIC not in bed.broker.topics.loaded
    await wire.producer(producer_id=1)
    await rest.done("PUT", f"{TOPICS}/p/partitions", 2)
    await wire.producer(f"{TOPIC[:-1]}p-partition-1", producer_id=2)
    await rest.done("PUT", f"{TOPICS}/p/unload")
    assert (await wire.expect(Type.CLOSE_PRODUCER)).producer_id == 2
    assert await rest.refused("PUT", f"{TOPICS}/nope/unload") == (
        404,
        "Topic persistent://public/default/nope not found",
    )
    nope = f"{ADMIN}/persistent/public/nope/t/unload"
    assert await rest.refused("PUT", nope) == (404, "Namespace not found")
    await rest.done("PUT", f"{NON_PERSISTENT}/p/partitions", 2)
    await rest.done("PUT", f"{NON_PERSISTENT}/p/unload")


@BOTH
async def test_topics_by_bundle(rest: Rest, root: str) -> None:
    names = [name_of(root, f"t{i}") for i in range(20)]
    for i in range(20):
        await rest.done("PUT", f"{root}/t{i}")
    bundles = (await rest.get(f"{NAMESPACES}/public/default/bundles"))["boundaries"]
    ranges = [f"{low}_{high}" for low, high in pairwise(bundles)]
    found = [await rest.get(f"{root}?bundle={name}") for name in ranges]
    assert sorted(chain.from_iterable(found)) == sorted(names)
    assert all(found)
    assert await rest.get(f"{root}?bundle=junk") == []
    domain = root.split("/")[3]
    for name in found[0]:
        topic = name.rpartition("/")[2]
        answer = await rest.call("GET", f"/lookup/v2/topic/{domain}/public/default/{topic}/bundle")
        assert answer.body.decode() == ranges[0]
    if root == NON_PERSISTENT:
        assert [await rest.get(f"{root}/{name}") for name in ranges] == found
        assert await rest.refused("GET", f"{root}/junk") == (412, "Invalid bundle range: junk")


@pytest.mark.parametrize("body", [b"[1]", b"5", b'"x"', b'{"a":{}}'])
async def test_properties_of_wrong_types(rest: Rest, body: bytes) -> None:
    assert (await rest.call("PUT", f"{TOPICS}/t", body=body)).status == 400
    assert await rest.get(TOPICS) == []
