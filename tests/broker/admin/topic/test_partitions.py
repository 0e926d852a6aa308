"""Partitioned topics."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config import Config
from tests.broker.admin.rest import ADMIN, NON_PERSISTENT, TOPICS, Rest, rest_of
from tests.broker.wire import TOPIC, Wire, serving

BOTH = pytest.mark.parametrize("root", [TOPICS, NON_PERSISTENT])
METADATA = "application/vnd.partitioned-topic-metadata+json"
PARTS = [f"persistent://public/default/p-partition-{i}" for i in range(5)]
EXISTS = (409, "This topic already exists")


@BOTH
async def test_a_partitioned_topics_life(rest: Rest, root: str) -> None:
    url = f"{root}/p/partitions"
    await rest.done("PUT", url, 3)
    assert await rest.refused("PUT", url, 5) == EXISTS
    assert await rest.get(url) == {"partitions": 3, "deleted": False}
    name = f"{root.split('/')[3]}://public/default/p"
    assert await rest.get(f"{root}/partitioned") == [name]
    await rest.done("POST", url, 5)
    assert (await rest.get(url))["partitions"] == 5
    if root == TOPICS:
        assert await rest.get(root) == PARTS
    await rest.done("DELETE", url)
    assert await rest.get(root) == await rest.get(f"{root}/partitioned") == []
    assert await rest.refused("DELETE", url) == (404, f"Topic {name} not found.")
    assert await rest.refused("GET", url) == (404, f"Topic {name} not found")


async def test_properties_come_in_their_own_media_type(rest: Rest) -> None:
    body = {"partitions": 2, "properties": {"x": "y"}}
    plain = await rest.call("PUT", f"{TOPICS}/p/partitions", body)
    assert plain.status == 400
    assert plain.body.startswith(b"Cannot deserialize value of type `int` from Object value")
    assert (await rest.call("PUT", f"{TOPICS}/p/partitions", body, content_type=METADATA)).status == 204
    expected = {"partitions": 2, "deleted": False, "properties": {"x": "y"}}
    assert await rest.get(f"{TOPICS}/p/partitions") == expected
    await rest.done("POST", f"{TOPICS}/p/partitions", 4)
    assert await rest.get(f"{TOPICS}/p/partitions") == {**expected, "partitions": 4}


async def test_properties_that_were_removed_leave_a_trace(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/p/partitions", 2)
    await rest.done("PUT", f"{TOPICS}/p/properties", {"k": "v"})
    await rest.done("DELETE", f"{TOPICS}/p/properties?key=k")
    assert await rest.get(f"{TOPICS}/p/partitions") == {"partitions": 2, "deleted": False, "properties": {}}


@BOTH
async def test_a_partition_is_no_partitioned_topic(rest: Rest, root: str) -> None:
    """Pulsar looks at the name of a non-persistent one last."""
    await rest.done("PUT", f"{root}/p/partitions", 2)
    wrong = (412, "Partitioned Topic Name should not contain '-partition-'")
    assert await rest.refused("PUT", f"{root}/p-partition-0/partitions", 2) == (wrong if root == TOPICS else EXISTS)
    assert await rest.refused("POST", f"{root}/p-partition-0/partitions", 2) == wrong


@BOTH
async def test_the_name_of_a_partition_is_not_deleted_as_that_of_a_partitioned_topic(rest: Rest, root: str) -> None:
    await rest.done("PUT", f"{root}/p/partitions", 2)
    wrong = (412, "Partitioned Topic Name should not contain '-partition-'")
    elsewhere = root.replace("public/default", "public/missing")
    for parent in (f"{root}/p", f"{root}/missing", f"{elsewhere}/p"):
        assert await rest.refused("DELETE", f"{parent}-partition-0/partitions") == wrong
    assert (await rest.get(f"{root}/p/partitions"))["partitions"] == 2


async def test_a_count_as_text(rest: Rest) -> None:
    assert (await rest.call("PUT", f"{TOPICS}/p/partitions", body=b"4", content_type="text/plain")).status == 204
    assert (await rest.call("PUT", f"{TOPICS}/q/partitions", body=b'"2"')).status == 204
    assert (await rest.get(f"{TOPICS}/q/partitions"))["partitions"] == 2


@pytest.mark.parametrize("body", ['"x"', "{x", "[3]", "true", "1.5", str(2**31), '"-"', '"٣"'])
async def test_a_count_that_is_none(rest: Rest, body: str) -> None:
    for method in ("PUT", "POST"):
        answer = await rest.call(method, f"{TOPICS}/p/partitions", body=body.encode())
        assert (answer.status, answer.headers["content-type"]) == (400, "text/plain")


@pytest.mark.parametrize("body", ["[]", "5", '{"partitions": "x"}', '{"properties": 5}'])
async def test_metadata_that_is_none(rest: Rest, body: str) -> None:
    answer = await rest.call("PUT", f"{TOPICS}/p/partitions", body=body.encode(), content_type=METADATA)
    assert answer.status in (204, 400, 406)
    assert answer.status != 204 or body == "5"


async def test_no_count(rest: Rest) -> None:
    status, reason = await rest.refused("PUT", f"{TOPICS}/p/partitions")
    assert status == 400
    assert 'because "metadata" is null' in reason


@BOTH
@pytest.mark.parametrize(
    ("topic", "count", "refused"),
    [
        ("p", 0, (406, "Number of partitions should be more than 0")),
        ("p", -1, (406, "Number of partitions should be more than 0")),
        ("c", 2, EXISTS),
        ("x-partition-0", 2, (412, "Partitioned Topic Name should not contain '-partition-'")),
    ],
)
async def test_what_is_not_made(rest: Rest, root: str, topic: str, count: int, refused: Any) -> None:
    await rest.done("PUT", f"{root}/c")
    assert await rest.refused("PUT", f"{root}/{topic}/partitions", count) == refused


@BOTH
async def test_what_does_not_grow(rest: Rest, root: str) -> None:
    await rest.done("PUT", f"{root}/c")
    await rest.done("PUT", f"{root}/p/partitions", 3)
    await rest.done("POST", f"{root}/p/partitions", 3)
    for count in (2, 0, -3):
        reason = f"Desired partitions {count} can't be less than the current partitions 3."
        assert await rest.refused("POST", f"{root}/p/partitions", count) == (422, reason)
    for topic in ("c", "nothere"):
        reason = f"Topic {root.split('/')[3]}://public/default/{topic} is not the partitioned topic."
        assert await rest.refused("POST", f"{root}/{topic}/partitions", 4) == (409, reason)


async def test_the_most_partitions() -> None:
    async with serving(Config(maxNumPartitionsPerPartitionedTopic=2)) as bed:
        rest = rest_of(bed)
        assert (await rest.refused("PUT", f"{TOPICS}/p/partitions", 3))[0] == 406
        await rest.done("PUT", f"{TOPICS}/p/partitions", 1)
        assert (await rest.refused("POST", f"{TOPICS}/p/partitions", 3))[0] == 422
        await rest.done("POST", f"{TOPICS}/p/partitions", 2)


async def test_partitions_of_others(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/c")
    none = {"partitions": 0, "deleted": False}
    assert await rest.get(f"{TOPICS}/c/partitions") == none
    assert await rest.get(f"{TOPICS}/nothere/partitions?checkAllowAutoCreation=true") == none
    assert "nothere" not in str(await rest.get(TOPICS))
    assert await rest.refused("GET", f"{ADMIN}/persistent/public/nope/x/partitions") == (404, "Namespace not found")
    assert await rest.refused("GET", f"{ADMIN}/persistent/public/nope/partitioned") == (404, "Namespace does not exist")


async def test_creation_by_asking_where_topics_are_made_partitioned() -> None:
    async with serving(Config(allowAutoTopicCreationType="partitioned", defaultNumPartitions=2)) as bed:
        rest = rest_of(bed)
        url = f"{TOPICS}/p/partitions"
        assert (await rest.refused("GET", url))[0] == 404
        assert (await rest.get(f"{url}?checkAllowAutoCreation=true"))["partitions"] == 2
        assert (await rest.get(url))["partitions"] == 2
    async with serving(Config(allowAutoTopicCreation=False)) as bed:
        assert (await rest_of(bed).refused("GET", f"{url}?checkAllowAutoCreation=true"))[0] == 404


async def test_partitions_in_use_stay(rest: Rest, wire: Wire) -> None:
    await rest.done("PUT", f"{TOPICS}/p/partitions", 2)
    await wire.subscribe(PARTS[1])
    words = "Topic has 1 client connected Including 1 consumers, 0 producers, and 0 replicators."
    assert await rest.refused("DELETE", f"{TOPICS}/p/partitions") == (412, words)
    assert await rest.get(TOPICS) == PARTS[:2]
    await rest.done("DELETE", f"{TOPICS}/p/partitions?force=true")


async def test_a_plain_topic_by_the_wrong_route(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    text = f"{TOPIC} is a non-partitioned topic. Instead of calling delete-partitioned-topic please call delete."
    assert await rest.refused("DELETE", f"{TOPICS}/t/partitions") == (409, text)


async def test_missed_partitions(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/p/partitions", 3)
    await rest.done("DELETE", f"{TOPICS}/p-partition-1")
    assert await rest.get(TOPICS) == [PARTS[0], PARTS[2]]
    await rest.done("POST", f"{TOPICS}/p/createMissedPartitions")
    assert await rest.get(TOPICS) == PARTS[:3]
    assert await rest.refused("POST", f"{TOPICS}/c/createMissedPartitions") == (
        404,
        "Topic persistent://public/default/c does not exist",
    )
