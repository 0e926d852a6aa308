"""The list of measuring programs."""

from __future__ import annotations

from collections.abc import Sequence

from bench.many_consumers import RATE
from bench.program import GROWTH, TINY, Better, Part, Program, official, raw

TOPICS = (1, 100, 10_000)
CONNECTIONS = (1, 100, 1000)
LEVELS = {"empty": 0, "100k": 0.01, "1m": 0.1, "10m": 1}
"""Sizes of the backlog as shares of `count`. The first is a kilobyte or less."""
MOST_MB = 500
PING_MS = 20


def _sizes(sizes: tuple[int, ...], what: str) -> tuple[Part, ...]:
    costs = (Part(str(size), f"CPU a message, {size:,} {what}", "us") for size in sizes)
    return (
        *costs,
        Part("beside-idle", f"CPU a message, only one of {sizes[-1]:,} busy", "us"),
        Part("growth-100", "100 over 1", "x", GROWTH),
        Part("growth", f"{sizes[-1]:,} over 1", "x", GROWTH),
        Part("idle-growth", f"one of {sizes[-1]:,} over 1", "x", GROWTH),
    )


def _many_topics(name: str, title: str, *, kept: bool) -> Program:
    return Program(
        name,
        title,
        100_000,
        2000,
        raw("topics", "scale.topics", kept=kept),
        size=TINY,
        group="scale",
        parts=(
            *_sizes(TOPICS, "topics"),
            Part("bursts", f"CPU a message, {TOPICS[-1]:,} topics, ten messages at a time", "us"),
            Part("bursts-growth", "ten at a time over 1", "x", GROWTH),
        ),
        large=True,
        alone=True,
    )


SCALE = (
    _many_topics("scale-topics", "raw publish + consume + ack, many topics", kept=False),
    _many_topics("scale-topics-kept", "raw publish + consume + ack, many topics, data directory", kept=True),
    Program(
        "scale-connections",
        "raw publish, many connections",
        200_000,
        4000,
        raw("connections", "scale.connections"),
        size=TINY,
        group="scale",
        parts=_sizes(CONNECTIONS, "connections"),
        large=True,
        alone=True,
    ),
    Program(
        "scale-backlog",
        "raw publish, consume + ack, with a backlog, data directory",
        10_000_000,
        100_000,
        raw("backlog", "scale.backlog"),
        size=TINY,
        group="scale",
        parts=(
            *(
                Part(f"{verb}-{level}", f"CPU to {verb} one, backlog {level}", "us")
                for verb in ("publish", "consume")
                for level in LEVELS
            ),
            Part("publish-growth", "publish, worst over empty", "x", GROWTH),
            Part("consume-growth", "consume, worst over empty", "x", GROWTH),
            Part("memory", "largest RssAnon", "MB", MOST_MB),
        ),
        large=True,
        alone=True,
    ),
    Program(
        "big-backlog",
        "raw publish, then consume + ack, a megabyte each, data directory",
        10_000,
        20,
        raw("big", "scale.backlog"),
        size=1_000_000,
        group="scale",
        parts=(
            Part("publish", "CPU to publish one", "us"),
            Part("consume", "CPU to consume one", "us"),
            Part("publish-memory", "largest RssAnon while publishing", "MB", MOST_MB),
            Part("consume-memory", "largest RssAnon while consuming", "MB", MOST_MB),
        ),
        large=True,
        alone=True,
    ),
    Program(
        "cold-read",
        "PING while a restarted broker's backlog is read",
        10_000,
        100,
        raw("cold_read", "scale.cold"),
        size=100_000,
        group="scale",
        parts=(
            Part("cold", "share of the file outside the page cache before", "%"),
            Part("seconds", "time to read all", "s"),
            Part("quiet-p99", "p99 of a PING before", "ms"),
            Part("p50", "p50 of a PING", "ms"),
            Part("p99", "p99 of a PING", "ms", PING_MS),
            Part("max", "longest PING", "ms"),
            Part("memory", "largest RssAnon", "MB", MOST_MB),
        ),
        large=True,
        alone=True,
    ),
)


