"""A measuring program: its name, driver, number of operations and targets."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from bench.work import Timed, Work

PAYLOAD = 1024
TINY = 10
GROWTH = 2.0
"""Limit for the growth of a cost when something grows that should not matter."""


@dataclass(frozen=True)
class Part:
    """A figure of a part of a run. `target` is an upper bound."""

    name: str
    title: str
    unit: str
    target: float | None = None


@dataclass(frozen=True)
class Better:
    """Targets against another broker: by which factor Pulsarium must be better in rate, CPU per operation and p99."""

    rate: float | None = None
    cpu: float | None = None
    p99: float | None = None


@dataclass(frozen=True)
class Program:
    """A measuring program of `count` operations a run, or `quick` operations for a short look.

    `target` is the broker's CPU per operation in microseconds, for a broker without a data directory. `better` applies
    when two brokers store what they are sent.
    Programs of one `family` differ in a size, and the cost of the last over the first is a figure too. Programs of one
    `group` can be selected together. A `large` program takes a minute or two, runs once, and only when it is named. A
    `java` program runs when it is named, or against a real broker. A program that runs `alone` starts its own
    Pulsarium, and says nothing about another broker.
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
    """Return a function of the official driver. The client is imported only in the process that runs it."""

    def prepare(work: Work) -> Timed:
        driver = importlib.import_module("bench.official_driver")
        if kind := options.get("kind"):
            options["kind"] = getattr(driver.pulsar.ConsumerType, str(kind))
        timed: Timed = getattr(driver, function)(work, **options)
        return timed

    return prepare


def raw(function: str, module: str = "raw_driver", **options: object) -> Callable[[Work], Timed]:
    """Return a function of a module of the bench."""

    def prepare(work: Work) -> Timed:
        timed: Timed = getattr(importlib.import_module(f"bench.{module}"), function)(work, **options)
        return timed

    return prepare
