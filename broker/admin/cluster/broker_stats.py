"""/admin/v2/broker-stats: what a broker counts of itself. Of a JVM, Netty and bookies there is nothing to count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pulsarium.broker.admin.cluster.topic_figures import topic_figures
from pulsarium.broker.admin.http.call import Call
from pulsarium.broker.admin.http.errors import AdminError
from pulsarium.broker.admin.http.registry import route
from pulsarium.broker.admin.http.reply import JSON, Reply, done, json_bytes, json_pieces, json_reply
from pulsarium.broker.admin.namespace.owned import boundaries_of
from pulsarium.broker.admin.topic.stats_json import StatsWriter
from pulsarium.broker.auth.needs import SUPERUSER
from pulsarium.broker.model.namespace.bundles import bundle_of
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.slices import Slice

Written = dict[str, list[bytes]]  # members of objects, by what these are called

ROOT = "/admin/v2/broker-stats"
FIRST_STATS_MS = 60_000  # statsUpdateFrequencyInSecs: when the first stats of topics are gathered
ALLOCATORS = ("default", "ml-cache")
NO_ARENAS = {
    "numDirectArenas": 0,
    "numHeapArenas": 0,
    "numThreadLocalCaches": 0,
    "normalCacheSize": 0,
    "smallCacheSize": 0,
    "usedDirectMemory": 0,
    "usedHeapMemory": 0,
    "directArenas": [],
    "heapArenas": [],
}
CACHE = (
    "entries",
    "evicted_entries_total",
    "evictions",
    "hits_rate",
    "hits_throughput",
    "inserted_entries_total",
    "misses_rate",
    "misses_throughput",
    "pool_active_allocations",
    "pool_active_allocations_huge",
    "pool_active_allocations_normal",
    "pool_active_allocations_small",
    "pool_allocated",
    "pool_used",
)
PENDING = (
    "dataLedgerOpenOp",
    "dataLedgerCloseOp",
    "dataLedgerCreateOp",
    "dataLedgerDeleteOp",
    "cursorLedgerOpenOp",
    "cursorLedgerCloseOp",
    "cursorLedgerCreateOp",
    "cursorLedgerDeleteOp",
)


@route("GET", f"{ROOT}/metrics", needs=SUPERUSER)
async def get_metrics(call: Call) -> Reply:
    """The cache of entries, the broker's health and its connections."""
    broker, ledgers, slice_ = call.broker, 0, Slice()
    for topic in broker.loaded_topics():
        ledgers += isinstance(topic, PersistentTopic)
        await slice_.pause()
    cache: dict[str, float] = {
        f"brk_ml_cache_{name}": 0.0 if "_rate" in name or "_through" in name else 0 for name in CACHE
    }
    cache |= {"brk_ml_cache_used_size": broker.cluster.cache.size, "brk_ml_count": ledgers}
    whose = {"broker": broker.advertised_address, "cluster": broker.config.clusterName}
    return json_reply(
        [
            {"metrics": cache, "dimensions": {}},
            {"metrics": {"brk_health": 1}, "dimensions": {**whose, "metric": "broker_health"}},
            {
                "metrics": {"brk_active_connections": len(broker.sessions)},
                "dimensions": {**whose, "metric": "broker_connection"},
            },
        ]
    )


@route("GET", f"{ROOT}/mbeans", needs=SUPERUSER)
def get_mbeans(call: Call) -> Reply:
    """The beans of the JVM: none, for there is none."""
    return json_reply([])


@route("GET", f"{ROOT}/topics", needs=SUPERUSER)
async def get_topics(call: Call) -> Reply:
    """Stats of the topics that are loaded, by namespace, bundle and kind; none in a broker's first minute."""
    broker, slice_ = call.broker, Slice()
    if broker.clock.now_ms() - broker.started_ms < FIRST_STATS_MS:
        return json_reply({})
    found: dict[str, dict[str, Written]] = {}
    writer = StatsWriter(call.rates, broker.web_address)
    for topic in broker.loaded_topics():
        namespace = str(topic.name.namespace_name)
        bundle = bundle_of(boundaries_of(broker, namespace), topic.name)
        kinds = found.setdefault(namespace, {}).setdefault(bundle, {})
        kinds.setdefault(topic.name.domain, []).append(await _member(topic, await topic_figures(writer, topic), slice_))
        await slice_.pause()
    return Reply(200, content_type=JSON, pieces=_object(found))


@route("GET", f"{ROOT}/bookieops", needs=SUPERUSER)
async def get_pending_operations(call: Call) -> Reply:
    """What bookies are asked for, by namespace and topic: never anything."""
    found: Written = {}
    slice_ = Slice()
    for topic in call.broker.loaded_topics():
        if isinstance(topic, PersistentTopic):
            of_namespace = found.setdefault(str(topic.name.namespace_name), [])
            of_namespace.append(await _member(topic, dict.fromkeys(PENDING, 0), slice_))
        await slice_.pause()
    return Reply(200, content_type=JSON, pieces=_object(found))


async def _member(topic: Topic, value: Any, slice_: Slice) -> bytes:
    """Return what an object has of a topic."""
    written = bytearray()
    for piece in json_pieces({str(topic.name): value}):
        written += piece
        await slice_.pause()
    return bytes(written[1:-1])


def _object(members: Mapping[str, Any] | list[bytes]) -> Iterator[bytes]:
    """The pieces of an object of others, of which the innermost are lists of members that are written already."""
    before = b"{"
    for member in members:
        yield before
        before = b","
        if isinstance(member, bytes):
            yield member
        elif isinstance(members, Mapping):
            yield json_bytes(member) + b":"
            yield from _object(members[member])
    yield b"}" if members else b"{}"


@route("GET", f"{ROOT}/allocator-stats/{{allocator}}", needs=SUPERUSER)
def get_allocator_stats(call: Call) -> Reply:
    """The arenas of an allocator: none."""
    name = call.parameter("allocator")
    if name not in ALLOCATORS:
        raise AdminError(406, f"Invalid allocator name : {name}")
    return json_reply(NO_ARENAS)


@route("GET", f"{ROOT}/load-report", needs=SUPERUSER)
def get_load_report(call: Call) -> Reply:
    """What the broker tells of its load: nothing, as a standalone."""
    return done()


@route("GET", f"{ROOT}/broker-resource-availability/{{tenant}}/{{namespace}}", needs=SUPERUSER)
def get_resource_availability(call: Call) -> Reply:
    """Which brokers have room for a namespace: unknown, as in a standalone."""
    raise AdminError(409, "org.apache.pulsar.broker.loadbalance.NoopLoadManager does not support this operation")
