"""/admin/v2/broker-stats."""

from __future__ import annotations

import os
from unittest.mock import patch

from pulsarium.broker.web.http.reply import json_bytes
from tests.broker.web.admin.rest import ADMIN, NON_PERSISTENT, TOPICS, Rest
from tests.broker.wire import Bed, Wire, plain

STATS = f"{ADMIN}/broker-stats"
NAME = "persistent://public/default/t"


async def test_broker_stats_show_metrics(rest: Rest, wire: Wire) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    cache, health, connections = await rest.get(f"{STATS}/metrics")
    assert cache["dimensions"] == {}
    assert cache["metrics"]["brk_ml_count"] == 1
    assert len(cache["metrics"]) == 16
    assert health == {
        "metrics": {"brk_health": 1},
        "dimensions": {"broker": "localhost", "cluster": "standalone", "metric": "broker_health"},
    }
    assert connections["metrics"] == {"brk_active_connections": 1}


async def test_broker_stats_show_topics_after_a_minute(rest: Rest, bed: Bed) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    await rest.done("PUT", f"{NON_PERSISTENT}/t")
    assert await rest.get(f"{STATS}/topics") == {}
    with patch.object(bed.broker, "started_ms", bed.broker.started_ms - 60_000):
        answer = await rest.call("GET", f"{STATS}/topics")
    found = answer.json
    assert answer.body == json_bytes(found)
    assert list(found) == ["public/default"]
    topics = [topic for bundle in found["public/default"].values() for kind in bundle.items() for topic in kind[1]]
    assert sorted(topics) == [f"non-{NAME}", NAME]
    kinds = {kind for bundle in found["public/default"].values() for kind in bundle}
    assert kinds == {"persistent", "non-persistent"}
    (stats,) = (bundle["persistent"][NAME] for bundle in found["public/default"].values() if "persistent" in bundle)
    assert (stats["publishers"], stats["replication"], stats["subscriptions"]) == ([], {}, {})
    assert len(stats) == 17


async def test_broker_stats_show_the_clients_of_topics(rest: Rest, bed: Bed, wire: Wire) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    await wire.subscribe()
    await wire.producer()
    await wire.publish(plain(b"x"))
    with patch.object(bed.broker, "started_ms", bed.broker.started_ms - 60_000):
        found = await rest.get(f"{STATS}/topics")
    (kinds,) = found["public/default"].values()
    stats, whole = kinds["persistent"][NAME], await rest.get(f"{TOPICS}/t/stats")
    (publisher,) = stats["publishers"]
    assert publisher.items() <= whole["publishers"][0].items()
    assert len(publisher) == 9
    (subscription,) = stats["subscriptions"].values()
    assert (subscription["msgBacklog"], subscription["numberOfEntriesSinceFirstNotAckedMessage"]) == (1, 1)
    assert len(subscription) == 14
    assert len(subscription["consumers"][0]) == 11
    assert (stats["producerCount"], stats["msgInCount"]) == (1, 1)


async def test_broker_stats_show_what_bookies_are_asked_for(rest: Rest) -> None:
    assert await rest.get(f"{STATS}/bookieops") == {}
    await rest.done("PUT", f"{TOPICS}/t")
    await rest.done("PUT", f"{NON_PERSISTENT}/t")
    found = await rest.get(f"{STATS}/bookieops")
    assert list(found["public/default"]) == [NAME]
    assert set(found["public/default"][NAME].values()) == {0}
    assert len(found["public/default"][NAME]) == 8


async def test_broker_stats_have_one_bean_and_no_arenas(rest: Rest) -> None:
    (bean,) = await rest.get(f"{STATS}/mbeans")
    assert bean["dimensions"] == {"MBean": "java.lang:type=Runtime"}
    assert (bean["metrics"]["Pid"], bean["metrics"]["Uptime"]) == (os.getpid(), 0)
    for allocator in ("default", "ml-cache"):
        arenas = await rest.get(f"{STATS}/allocator-stats/{allocator}")
        assert (arenas["directArenas"], arenas["heapArenas"], arenas["numDirectArenas"]) == ([], [], 0)
        assert (arenas["smallCacheSize"], arenas["normalCacheSize"]) == (256, 64)
