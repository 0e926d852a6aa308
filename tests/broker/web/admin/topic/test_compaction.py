"""Compaction over REST: its trigger, its state and its stats."""

from __future__ import annotations

import pytest
import trio

from tests.broker.web.admin.rest import TOPICS, Rest
from tests.broker.wire import TOPIC, Wire, plain

URL = f"{TOPICS}/t/compaction"


async def compacted(rest: Rest, topic: str = "t") -> None:
    assert (await rest.call("PUT", f"{TOPICS}/{topic}/compaction")).status == 204
    await trio.sleep(1)
    assert (await rest.get(f"{TOPICS}/{topic}/compaction"))["status"] != "RUNNING"


@pytest.mark.req("B-32")
async def test_a_compaction_shows_in_status_stats_and_cursor(rest: Rest, wire: Wire) -> None:
    await wire.producer()
    positions = await wire.publish(*(plain(b"%d" % number, partition_key=f"k{number % 2}") for number in range(10)))
    assert await rest.get(URL) == {"status": "NOT_RUN", "lastError": ""}
    assert (await rest.get(f"{TOPICS}/t/internalStats"))["compactedLedger"]["ledgerId"] == -1
    await compacted(rest)
    assert await rest.get(URL) == {"status": "SUCCESS", "lastError": ""}
    stats = await rest.get(f"{TOPICS}/t/internalStats")
    ledger = stats["compactedLedger"]
    entry = len(plain(b"0", partition_key="k0")) + 23  # bytes in front of an entry in Pulsar's format
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
    await compacted(rest)  # without new messages
    assert (await rest.get(f"{TOPICS}/t/internalStats"))["compactedLedger"] == ledger
    assert (await rest.get(f"{TOPICS}/t/stats"))["compaction"] == figures


async def test_a_topic_is_compacted_once_at_a_time(rest: Rest, wire: Wire) -> None:
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
    assert (await rest.get(f"{TOPICS}/part-partition-1/compaction"))["status"] == "SUCCESS"  # this partition is empty
