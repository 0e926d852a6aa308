"""The list of measuring programs: one name, one driver, how much of it, and what the broker may spend on it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .work import Timed, Work

PAYLOAD = 1024
TINY = 10
SIZES = (1, 10, 100)
GROWTH = 2.0
"""How much more something may cost when there is much more of what should not matter."""


@dataclass(frozen=True)
class Part:
    """A figure that a program tells of a part of its run; `target` is an upper bound."""

    name: str
    title: str
    unit: str
    target: float | None = None


@dataclass(frozen=True)
class Program:
    """`count` operations a run (`quick` for a look). `target` is broker CPU, in microseconds an operation.

    Programs of one `family` differ in a size; the last one's cost over the first one's is a figure too. Those of one
    `group` are about one thing, and can be asked for together. One that is `large` takes a minute or two, runs once,
    and only where it is asked for.
    """

    name: str
    title: str
    count: int
    quick: int
    prepare: Callable[[Work], Timed]
    target: float | None = None
    latencies: bool = False
    size: int = PAYLOAD
    family: str = ""
    group: str = ""
    parts: tuple[Part, ...] = ()
    large: bool = False


def _official(function: str, **options: object) -> Callable[[Work], Timed]:
    """Loads the client only in the process that runs it, the subscription type by name for the same reason."""

    def prepare(work: Work) -> Timed:
        driver = importlib.import_module("bench.official_driver")
        if kind := options.get("kind"):
            options["kind"] = getattr(driver.pulsar.ConsumerType, str(kind))
        timed: Timed = getattr(driver, function)(work, **options)
        return timed

    return prepare


def _raw(function: str, module: str = "raw_driver", **options: object) -> Callable[[Work], Timed]:
    def prepare(work: Work) -> Timed:
        timed: Timed = getattr(importlib.import_module(f"bench.{module}"), function)(work, **options)
        return timed

    return prepare


def _consume(kind: str, *, batched: bool) -> Program:
    label = "batched" if batched else "unbatched"
    return Program(
        name=f"consume-{kind.lower()}-{label}",
        title=f"consume + ack, {kind}, {label}",
        count=100_000 if batched else 20_000,
        quick=1000,
        prepare=_official("consume", kind=kind, batched=batched),
        target=10 if kind == "Shared" and not batched else None,
    )


def _consumers(kind: str, consumers: int) -> Program:
    family = f"{kind.lower().replace('_', '-')}-consumers"
    return Program(
        name=f"{family}-{consumers}",
        title=f"raw consume + ack, {consumers} on {kind}",
        count=50_000,
        quick=1000,
        prepare=_raw("consume", "many_consumers", kind=kind, consumers=consumers),
        size=TINY,
        family=family,
    )


HOLES = Program(
    "holes",
    "raw ack, every second message",
    1_000_000,
    100_000,  # the CPU clock of another process ticks every 4 ms: 5 % of them have to take some ticks
    _raw("holes", "large"),
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
    _raw("delayed", "large"),
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
    _raw("last_id", "compacted"),
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
    _raw("compact", "compaction"),
    group="compaction",
    parts=(
        Part("memory", "VmRSS gained", "MB"),
        Part("gap", "longest time between two PONGs", "ms", 50),
    ),
)

PROGRAMS = (
    Program("publish-unbatched", "publish, unbatched", 30_000, 1000, _official("publish", batched=False), target=15),
    Program("publish-batched", "publish, batched", 100_000, 1000, _official("publish", batched=True)),
    _consume("Shared", batched=False),
    _consume("Shared", batched=True),
    _consume("Exclusive", batched=False),
    _consume("Exclusive", batched=True),
    Program("last-message-id", "get_last_message_id", 3000, 100, _official("last_message_id"), latencies=True),
    Program("send-sync", "send and wait for the receipt", 3000, 100, _official("send_and_wait"), latencies=True),
    Program("raw-publish-unbatched", "raw publish, unbatched", 50_000, 1000, _raw("publish_unbatched"), target=15),
    Program(
        "raw-consume-shared-unbatched",
        "raw consume + ack, Shared, unbatched",
        50_000,
        1000,
        _raw("consume_shared"),
        target=10,
    ),
    *(_consumers(kind, consumers) for kind in ("Shared", "Key_Shared") for consumers in SIZES),
    LAST_ID,
    COMPACT,
    HOLES,
    DELAYED,
)
BY_NAME = {program.name: program for program in PROGRAMS}


def chosen(names: Sequence[str], *, large: bool) -> list[Program]:
    """The programs, families and groups that `names` names; all when it is empty, the large ones only on request."""
    if not names:
        return [program for program in PROGRAMS if large or not program.large]
    wanted = set(names)
    called = {program.name: {program.name, program.family, program.group} for program in PROGRAMS}
    if unknown := wanted - set().union(*called.values()):
        raise KeyError(", ".join(sorted(unknown)))
    return [program for program in PROGRAMS if wanted & called[program.name]]
