"""The list of measuring programs: one name, one driver, how much of it, and what the broker may spend on it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from .work import Timed, Work

PAYLOAD = 1024


@dataclass(frozen=True)
class Program:
    """`count` operations a run (`quick` for a look). `target` is broker CPU, in microseconds an operation."""

    name: str
    title: str
    count: int
    quick: int
    prepare: Callable[[Work], Timed]
    target: float | None = None
    latencies: bool = False


def _official(function: str, **options: object) -> Callable[[Work], Timed]:
    """Loads the client only in the process that runs it, the subscription type by name for the same reason."""

    def prepare(work: Work) -> Timed:
        driver = importlib.import_module("bench.official_driver")
        if kind := options.get("kind"):
            options["kind"] = getattr(driver.pulsar.ConsumerType, str(kind))
        timed: Timed = getattr(driver, function)(work, **options)
        return timed

    return prepare


def _raw(function: str) -> Callable[[Work], Timed]:
    def prepare(work: Work) -> Timed:
        timed: Timed = getattr(importlib.import_module("bench.raw_driver"), function)(work)
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
)
BY_NAME = {program.name: program for program in PROGRAMS}
