"""Compaction over REST: triggers, its state, and what stats show of it."""

from __future__ import annotations

import pytest
import trio

from tests.broker.admin.rest import NAMESPACES, NON_PERSISTENT, TOPICS, Rest
from tests.broker.wire import TOPIC, Wire, plain

URL = f"{TOPICS}/t/compaction"


async def compacted(rest: Rest, topic: str = "t") -> None:
    assert (await rest.call("PUT", f"{TOPICS}/{topic}/compaction")).status == 204
    await trio.sleep(1)
    assert (await rest.get(f"{TOPICS}/{topic}/compaction"))["status"] != "RUNNING"


@pytest.mark.req("B-32")
async def test_a_topic_is_compacted(rest: Rest, wire: Wire) -> None:
    await wire.producer()
    positions = await wire.publish(*(plain(b"%d" % number, partition_key=f"k{number % 2}") for number in range(10)))
    assert await rest.get(URL) == {"status": "NOT_RUN", "lastError": ""}
    assert (await rest.get(f"{TOPICS}/t/internalStats"))["compactedLedger"]["ledgerId"] == -1
    await compacted(rest)
    assert await rest.get(URL) == {"status": "SUCCESS", "lastError": ""}
    stats = await rest.get(f"{TOPICS}/t/internalStats")
    ledger = stats["compactedLedger"]
    entry = len(plain(b"0", partition_key="k0")) + 23  # what is in front of it in Pulsar's form
    assert (ledger["entries"], ledger["size"]) == (2, 2 * entry)
    assert (ledger["offloaded"], ledger["underReplicated"]) == (False, False)
    cursor = stats["cursors"]["__compaction"]
    assert cursor["markDeletePosition"] == str(positions[-1])
    assert cursor["readPosition"] == f"{positions[-1].ledger_id}:10"
    assert cursor["messagesConsumedCounter"] == 10
    assert cursor["properties"] == {"CompactedTopicLedger": ledger["ledgerId"]}
    figures = (await rest.get(f"{TOPICS}/t/stats"))["compaction"]
    assert list(figures) == [
        "lastCompactionRemovedEventCount",
        "lastCompactionSucceedTimestamp",
        "lastCompactionFailedTimestamp",
        "lastCompactionDurationTimeInMills",
    ]
    assert figures["lastCompactionRemovedEventCount"] == 8
    assert figures["lastCompactionSucceedTimestamp"] > figures["lastCompactionFailedTimestamp"] == 0
    subscriptions = (await rest.get(f"{TOPICS}/t/stats"))["subscriptions"]
    assert list(subscriptions) == await rest.get(f"{TOPICS}/t/subscriptions") == ["__compaction"]
    shown = subscriptions["__compaction"]
    assert (shown["type"], shown["msgBacklog"], shown["durable"]) == ("Exclusive", 0, True)
    await compacted(rest)  # nothing is new
    assert (await rest.get(f"{TOPICS}/t/internalStats"))["compactedLedger"] == ledger
    assert (await rest.get(f"{TOPICS}/t/stats"))["compaction"] == figures


async def test_one_at_a_time(rest: Rest, wire: Wire) -> None:
    await wire.producer()
    await wire.publish(plain(b"x", partition_key="k"))
    assert (await rest.call("PUT", URL)).status == 204
    assert await rest.get(URL) == {"status": "RUNNING", "lastError": ""}
    assert await rest.refused("PUT", URL) == (409, "Compaction already in progress")
    assert (await rest.call("PUT", f"{TOPICS}/part/partitions", 2)).status == 204
    await wire.producer(f"{TOPIC}-partition-0".replace("/t-", "/part-"), 1)
    await wire.publish(plain(b"x", partition_key="k"), producer_id=1)
    assert (await rest.call("PUT", f"{TOPICS}/part-partition-0/compaction")).status == 204
    assert await rest.refused("PUT", f"{TOPICS}/part/compaction") == (409, "Compaction already in progress")
    await trio.sleep(1)
    assert (await rest.get(f"{TOPICS}/part-partition-1/compaction"))["status"] == "SUCCESS"  # nothing in it


async def test_a_partitioned_topic(rest: Rest, wire: Wire) -> None:
    assert (await rest.call("PUT", f"{TOPICS}/part/partitions", 2)).status == 204
    await compacted(rest, "part-partition-1")
    assert (await rest.call("PUT", f"{TOPICS}/part/compaction")).status == 204
    await trio.sleep(1)
    for index in range(2):
        url = f"{TOPICS}/part-partition-{index}/compaction"
        assert await rest.get(url) == {"status": "SUCCESS", "lastError": ""}
    missing = (404, "Topic persistent://public/default/part not found")
    assert await rest.refused("GET", f"{TOPICS}/part/compaction") == missing


async def test_topics_that_are_not_there_or_of_the_other_kind(rest: Rest, wire: Wire) -> None:
    for method in ("GET", "PUT"):
        missing = (404, "Topic persistent://public/default/t not found")
        assert await rest.refused(method, URL) == missing
    await wire.producer("non-persistent://public/default/np")
    for method in ("GET", "PUT"):
        refused = (405, "Not allowed on a non-persistent topic")
        assert await rest.refused(method, f"{NON_PERSISTENT}/np/compaction") == refused


async def test_thresholds(rest: Rest, wire: Wire) -> None:
    await wire.producer()
    of_namespace, of_topic = f"{NAMESPACES}/public/default/compactionThreshold", f"{TOPICS}/t/compactionThreshold"
    for url, method, refusal in (
        (of_namespace, "PUT", "compactionThreshold must be 0 or more"),
        (of_topic, "POST", "Invalid value for compactionThreshold"),
    ):
        assert (await rest.call("GET", url)).body == b""
        answer = await rest.call(method, url, -1)
        assert (answer.status, answer.reason) == (412, refusal)
        assert (await rest.call(method, url, 1000)).status == 204
        assert await rest.get(url) == 1000
        assert await rest.get(f"{of_topic}?applied=true") == 1000
        assert (await rest.call("DELETE", url)).status == 204
        assert (await rest.call("GET", url)).body == b""
        assert await rest.get(f"{of_topic}?applied=true") == 0
