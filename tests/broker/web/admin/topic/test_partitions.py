"""Partitioned topics."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config import Config
from tests.broker.web.admin.rest import NON_PERSISTENT, TOPICS, Rest, rest_of
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


@pytest.mark.parametrize("count", ["2", "٢", 2.9])
async def test_a_count_of_partitions_is_read_as_java_reads_an_int(rest: Rest, count: Any) -> None:
    await rest.done("PUT", f"{TOPICS}/p/partitions", count)
    assert (await rest.get(f"{TOPICS}/p/partitions"))["partitions"] == 2


@pytest.mark.parametrize("body", ['"x"', "{x", "[3]", "true", '"2147483648"'])
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


# names

KEYWORD = (412, "Partitioned Topic Name should not contain '-partition-'")
PARTITIONED = Config(allowAutoTopicCreationType="partitioned", defaultNumPartitions=2)


@pytest.mark.serving(PARTITIONED)
async def test_a_partitioned_topic_with_the_keyword_in_its_name_grows_and_is_deleted(rest: Rest) -> None:
    topic = f"{TOPICS}/t-partition-0-dd"
    await rest.get(f"{topic}/partitions?checkAllowAutoCreation=true")
    await rest.done("POST", f"{topic}/partitions", 4)
    assert (await rest.get(f"{topic}/partitions"))["partitions"] == 4
    assert await rest.refused("PUT", f"{topic}/partitions", 4) == KEYWORD
    assert await rest.refused("POST", f"{topic}/createMissedPartitions") == KEYWORD
    await rest.done("DELETE", f"{topic}/partitions")
    assert (await rest.refused("DELETE", f"{topic}/partitions"))[0] == 404
    assert (await rest.refused("POST", f"{topic}/partitions", 4))[0] == 409


@BOTH
@pytest.mark.parametrize("name", ["t-partition-0", "t-partition-0-partition-1"])
async def test_a_partition_is_neither_enlarged_nor_completed(rest: Rest, root: str, name: str) -> None:
    assert await rest.refused("POST", f"{root}/{name}/partitions", 4) == KEYWORD
    assert await rest.refused("POST", f"{root}/{name}/createMissedPartitions") == KEYWORD


async def test_a_name_with_an_odd_number_is_no_partition(rest: Rest) -> None:
    assert (await rest.refused("POST", f"{TOPICS}/t-partition-01/partitions", 4))[0] == 409
    assert (await rest.refused("DELETE", f"{TOPICS}/t-partition-01/partitions"))[0] == 404


async def test_a_non_persistent_partitioned_topic_may_have_any_name(rest: Rest) -> None:
    for name in ("t-partition-0-x", "t-partition-0"):
        await rest.done("PUT", f"{NON_PERSISTENT}/{name}/partitions", 4)
    await rest.done("PUT", f"{NON_PERSISTENT}/p/partitions", 2)
    taken = (409, "This topic already exists")
    assert await rest.refused("PUT", f"{NON_PERSISTENT}/p-partition-1/partitions", 4) == taken
    await rest.done("PUT", f"{NON_PERSISTENT}/p-partition-2/partitions", 4)


@pytest.mark.serving(PARTITIONED)
@BOTH
@pytest.mark.parametrize(
    ("name", "partitions"),
    [("t-s-DLQ", 0), ("t-s-RETRY", 0), ("t-s-dlq", 2), ("t-s-DLQ-x", 2), ("t-s-DLQ-partition-0", 0), ("t", 2)],
)
async def test_dead_letters_are_created_without_partitions(rest: Rest, root: str, name: str, partitions: int) -> None:
    asked = await rest.get(f"{root}/{name}/partitions?checkAllowAutoCreation=true")
    assert asked["partitions"] == partitions
    assert len(await rest.get(f"{root}/partitioned")) == bool(partitions)


async def test_partitioned_topics_of_transactions_are_not_created(rest: Rest) -> None:
    internal = (400, "Cannot create topic in system topic format!")
    name = "t-s__transaction_pending_ack"
    assert await rest.refused("PUT", f"{TOPICS}/{name}/partitions", 2) == internal
    assert await rest.refused("PUT", f"{TOPICS}/{name}-partition-0/partitions", 2) == KEYWORD
    await rest.done("PUT", f"{NON_PERSISTENT}/{name}/partitions", 2)


async def test_partitioned_topics_of_brokers_are_listed_on_request(rest: Rest) -> None:
    system = "/admin/v2/persistent/pulsar/system"
    await rest.done("PUT", f"{system}/p/partitions", 2)
    assert "persistent://pulsar/system/p" not in await rest.get(f"{system}/partitioned")
    assert "persistent://pulsar/system/p" in await rest.get(f"{system}/partitioned?includeSystemTopic=true")
