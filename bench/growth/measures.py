"""Measure the cost of a message at one size: broker CPU in microseconds."""

from __future__ import annotations

import resource
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from bench import many_consumers
from bench.accounting import cpu_seconds
from bench.brokers import Launch, pulsarium_command
from bench.large import Meter
from bench.program import GROWTH, TINY
from bench.raw_driver import subscribe
from bench.scale.connections import SPARE_FILES, Crowd
from bench.scale.driving import Publisher, Taker, broker_of, settled
from bench.scale.topics import IDS_PER_ACK, Topics
from bench.work import Work

LARGE = 1_000_000  # bytes of the messages of a large backlog
TOPIC = "persistent://public/default/growth"

Points = Iterator[tuple[int, float]]
"""Each size with its cost."""


@dataclass(frozen=True)
class Axis:
    """A number that grows, its sizes, and the function that yields the cost at each size.

    `count` messages are measured at each size. The cost of the largest size is at most `limit` times that of the first.
    """

    name: str
    title: str
    unit: str
    sizes: Sequence[int]
    count: int
    measure: Callable[[Sequence[int], int], Points]
    limit: float = GROWTH


def topics(sizes: Sequence[int], count: int) -> Points:
    """Publish, consume and acknowledge messages of as many topics, one message for each topic in turn."""
    with broker_of(_nothing()) as broker:
        for size in sizes:
            each = max(count, IDS_PER_ACK * size)  # else hardly a consumer acknowledges
            alike = Topics(broker.service_url, [f"{TOPIC}-{size}-{number}" for number in range(size)], TINY)
            alike.run(range(size), max(size, each // 10))  # warm-up
            yield size, alike.cost(broker.pid, range(size), each).cpu
            alike.close()


def connections(sizes: Sequence[int], count: int) -> Points:
    """Publish messages over as many connections in turn."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < max(sizes) + SPARE_FILES:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(sizes) + SPARE_FILES), hard))
    with broker_of(_nothing()) as broker:
        crowd = Crowd(Work(broker.service_url, TOPIC, count, TINY, broker.pid, broker.admin_url))
        for size in sizes:
            crowd.grow(size)
            each = max(count, 128 * size)
            crowd.run(size, each // 2)  # warm-up
            yield size, crowd.cost(size, each).cpu


def consumers(sizes: Sequence[int], count: int) -> Points:
    """Consume and acknowledge messages with as many consumers of one Shared subscription."""
    with broker_of(_nothing()) as broker:
        for size in sizes:
            work = Work(broker.service_url, f"{TOPIC}-{size}", count, TINY, broker.pid, broker.admin_url)
            costs = []
            for name in (f"{work.topic}-warm", work.topic):
                timed = many_consumers.consume(replace(work, topic=name), kind="Shared", consumers=size)
                meter = Meter(broker.pid)
                timed()
                costs.append(meter.spent(count))
            yield size, costs[-1]


def backlog(sizes: Sequence[int], count: int) -> Points:
    """Publish, consume and acknowledge messages on a topic where another subscription has as many bytes of backlog."""
    with broker_of(_nothing()) as broker:
        subscribe(waits := Publisher(broker.service_url, TOPIC, 1).connection, TOPIC)
        waits.socket.close()
        stored, other = 0, f"{TOPIC}-beside"
        for size in sizes:
            stored += _store(broker.service_url, TOPIC, size - stored)
            small = Publisher(broker.service_url, TOPIC, TINY)  # now, because nobody answers PINGs during `_store`
            taker = Taker(broker.service_url, other)
            beside = Publisher(broker.service_url, other, TINY)
            beside.publish(count // 10)  # warm-up
            taker.take(count // 10)
            settled(small.connection)
            meter = Meter(broker.pid)
            small.publish(count)
            beside.publish(count)
            taker.take(count)
            settled(small.connection)
            yield size, meter.spent(2 * count)
            for connection in (small.connection, taker.connection, beside.connection):
                connection.socket.close()


def start(sizes: Sequence[int], count: int) -> Points:
    """Start a broker on a data directory with as many bytes of backlog.

    The cost is the CPU time up to the ready line, in microseconds.
    """
    with tempfile.TemporaryDirectory(prefix="pulsarium-growth-") as folder:
        command, stored = [*pulsarium_command(), "--data", str(Path(folder, "data"))], 0
        for size in sizes:
            with closing(_Stopped(Launch(command))) as running:
                if not stored:
                    subscribe(waits := Publisher(running.service_url, TOPIC, 1).connection, TOPIC)
                    waits.socket.close()
                stored += _store(running.service_url, TOPIC, size - stored)
            costs = []
            for _ in range(count):
                with closing(_Stopped(Launch(command))) as running:
                    costs.append(cpu_seconds(running.pid) * 1e6)
            yield size, min(costs)


class _Stopped:
    """A broker that `close` stops."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self.service_url, self.pid = launch.broker.service_url, launch.broker.pid

    def close(self) -> None:
        self._launch.stop()


def _store(service_url: str, topic: str, size: int) -> int:
    """Publish `size` bytes, in messages of at most LARGE bytes, and return their number."""
    if size <= 0:
        return 0
    each = min(size, LARGE)
    publisher = Publisher(service_url, topic, each)
    publisher.publish(max(1, size // each))
    publisher.connection.socket.close()
    return size


def _nothing() -> Work:
    """Return work for a broker of its own."""
    return Work("", TOPIC, 0, TINY, 0, "")


AXES = (
    Axis("topics", "topics, a message each in turn", "topics", (1, 10, 100, 1000, 10_000, 100_000), 50_000, topics),
    Axis("connections", "connections that publish", "connections", (1, 10, 100, 1000, 5000), 50_000, connections),
    Axis("consumers", "consumers of a Shared subscription", "consumers", (1, 10, 100, 1000), 50_000, consumers),
    Axis(
        "backlog",
        "backlog of another subscription",
        "bytes",
        (1000, 1_000_000, 100_000_000, 1_000_000_000, 10_000_000_000, 50_000_000_000),
        20_000,
        backlog,
    ),
    Axis(
        "start",
        "start on a data directory",
        "bytes",
        (1000, 1_000_000, 100_000_000, 1_000_000_000, 10_000_000_000),
        3,
        start,
    ),
)
