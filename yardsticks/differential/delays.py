"""Measure how early or late both brokers deliver delayed messages to the same client."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass

import trio

from pulsarium.client import Client, ConsumerType, connect
from tests.foreign.broker_process import Address

QUANTILES = {"min": 0.0, "p1": 0.01, "p10": 0.1, "p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
APART_MS = {"p1": 250, "p10": 200, "p50": 250, "p90": 400, "p99": 700}
"""Largest accepted differences of the quantiles, in milliseconds. Chance moves the median of forty bursts by 100 ms. On
a busy machine one broker is late more often than the other, which moves the high quantiles. One message of a thousand
may meet a broker that pauses, so the minimum and the maximum are not compared.
"""
SHORTEST_MS, LONGEST_MS = 1_500, 6_000
"""Shortest and longest delay. A message that is due in less than a tick of the broker is delivered at once."""
SPREAD_SECONDS = 10.0
"""Topics begin at random moments within this time, so that their delays fall on all parts of a broker's tick."""
PATIENCE_SECONDS = 240.0
WARM_UP = 200
"""Messages of each kind that are sent before the measurement, because a broker that has just started is slow."""


@dataclass(frozen=True)
class Kind:
    """A way to publish: `bursts` bursts of `burst` messages to each of `topics` topics.

    A burst begins when the last burst has been delivered. Every topic has one subscription of `type`.
    """

    name: str
    type: ConsumerType
    topics: int
    bursts: int
    burst: int


Lateness = dict[str, list[float]]
"""Sorted delays after the due time in milliseconds, by the name of the kind. An early message has a value below 0."""


def kinds(messages: int) -> list[Kind]:
    """Return the kinds of programs: single messages and bursts, on Shared and on Key_Shared subscriptions.

    Each kind has about `messages` messages.
    """
    return [
        Kind(f"{name}, {shared.name}", shared, max(1, messages // (bursts * burst)), bursts, burst)
        for name, bursts, burst in (("alone", 5, 1), ("bursts of 50", 2, 50))
        for shared in (ConsumerType.Shared, ConsumerType.KeyShared)
    ]


class _Start:
    """A barrier that lets all topics begin together, when the last topic has its consumer and its producer."""

    def __init__(self, topics: int) -> None:
        self._missing = topics
        self._begun = trio.Event()

    async def wait(self) -> None:
        self._missing -= 1
        if not self._missing:
            self._begun.set()
        await self._begun.wait()


async def _topic(client: Client, kind: Kind, name: str, start: _Start, late_ms: list[float]) -> None:
    chance = random.Random(name)
    async with (
        client.subscribe(name, "s", consumer_type=kind.type) as consumer,
        client.create_producer(name, batching_enabled=False) as producer,
    ):
        await start.wait()
        await trio.sleep(chance.uniform(0, SPREAD_SECONDS))
        for _ in range(kind.bursts):
            await trio.sleep(chance.uniform(0, 1))
            due: dict[bytes, int] = {}
            for each in range(kind.burst):
                at = int(time.time() * 1000) + chance.randint(SHORTEST_MS, LONGEST_MS)
                due[b"%d" % each] = at
                producer.send_nowait(b"%d" % each, deliver_at=at, partition_key=f"{each}")
            for _ in range(kind.burst):
                message = await consumer.receive()
                late_ms.append(time.time() * 1000 - due[message.data()])
                await consumer.acknowledge(message)


async def _broker(address: Address, programs: Sequence[Kind], name: str, start: _Start, found: Lateness) -> None:
    async with connect(address.service_url) as client, trio.open_nursery() as nursery:
        for number, kind in enumerate(programs):
            for topic in range(kind.topics):
                late_ms = found.setdefault(kind.name, [])
                nursery.start_soon(_topic, client, kind, f"{name}-{number}-{topic}", start, late_ms)


async def _measured(addresses: Sequence[Address], programs: Sequence[Kind], name: str) -> list[Lateness]:
    found: list[Lateness] = [{} for _ in addresses]
    start = _Start(len(addresses) * sum(kind.topics for kind in programs))
    with trio.fail_after(PATIENCE_SECONDS):
        async with trio.open_nursery() as nursery:
            for address, lateness in zip(addresses, found, strict=True):
                nursery.start_soon(_broker, address, programs, name, start, lateness)
    return [{kind: sorted(late_ms) for kind, late_ms in lateness.items()} for lateness in found]


async def measure(addresses: Sequence[Address], messages: int, seed: int) -> list[Lateness]:
    """Return the lateness of about `messages` messages of each kind, on brokers that have warmed up.

    All brokers are measured at once with the same delays, so that a slow client affects all of them equally.
    """
    await _measured(addresses, kinds(WARM_UP), f"delays-{seed}-warm-up")
    return await _measured(addresses, kinds(messages), f"delays-{seed}")


def quantile(late_ms: Sequence[float], part: float) -> float:
    """Return the value below which `part` of the sorted values are."""
    return late_ms[min(len(late_ms) - 1, int(part * len(late_ms)))]


def table(ours: Lateness, real: Lateness) -> list[str]:
    """Show the quantiles of both brokers, one line below the other."""
    lines = [f"{'milliseconds after its time':32}" + "".join(f"{name:>8}" for name in QUANTILES)]
    for name in ours:
        for whose, late_ms in (("ours", ours[name]), ("real", real[name])):
            figures = "".join(f"{quantile(late_ms, part):8.0f}" for part in QUANTILES.values())
            lines.append(f"{f'{name}, {whose} ({len(late_ms)})':32}{figures}")
    return lines


Difference = tuple[str, str, bool]
"""The name of a kind, the name of a quantile, and whether our broker delivered later there."""


def apart(ours: Lateness, real: Lateness) -> dict[Difference, str]:
    """Return the quantiles in which the brokers differ by more than chance explains, each with its text."""
    found = {}
    for name in ours:
        for label, most in APART_MS.items():
            mine, theirs = (quantile(each[name], QUANTILES[label]) for each in (ours, real))
            if abs(mine - theirs) > most:
                text = f"{name}: {label} is {mine:.0f} ms here, {theirs:.0f} ms there"
                found[name, label, mine > theirs] = text
    return found


def lasting(runs: Sequence[dict[Difference, str]]) -> list[str]:
    """Return the texts of the differences that every run has: a busy machine delays now this broker, now the other."""
    common = set(runs[0]).intersection(*runs[1:])
    return [text for run in runs for difference, text in run.items() if difference in common]
