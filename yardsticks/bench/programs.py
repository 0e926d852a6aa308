"""The table of measuring programs: their drivers, numbers of operations and targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from yardsticks.bench.drivers.raw import RATE

PAYLOAD = 1024
TINY = 10
CLIENT_PAYLOAD = 100
GROWTH = 2.0
"""Limit for the growth of a cost when something grows that should not matter."""
BESIDE_FLOOD = 3.0
"""Limit for the p99 of a send beside a publisher that never stops, over the p99 of a send alone."""


@dataclass(frozen=True)
class Part:
    """A figure of a part of a run. `target` is an upper bound."""

    name: str
    title: str
    unit: str
    target: float | None = None


@dataclass(frozen=True)
class Better:
    """Targets against another broker or client: factors of the rate, the CPU per operation and the p99."""

    rate: float | None = None
    cpu: float | None = None
    p99: float | None = None


@dataclass(frozen=True)
class Program:
    """A measuring program of `count` operations a run, or `quick` operations for a short look.

    It is a function of a module in drivers/, which gets `options`. `target` is the broker's CPU per operation in
    microseconds, for a broker without a data directory. `better` applies when two brokers store what they are sent.
    `least` is the least number of operations a second for our client. Programs of one `family` differ in a size, and
    the cost of the last over the first is a figure too. Programs of one family, or of one driver, can be selected
    together. Those of the driver `perf` need Java: they run when they are named, or against a real broker.
    """

    name: str
    title: str
    count: int
    quick: int
    driver: str
    function: str
    options: Mapping[str, object] = field(default_factory=dict)
    target: float | None = None
    better: Better = Better()
    least: float | None = None
    latencies: bool = False
    size: int = PAYLOAD
    family: str = ""
    parts: tuple[Part, ...] = ()


SIZES = (1, 10, 100, 1000)
SENT, ASKED = Better(rate=3, cpu=2.5, p99=2), Better(rate=2.5, p99=2)
RECEIVED = {"Shared": Better(rate=5.3, cpu=3), "Exclusive": Better(rate=7, cpu=3)}
BATCHED = Better(rate=1.5, cpu=3)
LEAST = 50_000
SINGLE, BATCHES = {"batched": False}, {"batched": True}
LAST_ID, SEND = "get_last_message_id", "send and wait for the receipt"
WAITED_FOR = "raw consume + ack, Shared, published while the consumer waits with permits"
FLOOD, STUCK = "beside a publisher that never stops", "beside a consumer that never reads"
FLOODED = (
    Part("alone-p99", "p99 alone", "ms"),
    Part("p50", "p50 beside the flood", "ms"),
    Part("p99", "p99 beside the flood", "ms"),
    Part("same-p99", "p99 beside a flood of the same topic", "ms"),
    Part("over", "p99 beside the flood over p99 alone", "x", BESIDE_FLOOD),
    Part("same-over", "p99 beside a flood of the same topic over p99 alone", "x", BESIDE_FLOOD),
)
UNREAD = (
    Part("quiet-p99", "p99 beside a consumer that reads", "ms"),
    Part("p50", "p50 beside a consumer that never reads", "ms"),
    Part("p99", "p99 beside a consumer that never reads", "ms"),
    Part("over", "p99 beside a consumer that never reads over one that reads", "x", GROWTH),
    Part("memory", "largest RssAnon", "MB"),
)
COMPACTED = (
    Part("uncompacted", "CPU a call, before compaction", "us"),
    Part("v21", "CPU a call, v21", "us"),
    Part("v22", "CPU a call, v22", "us"),
    Part("over-uncompacted", "v22 over before compaction", "x", 1.5),
)
COMPACT = (Part("memory", "VmRSS gained", "MB"), Part("gap", "longest time between two PONGs", "ms", 50))


def _consume(kind: str, *, batched: bool) -> Program:
    label = "batched" if batched else "unbatched"
    name, title, options = f"consume-{kind.lower()}-{label}", f"consume + ack, {kind}, {label}", {"kind": kind}
    made = Program(name, title, 20_000, 1000, "official", "consume", {**options, "batched": batched}, None, BATCHED)
    if batched:
        return replace(made, count=100_000, least=LEAST)
    return replace(made, better=RECEIVED[kind], target=10 if kind == "Shared" else None)


def _raw(does: str, title: str, kind: str, count: int, quick: int) -> Program:
    name, title = f"raw-{does}-{kind.lower()}-unbatched", title.format(kind=kind)
    made = Program(name, title, count, quick, "raw", does, {"kind": kind})
    if does == "tail":
        return replace(made, latencies=True)
    return replace(made, target=10 if kind == "Shared" else None, better=RECEIVED[kind])


def _consumers(kind: str, number: int) -> Program:
    family, options = f"{kind.lower().replace('_', '-')}-consumers", {"kind": kind, "consumers": number}
    name, title = f"{family}-{number}", f"raw consume + ack, {number} on {kind}"
    return Program(name, title, 50_000, 1000, "raw", "consume_as_many", options, family=family, size=TINY)


def _perf(does: str, title: str, *parts: Part) -> Program:
    made = Program(f"perf-{does}-batched", title, 1_000_000, 20_000, "perf", does, better=BATCHED)
    return replace(made, parts=parts)


def _topics(name: str, title: str, connections: int, better: Better) -> Program:
    made = Program(name, f"a topic created over REST, {title}", 1000, 50, "topics", "create", better=better)
    return replace(made, options={"connections": connections}, latencies=True)


P, KINDS = Program, ("Shared", "Exclusive")
PROGRAMS = (
    P("publish-unbatched", "publish, unbatched", 30_000, 1000, "official", "publish", SINGLE, 15, Better(1.5, 3)),
    P("publish-batched", "publish, batched", 100_000, 1000, "official", "publish", BATCHES, None, BATCHED, LEAST),
    *(_consume(kind, batched=batched) for kind in KINDS for batched in (False, True)),
    P("last-message-id", LAST_ID, 3000, 100, "official", "last_message_id", better=Better(1), latencies=True),
    P("send-sync", SEND, 3000, 100, "official", "send_and_wait", better=SENT, latencies=True),
    P("raw-publish-unbatched", "raw publish, unbatched", 50_000, 1000, "raw", "publish", {}, 15, Better(1, 3)),
    *(_raw("consume", "raw consume + ack, {kind}, unbatched", kind, 50_000, 1000) for kind in KINDS),
    P("raw-consume-waited-for", WAITED_FOR, 50_000, 1000, "raw", "consume_as_many", {"kind": "Shared", "consumers": 1}),
    *(_raw("tail", f"raw publish, consume + ack at {RATE:,}/s, {{kind}}", kind, 25_000, 500) for kind in KINDS),
    P("raw-last-message-id", f"raw {LAST_ID}", 3000, 100, "raw", "last_message_id", better=ASKED, latencies=True),
    P("raw-send-sync", f"raw {SEND}", 3000, 100, "raw", "send_and_wait", better=SENT, latencies=True),
    P("raw-flood", f"raw {SEND}, {FLOOD}", 400, 20, "neighbours", "flooded", parts=FLOODED),
    P("raw-unread", f"raw {SEND}, {STUCK}", 2000, 20, "neighbours", "unread", parts=UNREAD),
    _perf("publish", "pulsar-perf produce, batched", Part("p99", "p99, as pulsar-perf reports it", "ms")),
    _perf("consume", "pulsar-perf consume, batched"),
    _topics("topics-rest", "1 connection", 1, Better(rate=12)),
    _topics("topics-rest-8", "8 connections", 8, Better()),
    *(_consumers(kind, number) for kind in ("Shared", "Key_Shared") for number in SIZES),
    P("compacted-last-id", f"raw {LAST_ID}, v22, compacted", 2000, 50, "compaction", "last_id", parts=COMPACTED),
    P("compact", "compaction to a tenth", 100_000, 1000, "compaction", "compact", parts=COMPACT),
)

CLIENTS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "pulsarium, trio": ("own", {"backend": "trio"}),
    "pulsarium, asyncio": ("own", {"backend": "asyncio"}),
    "official, asyncio": ("official_asyncio", {}),
    "official": ("official", {}),
}
"""Drivers of clients that have the same functions. The first two are ours, and the third is the one to reach."""
OUR_CLIENTS = 2
OF_CLIENTS = [
    program.name
    for program in PROGRAMS
    if program.driver == "official" and program.options.get("kind", "Shared") == "Shared"
]
OF_LITE = [
    program.name
    for program in PROGRAMS
    if program.driver == "official" or (program.driver == "raw" and program.function not in ("consume_as_many", "tail"))
    if program.name != "raw-last-message-id"
]
"""The programs that pulsar-lite can run: those that need neither REST nor Key_Shared."""


def on_client(program: Program, client: str) -> Program:
    """Return a program of the table on another client, or the program itself for no client."""
    if not client:
        return program
    driver, options = CLIENTS[client]
    return replace(program, driver=driver, options={**program.options, **options}, size=CLIENT_PAYLOAD)


def chosen(names: Sequence[str], *, java: bool = False) -> list[Program]:
    """Return the programs, families and drivers of `names`, or all programs without names.

    Without names, programs on the JVM are included only when asked for. Raise `KeyError` for an unknown name.
    """
    if not names:
        return [program for program in PROGRAMS if java or program.driver != "perf"]
    wanted = set(names)
    called = {program.name: {program.name, program.family, program.driver} for program in PROGRAMS}
    if unknown := wanted - set().union(*called.values()):
        raise KeyError(", ".join(sorted(unknown)))
    return [program for program in PROGRAMS if wanted & called[program.name]]
