"""What a measuring program is: a name, a driver, how much of it, and what the broker may spend on it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from bench.work import Timed, Work

PAYLOAD = 1024
TINY = 10
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
class Better:
    """How many times better than the other broker Pulsarium has to be: its rate, its CPU an operation, its p99."""

    rate: float | None = None
    cpu: float | None = None
    p99: float | None = None


@dataclass(frozen=True)
class Program:
    """`count` operations a run (`quick` for a look).

    `target` is broker CPU, in microseconds an operation, of a broker that keeps nothing; `better` is for two brokers
    that keep what they are sent.
    Programs of one `family` differ in a size; the last one's cost over the first one's is a figure too. Those of one
    `group` are about one thing, and can be asked for together. One that is `large` takes a minute or two, runs once,
    and only where it is asked for; one on the JVM (`java`) runs where it is asked for, and against a real broker. One
    that starts a Pulsarium of its own (`alone`) says nothing of another broker.
    """

    name: str
    title: str
    count: int
    quick: int
    prepare: Callable[[Work], Timed]
    target: float | None = None
    better: Better = Better()
    latencies: bool = False
    size: int = PAYLOAD
    family: str = ""
    group: str = ""
    parts: tuple[Part, ...] = ()
    large: bool = False
    java: bool = False
    alone: bool = False


def official(function: str, **options: object) -> Callable[[Work], Timed]:
    """Loads the client only in the process that runs it, the subscription type by name for the same reason."""

    def prepare(work: Work) -> Timed:
        driver = importlib.import_module("bench.official_driver")
        if kind := options.get("kind"):
            options["kind"] = getattr(driver.pulsar.ConsumerType, str(kind))
        timed: Timed = getattr(driver, function)(work, **options)
        return timed

    return prepare


def raw(function: str, module: str = "raw_driver", **options: object) -> Callable[[Work], Timed]:
    """A function of one of the modules here."""

    def prepare(work: Work) -> Timed:
        timed: Timed = getattr(importlib.import_module(f"bench.{module}"), function)(work, **options)
        return timed

    return prepare
