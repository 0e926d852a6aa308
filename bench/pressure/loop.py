"""Measure how long a piece of work holds a broker's loop: the longest time between two PONGs of a bystander."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import groupby
from statistics import median

from bench.accounting import Pulse, cpu_seconds, memory
from bench.brokers import Broker, Launch, pulsarium_command
from bench.raw_driver import Connection
from bench.scale.driving import Peak

TARGET_MS = 100
CALM_SECONDS = 1.0  # without work, to see the machine's own effect on a bystander
SETTLE_SECONDS = 0.5  # after the work's answer, for what the broker does a moment later


@dataclass(frozen=True)
class Piece:
    """A piece of work on `count` items.

    `prepare` sets up a broker, and returns a connection that `work` may use. Consecutive pieces with the same `prepare`
    and `count` share the setup.
    """

    name: str
    title: str
    count: int
    prepare: Callable[[Broker, int], Connection]
    work: Callable[[Broker, Connection, int], object]


@dataclass(frozen=True)
class Held:
    """Result of one round of a piece of work.

    The fields are the milliseconds and the CPU milliseconds between PONGs, and the milliseconds between PONGs without
    the work. The seconds, CPU seconds and megabytes of the work itself follow.
    """

    longest: float
    own: float
    calm: float
    seconds: float
    cpu: float
    megabytes: float


def measure(pieces: Sequence[Piece], scale: float, rounds: int, on: Broker | None) -> dict[Piece, list[Held]]:
    found: dict[Piece, list[Held]] = {piece: [] for piece in pieces}
    for _ in range(rounds):
        for (prepare, count), alike in groupby(pieces, lambda piece: (piece.prepare, piece.count)):
            scaled = max(1, int(count * scale))
            with broker_or(on) as broker:
                connection = prepare(broker, scaled)
                for piece in alike:
                    found[piece].append(once(broker, piece, connection, scaled))
                connection.socket.close()
    return found


@contextmanager
def broker_or(on: Broker | None) -> Iterator[Broker]:
    if on is not None:
        yield on
        return
    launch = Launch(pulsarium_command(), kept=True)
    try:
        yield launch.broker
    finally:
        with suppress(OSError):
            launch.stop()


def once(broker: Broker, piece: Piece, connection: Connection, count: int) -> Held:
    with Pulse(broker.service_url, broker.pid) as calm:
        time.sleep(CALM_SECONDS)
    anonymous = memory(broker.pid).anonymous / (1 << 20)
    with Pulse(broker.service_url, broker.pid) as busy, Peak(broker.pid) as peak:
        begin, cpu = time.perf_counter(), cpu_seconds(broker.pid)
        piece.work(broker, connection, count)
        seconds, cpu = time.perf_counter() - begin, cpu_seconds(broker.pid) - cpu
        time.sleep(SETTLE_SECONDS)
    return Held(busy.gap * 1000, busy.cpu * 1000, calm.gap * 1000, seconds, cpu, peak.megabytes - anonymous)


def table(found: dict[Piece, list[Held]]) -> str:
    lines = [
        "| work | longest ms between PONGs | CPU ms of it | target | without the work | seconds | CPU s | MB more |",
        "|---" * 8 + "|",
    ]
    for piece, rounds in found.items():
        longest = ", ".join(f"{each.longest:.0f}" for each in rounds)
        own = ", ".join(f"{each.own:.0f}" for each in rounds)
        calm = max(each.calm for each in rounds)
        seconds, cpu = median(each.seconds for each in rounds), median(each.cpu for each in rounds)
        more = max(each.megabytes for each in rounds)
        lines.append(
            f"| {piece.title} | {longest} | {own} | {TARGET_MS} | {calm:.0f} | {seconds:.2f} | {cpu:.2f} | {more:.0f} |"
        )
    return "\n".join(lines)