SIZES = (1, 10, 100, 1000)
THIRD_OF_CPU = 3
SENT = Better(rate=3, cpu=2.5, p99=2)
RECEIVED = {"Shared": Better(rate=5.3, cpu=THIRD_OF_CPU), "Exclusive": Better(rate=7, cpu=THIRD_OF_CPU)}
BATCHED = Better(rate=1.5, cpu=THIRD_OF_CPU)


def _consume(kind: str, *, batched: bool) -> Program:
    label = "batched" if batched else "unbatched"
    return Program(
        name=f"consume-{kind.lower()}-{label}",
        title=f"consume + ack, {kind}, {label}",
        count=100_000 if batched else 20_000,
        quick=1000,
        prepare=official("consume", kind=kind, batched=batched),
        target=10 if kind == "Shared" and not batched else None,
        better=BATCHED if batched else RECEIVED[kind],
    )


def _raw_consume(kind: str) -> Program:
    return Program(
        name=f"raw-consume-{kind.lower()}-unbatched",
        title=f"raw consume + ack, {kind}, unbatched",
        count=50_000,
        quick=1000,
        prepare=raw("consume", kind=kind),
        target=10 if kind == "Shared" else None,
        better=RECEIVED[kind],
    )


def _tail(kind: str) -> Program:
    return Program(
        name=f"raw-tail-{kind.lower()}-unbatched",
        title=f"raw publish, consume + ack at {RATE:,}/s, {kind}",
        count=25_000,
        quick=500,
        prepare=raw("tail", "many_consumers", kind=kind),
        latencies=True,
    )


def _consumers(kind: str, consumers: int) -> Program:
    family = f"{kind.lower().replace('_', '-')}-consumers"
    return Program(
        name=f"{family}-{consumers}",
        title=f"raw consume + ack, {consumers} on {kind}",
        count=50_000,
        quick=1000,
        prepare=raw("consume", "many_consumers", kind=kind, consumers=consumers),
        size=TINY,
        family=family,
        group="scale",
    )


def _perf(does: str, title: str) -> Program:
    return Program(
        name=f"perf-{does}-batched",
        title=title,
        count=1_000_000,
        quick=20_000,
        prepare=raw(does, "perf"),
        better=BATCHED,
        parts=(Part("p99", "p99, as pulsar-perf reports it", "ms"),) if does == "publish" else (),
        group="perf",
        java=True,
    )


def _topics(connections: int) -> Program:
    several = f"-{connections}" if connections > 1 else ""
    return Program(
        name=f"topics-rest{several}",
        title=f"a topic created over REST, {connections} connection{'s' if several else ''}",
        count=1000,
        quick=50,
        prepare=raw("create", "topics", connections=connections),
        better=Better() if several else Better(rate=12),
        latencies=True,
        group="topics",
    )


WAITED_FOR = Program(
    "raw-consume-waited-for",
    "raw consume + ack, Shared, published while the consumer waits with permits",
    50_000,
    1000,
    raw("consume", "many_consumers", kind="Shared", consumers=1),
)
HOLES = Program(
    "holes",
    "raw ack, every second message",
    1_000_000,
    # the CPU clock of another process ticks every 4 ms, and 5 % of the acknowledgements must take several ticks
    100_000,
    raw("holes", "large"),
    size=TINY,
    parts=(
        Part("first", "CPU an ack, first 5 %", "us"),
        Part("last", "CPU an ack, last 5 %", "us"),
        Part("growth", "last over first", "x", GROWTH),
        Part("memory", "VmRSS gained", "MB"),
    ),
    large=True,
)
DELAYED = Program(
    "delayed",
    "raw publish, delayed by an hour or two",
    1_000_000,
    40_000,
    raw("delayed", "large"),
    size=TINY,
    parts=(
        Part("first", "CPU a message, first 5 %", "us"),
        Part("last", "CPU a message, last 5 %", "us"),
        Part("growth", "last over first", "x", GROWTH),
        Part("memory", "VmRSS gained", "MB"),
        Part("plain-alone", "CPU a plain message before", "us"),
        Part("plain-beside", "CPU a plain message beside them", "us"),
        Part("plain-growth", "beside over before", "x", GROWTH),
    ),
    large=True,
)
LAST_ID = Program(
    "compacted-last-id",
    "raw get_last_message_id, v22, compacted",
    2000,
    50,
    raw("last_id", "compacted"),
    latencies=True,
    group="compaction",
    parts=(
        Part("stored", "the last batch as it is stored", "kB", 100),
        *(
            Part(f"{case}-{what}", f"{told}, {title}", unit)
            for what, told, unit in (("cpu", "CPU a call", "us"), ("rate", "calls a second", "/s"))
            for case, title in (
                ("uncompacted", "before compaction"),
                ("unlisted", "v21, without field 31"),
                ("listed", "v21, with field 31"),
                ("v22", "v22"),
            )
        ),
        Part("copy", "CPU to send the buffer, without a broker", "us"),
        Part("over-uncompacted", "v22 without that, over before compaction", "x", 1.5),
        Part("over-unlisted", "v22 over v21 without field 31", "x", 0.2),
    ),
)
COMPACT = Program(
    "compact",
    "compaction to a tenth",
    100_000,
    1000,
    raw("compact", "compaction"),
    group="compaction",
    parts=(
        Part("memory", "VmRSS gained", "MB"),
        Part("gap", "longest time between two PONGs", "ms", 50),
    ),
)

