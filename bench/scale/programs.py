"""The programs of this folder: each runs once, and only where it is asked for."""

from __future__ import annotations

from bench.program import GROWTH, TINY, Part, Program, raw

TOPICS = (1, 100, 10_000)
CONNECTIONS = (1, 100, 1000)
LEVELS = {"empty": 0, "100k": 0.01, "1m": 0.1, "10m": 1}
"""How much of a backlog is there, as shares of `count`. The first is a kilobyte or less."""
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


def _topics(name: str, title: str, *, kept: bool) -> Program:
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
            Part("bursts", f"CPU a message, {TOPICS[-1]:,} topics, ten at a time", "us"),
            Part("bursts-growth", "that over 1", "x", GROWTH),
        ),
        large=True,
        alone=True,
    )


SCALE = (
    _topics("scale-topics", "raw publish + consume + ack, many topics", kept=False),
    _topics("scale-topics-kept", "raw publish + consume + ack, many topics, data directory", kept=True),
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
            Part("cold", "of the file not in the system's memory before", "%"),
            Part("seconds", "time to read all", "s"),
            Part("quiet-p99", "p99 of a PING before", "ms"),
            Part("p50", "p50 of a PING", "ms"),
            Part("p99", "p99 of a PING", "ms", PING_MS),
            Part("max", "longest of a PING", "ms"),
            Part("memory", "largest RssAnon", "MB", MOST_MB),
        ),
        large=True,
        alone=True,
    ),
)
