"""Partitioned topics."""

from __future__ import annotations

import pytest

from pulsarium.broker.config import Config
from tests.broker.admin.rest import NON_PERSISTENT, TOPICS, Rest, rest_of
from tests.broker.wire import Wire, serving

BOTH = pytest.mark.parametrize("root", [TOPICS, NON_PERSISTENT])
METADATA = "application/vnd.partitioned-topic-metadata+json"
PARTS = [f"persistent://public/default/p-partition-{i}" for i in range(2)]


@BOTH
async def test_the_name_of_a_partition_is_not_deleted_as_that_of_a_partitioned_topic(rest: Rest, root: str) -> None:
    await rest.done("PUT", f"{root}/p/partitions", 2)
    wrong = (412, "Partitioned Topic Name should not contain '-partition-'")
    elsewhere = root.replace("public/default", "public/missing")
    for parent in (f"{root}/p", f"{root}/missing", f"{elsewhere}/p"):
        assert await rest.refused("DELETE", f"{parent}-partition-0/partitions") == wrong
    assert (await rest.get(f"{root}/p/partitions"))["partitions"] == 2


async def test_a_count_of_partitions_may_be_a_text(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/p/partitions", "2")
    assert (await rest.get(f"{TOPICS}/p/partitions"))["partitions"] == 2


@pytest.mark.parametrize("body", ['"x"', "{x", "[3]", "true", "1.5", str(2**31), '"٣"'])
async def test_a_count_of_partitions_that_is_none_is_refused(rest: Rest, body: str) -> None:
    for method in ("PUT", "POST"):
        answer = await rest.call(method, f"{TOPICS}/p/partitions", body=body.encode())
        assert (answer.status, answer.headers["content-type"]) == (400, "text/plain")


@pytest.mark.parametrize(("body", "status"), [("[]", 400), ("5", 204), ('{"partitions": "x"}', 400), ('{"a": 5}', 406)])
async def test_metadata_of_partitions_that_is_none_is_refused(rest: Rest, body: str, status: int) -> None:
    answer = await rest.call("PUT", f"{TOPICS}/p/partitions", body=body.encode(), content_type=METADATA)
    assert answer.status == status


@pytest.mark.serving(Config(maxNumPartitionsPerPartitionedTopic=2))
async def test_a_topic_has_no_more_partitions_than_it_may_have(rest: Rest) -> None:
    assert (await rest.refused("PUT", f"{TOPICS}/p/partitions", 3))[0] == 406
    await rest.done("PUT", f"{TOPICS}/p/partitions", 1)
    assert (await rest.refused("POST", f"{TOPICS}/p/partitions", 3))[0] == 422
    await rest.done("POST", f"{TOPICS}/p/partitions", 2)


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
    assert await rest.get(TOPICS) == PARTS
    await rest.done("DELETE", f"{TOPICS}/p/partitions?force=true")
