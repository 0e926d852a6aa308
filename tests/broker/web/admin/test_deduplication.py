"""Deduplication over REST: its cursor, its status and its policy."""

from __future__ import annotations

import pytest

from tests.broker.web.admin.rest import NAMESPACES, TOPICS, Rest
from tests.broker.wire import Bed, Wire, plain

pytestmark = pytest.mark.req("B-27")

# The cursor of a topic without messages, as a real broker showed it, without times and ledger.
NEW_CURSOR = {
    "waitingReadOp": False,
    "pendingReadOps": 0,
    "messagesConsumedCounter": 0,
    "cursorLedger": -1,
    "cursorLedgerLastEntry": -1,
    "individuallyDeletedMessages": "[]",
    "state": "NoLedger",
    "active": False,
    "numberOfEntriesSinceFirstNotAckedMessage": 1,
    "totalNonContiguousDeletedMessagesRange": 0,
    "subscriptionHavePendingRead": False,
    "subscriptionHavePendingReplayRead": False,
    "properties": {},
}


async def test_the_cursor_is_among_the_cursors_and_not_among_the_subscriptions(
    bed: Bed, rest: Rest, wire: Wire
) -> None:
    await wire.producer(producer_name="p")
    await rest.call("POST", f"{NAMESPACES}/public/default/deduplication", True)
    cursor = (await rest.get(f"{TOPICS}/t/internalStats"))["cursors"]["pulsar.dedup"]
    assert cursor | NEW_CURSOR == cursor
    (position,) = await wire.publish(plain(b"x"))
    cursor = (await rest.get(f"{TOPICS}/t/internalStats"))["cursors"]["pulsar.dedup"]
    assert (cursor["markDeletePosition"], cursor["readPosition"]) == (
        f"{position.ledger_id}:-1",
        f"{position.ledger_id}:0",
    )
    topic = next(iter(bed.broker.topics.loaded.values()))
    assert topic.deduplication is not None
    topic.deduplication.snapshot()
    cursor = (await rest.get(f"{TOPICS}/t/internalStats"))["cursors"]["pulsar.dedup"]
    assert (cursor["markDeletePosition"], cursor["properties"]) == (str(position), {"p": 0})
    assert await rest.get(f"{TOPICS}/t/subscriptions") == []
    assert (await rest.get(f"{TOPICS}/t/stats"))["subscriptions"] == {}


async def test_stats_show_whether_a_topic_deduplicates(rest: Rest, wire: Wire) -> None:
    await wire.producer(producer_name="p")
    seen = []
    for method, value in (("POST", True), ("POST", False), ("POST", True), ("DELETE", None)):
        sent = () if value is None else (value,)
        await rest.done(method, f"{NAMESPACES}/public/default/deduplication", *sent)
        seen.append((await rest.get(f"{TOPICS}/t/stats"))["deduplicationStatus"])
    assert seen == ["Enabled", "Disabled", "Enabled", "Disabled"]