FLOOD = Program(
    "raw-flood",
    "raw send and wait for the receipt, beside a publisher that never stops",
    400,
    20,
    raw("flooded", "pressure.neighbours"),
    parts=(
        Part("alone-p99", "p99 alone", "ms"),
        Part("p50", "p50 beside the flood", "ms"),
        Part("p99", "p99 beside the flood", "ms"),
        Part("over", "p99 beside the flood over p99 alone", "x", GROWTH),
    ),
)

PROGRAMS = (
    Program(
        "publish-unbatched",
        "publish, unbatched",
        30_000,
        1000,
        official("publish", batched=False),
        target=15,
        better=Better(rate=1.5, cpu=THIRD_OF_CPU),
    ),
    Program("publish-batched", "publish, batched", 100_000, 1000, official("publish", batched=True), better=BATCHED),
    _consume("Shared", batched=False),
    _consume("Shared", batched=True),
    _consume("Exclusive", batched=False),
    _consume("Exclusive", batched=True),
    Program(
        "last-message-id",
        "get_last_message_id",
        3000,
        100,
        official("last_message_id"),
        latencies=True,
        better=Better(rate=1),
    ),
    Program(
        "send-sync",
        "send and wait for the receipt",
        3000,
        100,
        official("send_and_wait"),
        latencies=True,
        better=SENT,
    ),
    Program(
        "raw-publish-unbatched",
        "raw publish, unbatched",
        50_000,
        1000,
        raw("publish_unbatched"),
        target=15,
        better=Better(rate=1, cpu=THIRD_OF_CPU),
    ),
    _raw_consume("Shared"),
    _raw_consume("Exclusive"),
    WAITED_FOR,
    _tail("Shared"),
    _tail("Exclusive"),
    Program(
        "raw-last-message-id",
        "raw get_last_message_id",
        3000,
        100,
        raw("last_message_id"),
        latencies=True,
        better=Better(rate=2.5, p99=2),
    ),
    Program(
        "raw-send-sync",
        "raw send and wait for the receipt",
        3000,
        100,
        raw("send_and_wait"),
        latencies=True,
        better=SENT,
    ),
    FLOOD,
    _perf("publish", "pulsar-perf produce, batched"),
    _perf("consume", "pulsar-perf consume, batched"),
    _topics(1),
    _topics(8),
    *(_consumers(kind, consumers) for kind in ("Shared", "Key_Shared") for consumers in SIZES),
    LAST_ID,
    COMPACT,
    HOLES,
    DELAYED,
    *SCALE,
)
BY_NAME = {program.name: program for program in PROGRAMS}


def chosen(names: Sequence[str], *, large: bool, java: bool = False) -> list[Program]:
    """Return the programs, families and groups of `names`, or all programs without names.

    Without names, large programs and those on the JVM are included only when asked for. Raise `KeyError` for an unknown
    name.
    """
    if not names:
        return [program for program in PROGRAMS if (large or not program.large) and (java or not program.java)]
    wanted = set(names)
    called = {program.name: {program.name, program.family, program.group} for program in PROGRAMS}
    if unknown := wanted - set().union(*called.values()):
        raise KeyError(", ".join(sorted(unknown)))
    return [program for program in PROGRAMS if wanted & called[program.name]]
