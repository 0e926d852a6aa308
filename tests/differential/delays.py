"""How long before or after their time delayed messages come, from both brokers, by the same client."""

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
"""How far apart the brokers may be. Chance moves the median of forty bursts by 100 ms; on a busy machine one broker is
late more often than the other, which moves the end. One message of a thousand may meet a broker that stands still:
extremes are only shown.
"""
SHORTEST_MS, LONGEST_MS = 1_500, 6_000
"""Delays are between these. A message that is due in less than a tick comes at once."""
SPREAD_SECONDS = 10.0
"""Within so many the topics begin, so that they meet the broker's tick at every moment of it."""
PATIENCE_SECONDS = 240.0
WARM_UP = 200
"""Messages of each kind that come before those that count: a broker that has just started is slow."""


@dataclass(frozen=True)
class Kind:
    """A way to publish: to `topics` topics, to each `bursts` times `burst` messages; the next burst waits for the last.

    Every topic has one subscription of `type`.
    """

    name: str
    type: ConsumerType
    topics: int
    bursts: int
    burst: int


Lateness = dict[str, list[float]]
"""Milliseconds after its time of each message, sorted, by the kind's name; below 0 for one that was early."""


def kinds(messages: int) -> list[Kind]:
    """Return alone and in bursts, Shared and Key_Shared, with about so many messages each."""
    return [
        Kind(f"{name}, {shared.name}", shared, max(1, messages // (bursts * burst)), bursts, burst)
        for name, bursts, burst in (("alone", 5, 1), ("bursts of 50", 2, 50))
        for shared in (ConsumerType.Shared, ConsumerType.KeyShared)
    ]


class _Start:
    """Lets topics begin together, when the last one has its consumer and its producer."""

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
    """Return the lateness of about so many messages of each kind, on brokers that have warmed up.

    All brokers are measured at once, with the same delays: what keeps the client waiting keeps it from all of them.
    """
    await _measured(addresses, kinds(WARM_UP), f"delays-{seed}-warm-up")
    return await _measured(addresses, kinds(messages), f"delays-{seed}")


def quantile(late_ms: Sequence[float], part: float) -> float:
    """Return the value below which `part` of the sorted values are."""
    return late_ms[min(len(late_ms) - 1, int(part * len(late_ms)))]


def table(ours: Lateness, real: Lateness) -> list[str]:
    """Show the quantiles of both, beside each other."""
    lines = [f"{'milliseconds after its time':32}" + "".join(f"{name:>8}" for name in QUANTILES)]
    for name in ours:
        for whose, late_ms in (("ours", ours[name]), ("real", real[name])):
            figures = "".join(f"{quantile(late_ms, part):8.0f}" for part in QUANTILES.values())
            lines.append(f"{f'{name}, {whose} ({len(late_ms)})':32}{figures}")
    return lines


def apart(ours: Lateness, real: Lateness) -> list[str]:
    """Tell where the two distributions differ by more than chance and a busy machine explain."""
    found = []
    for name in ours:
        for label, most in APART_MS.items():
            mine, theirs = (quantile(each[name], QUANTILES[label]) for each in (ours, real))
            if abs(mine - theirs) > most:
                found.append(f"{name}: {label} is {mine:.0f} ms here, {theirs:.0f} ms there")
    return found
