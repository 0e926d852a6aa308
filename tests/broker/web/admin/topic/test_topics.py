"""Topics over REST: creation, deletion, termination and lists."""

from __future__ import annotations

from itertools import chain, pairwise
from pathlib import Path

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.config.keys import APPEND_INDEX
from tests.broker.web.admin.rest import NAMESPACES, NON_PERSISTENT, TOPICS, Rest, rest_of
from tests.broker.wire import TOPIC, Bed, Shared, Type, Wire, plain, serving


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


# names

FEWER = "a number smaller than number of partition of partitioned topic {}"
NONE = "numeric value if there isn't a partitioned topic {} created."


@pytest.mark.parametrize(
    ("name", "whole", "why"),
    [
        ("p-partition-3", "p", FEWER),
        ("p-partition-03", "p", FEWER),
        ("p-partition-99999999999", "p", FEWER),
        ("t-partition-0", "t", NONE),
        ("t-partition-01", "t", NONE),
        ("t-partition--1", "t", NONE),
        ("t-partition-%2B1", "t", NONE),
        ("t-partition-99999999999", "t", NONE),
    ],
)
async def test_a_number_behind_the_keyword_needs_a_partitioned_topic(
    rest: Rest, name: str, whole: str, why: str
) -> None:
    await rest.done("PUT", f"{TOPICS}/p/partitions", 3)
    text = f'Can\'t create topic {name.replace("%2B", "+")} with "-partition-" followed by {why.format(whole)}'
    assert await rest.refused("PUT", f"{TOPICS}/{name}") == (412, text)
    assert (await rest.refused("GET", f"{TOPICS}/{name}/stats"))[0] == 404


@pytest.mark.parametrize("name", ["t-partition-x", "p-partition--1", "t-partition-", "t-partition-9223372036854775808"])
async def test_the_keyword_without_a_number_is_part_of_any_name(rest: Rest, name: str) -> None:
    await rest.done("PUT", f"{TOPICS}/p/partitions", 3)
    await rest.done("PUT", f"{TOPICS}/{name}")
    assert f"persistent://public/default/{name}" in await rest.get(TOPICS)


@pytest.mark.serving(Config(allowAutoTopicCreationType="partitioned", defaultNumPartitions=2))
async def test_the_last_keyword_names_the_partitioned_topic(rest: Rest) -> None:
    name = "persistent://public/default/t-partition-0-partition-1"
    absent = (409, f"Partition metadata not found for the partitioned topic: {name}")
    assert await rest.refused("PUT", f"{TOPICS}/t-partition-0-partition-1") == absent
    await rest.get(f"{TOPICS}/t-partition-0-x/partitions?checkAllowAutoCreation=true")
    name = "persistent://public/default/t-partition-0-x-partition-2"
    beyond = (409, f"Illegal topic partition name {name} with max allowed 2 partitions")
    assert await rest.refused("PUT", f"{TOPICS}/t-partition-0-x-partition-2") == beyond


INTERNAL = (400, "Cannot create topic in system topic format!")


@pytest.mark.parametrize("root", [TOPICS, NON_PERSISTENT])
async def test_topics_of_pending_acknowledgements_are_not_created(rest: Rest, root: str) -> None:
    assert await rest.refused("PUT", f"{root}/t-s__transaction_pending_ack") == INTERNAL
    await rest.done("PUT", f"{root}/t-s__transaction_pending_ack_")


async def test_topics_of_coordinators_are_not_created(rest: Rest) -> None:
    for name in ("transaction_coordinator_assign_more", "__transaction_log_9"):
        assert await rest.refused("PUT", f"/admin/v2/persistent/pulsar/system/{name}") == INTERNAL
        await rest.done("PUT", f"/admin/v2/non-persistent/pulsar/system/{name}")
        await rest.done("PUT", f"{TOPICS}/{name}")


@pytest.mark.parametrize("path", ["persistent/pulsar/system", "namespaces/pulsar/system/topics"])
async def test_topics_in_namespaces_of_brokers_are_listed_on_request(rest: Rest, path: str) -> None:
    await rest.done("PUT", "/admin/v2/persistent/pulsar/system/t")
    mine = "persistent://pulsar/system/t"
    assert mine not in await rest.get(f"/admin/v2/{path}")
    assert mine in await rest.get(f"/admin/v2/{path}?includeSystemTopic=true")


@pytest.mark.serving(Config(strictTopicNameEnabled=True))
@pytest.mark.parametrize("name", ["t-partition-z", "s~odd*name", "s%20p"])
async def test_names_are_not_checked_more_strictly(rest: Rest, name: str) -> None:
    """Pulsar 4.2 has the key strictTopicNameEnabled and never reads it."""
    await rest.done("PUT", f"{TOPICS}/{name}")


@pytest.mark.req("B-33")
async def test_a_topic_is_terminated(rest: Rest, sender: Wire) -> None:
    positions = await sender.publish(plain(b"a"), plain(b"b"))
    expected = {"ledgerId": positions[1].ledger_id, "entryId": 1, "partitionIndex": -1}
    for _ in range(2):
        answer = await rest.call("POST", f"{TOPICS}/t/terminate")
        assert (answer.status, answer.json) == (200, expected | {"batchSize": 0, "batchIndex": -1})
    await sender.expect(Type.CLOSE_PRODUCER)
    assert (await rest.get(f"{TOPICS}/t/internalStats"))["state"] == "Terminated"
    await rest.done("DELETE", f"{TOPICS}/t")
    await sender.producer(producer_id=1)  # creates a new topic of the same name


@pytest.mark.req("B-33")
async def test_every_partition_is_terminated(rest: Rest, wire: Wire) -> None:
    await rest.done("PUT", f"{TOPICS}/t/partitions", 2)
    await wire.producer(f"{TOPIC}-partition-1")
    (position,) = await wire.publish(plain(b"m"))
    answer = await rest.call("POST", f"{TOPICS}/t/terminate/partitions")
    assert answer.status == 200
    assert {number: last["entryId"] for number, last in answer.json.items()} == {"0": -1, "1": 0}
    assert answer.json["1"]["ledgerId"] == position.ledger_id
    assert {last["partitionIndex"] for last in answer.json.values()} == {-1}
    await wire.expect(Type.CLOSE_PRODUCER)
    assert (await rest.call("POST", f"{TOPICS}/t/terminate/partitions")).json == answer.json


@pytest.mark.parametrize("name", ["public/default/__change_events", "public/default/t-s__transaction_pending_ack"])
async def test_topics_with_system_names_are_not_terminated(rest: Rest, name: str) -> None:
    refused = (405, "Termination of a system topic is not allowed")
    assert await rest.refused("POST", f"/admin/v2/persistent/{name}/terminate") == refused


async def test_topics_in_namespaces_of_brokers_are_terminated(rest: Rest) -> None:
    await rest.done("PUT", "/admin/v2/persistent/pulsar/system/t")
    assert (await rest.call("POST", "/admin/v2/persistent/pulsar/system/t/terminate")).status == 200
