"""Measure the cost of a consumer that stops reading, and of a publisher that never stops, for all others."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median, quantiles
from typing import NamedTuple

from bench.accounting import FORK, memory
from bench.brokers import Broker
from bench.raw_driver import PING, Connection, flow, open_producer, send_segments, subscribe
from bench.work import Done, Timed, Work
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand

SIZE = 1024
LOAD_SIZE, LOAD_RATE, LOAD_TOGETHER = 4096, 2000, 20
FLOOD_SIZE, FLOOD_TOGETHER, FLOOD_WINDOW = 64 << 10, 4, 900
PERMITS = 1_000_000
SMALL_WINDOW = 4096
SETTLE_SECONDS = 1.0


class Latency(NamedTuple):
    """Latencies in milliseconds."""

    p50: float
    p99: float


@dataclass
class Round:
    """Result of one scene in one round."""

    same: Latency
    other: Latency
    ping: Latency
    megabytes: float


def times(count: int, one: Callable[[], None]) -> Latency:
    taken = []
    for _ in range(count):
        begin = time.perf_counter()
        one()
        taken.append((time.perf_counter() - begin) * 1000)
    return Latency(median(taken), quantiles(taken, n=100)[98])


def sends(broker: Broker, topic: str, count: int) -> Latency:
    connection = Connection(broker.service_url)
    open_producer(connection, topic)
    frames = iter([segment for segment, _ in send_segments(count, SIZE, together=1)])

    def send() -> None:
        connection.socket.sendall(next(frames))
        connection.expect(BaseCommand.SEND_RECEIPT)

    with connection.socket:
        return times(count, send)


def pings(broker: Broker, count: int) -> Latency:
    connection = Connection(broker.service_url)
    ping = BaseCommand.FromString(PING)

    def ask() -> None:
        connection.send(ping)
        connection.expect(BaseCommand.PONG)

    with connection.socket:
        return times(count, ask)


# ---- loads, each in a process of its own


def publish_steadily(service_url: str, topic: str) -> None:
    connection = Connection(service_url)
    open_producer(connection, topic)
    begin, sent = time.monotonic(), 0
    while True:
        for segment, count in send_segments(LOAD_RATE, LOAD_SIZE, together=LOAD_TOGETHER):
            connection.socket.sendall(segment)
            for _ in range(count):
                connection.expect(BaseCommand.SEND_RECEIPT)
            sent += count
            time.sleep(max(0.0, begin + sent / LOAD_RATE - time.monotonic()))


def publish_all(service_url: str, topic: str) -> None:
    connection = Connection(service_url)
    open_producer(connection, topic)
    left = FLOOD_WINDOW
    while True:
        for segment, count in send_segments(1000, FLOOD_SIZE, together=FLOOD_TOGETHER):
            while left < count:
                connection.expect(BaseCommand.SEND_RECEIPT)
                left += 1
            connection.socket.sendall(segment)
            left -= count


def take(service_url: str, topic: str) -> None:
    connection = Connection(service_url)
    subscribe(connection, topic)
    connection.send(flow(0, PERMITS))
    while True:
        connection.read()


@contextmanager
def processes(*programs: Callable[[str, str], None], broker: Broker, topic: str) -> Iterator[None]:
    started = [FORK.Process(target=program, args=(broker.service_url, topic), daemon=True) for program in programs]
    try:
        for process in started:
            process.start()
        time.sleep(SETTLE_SECONDS)
        yield
    finally:
        for process in started:
            process.kill()
            process.join()


@contextmanager
def quiet(broker: Broker, topic: str) -> Iterator[None]:
    with processes(take, publish_steadily, broker=broker, topic=topic):
        yield


@contextmanager
def sluggard(broker: Broker, topic: str) -> Iterator[None]:
    connection = Connection(broker.service_url)
    with connection.socket as stuck:
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_WINDOW)
        subscribe(connection, topic)
        connection.send(flow(0, PERMITS))
        with processes(publish_steadily, broker=broker, topic=topic):
            yield


@contextmanager
def flood(broker: Broker, topic: str) -> Iterator[None]:
    with processes(publish_all, broker=broker, topic=topic):
        yield


SCENES = {"quiet": quiet, "sluggard": sluggard, "flood": flood}


def once(broker: Broker, scene: str, topic: str, count: int) -> Round:
    with SCENES[scene](broker, topic):
        fewer = max(20, count // 20) if scene == "flood" else count  # each waits behind the data on its way to the disk
        same = sends(broker, topic, fewer)
        used = [memory(broker.pid).anonymous]
        other = sends(broker, f"{topic}-other", fewer)
        used.append(memory(broker.pid).anonymous)
        ping = pings(broker, count)
        used.append(memory(broker.pid).anonymous)
    return Round(same, other, ping, max(used) / (1 << 20))


def flooded(work: Work) -> Timed:
    """Send `count` messages and wait for each receipt, first alone, then beside a publisher that never stops."""
    broker = Broker(work.service_url, work.admin_url, work.pid)

    def timed() -> Done:
        sends(broker, work.topic, max(2, work.count // 4))  # warm-up
        alone = sends(broker, work.topic, work.count)
        with flood(broker, f"{work.topic}-flood"):
            beside = sends(broker, work.topic, work.count)
        parts = {"alone-p99": alone.p99, "p50": beside.p50, "p99": beside.p99, "over": beside.p99 / alone.p99}
        return Done(2 * work.count, parts=parts)

    return timed


def measure(broker: Broker, count: int, rounds: int) -> dict[str, list[Round]]:
    found: dict[str, list[Round]] = {scene: [] for scene in SCENES}
    for number in range(-1, rounds):  # the first round is a warm-up
        for scene, made in found.items():
            topic = f"persistent://public/default/pressure-{os.getpid()}-{scene}-{number + 1}"
            one = once(broker, scene, topic, count if number >= 0 else count // 4 + 2)
            if number >= 0:
                made.append(one)
    return found


def table(found: dict[str, list[Round]]) -> str:
    lines = ["| ms | same topic p50 | p99 | other topic p50 | p99 | PING p50 | p99 | p99 of sends over quiet | MB |"]
    lines.append("|---" * 9 + "|")
    calm = found["quiet"]
    for scene, rounds in found.items():
        cells = []
        for part in ("same", "other", "ping"):
            cells += [median(getattr(each, part)[index] for each in rounds) for index in (0, 1)]
        over = [
            median(getattr(each, part).p99 for each in rounds) / median(getattr(each, part).p99 for each in calm)
            for part in ("same", "other")
        ]
        shown = " | ".join(f"{cell:.2f}" for cell in cells)
        most = max(each.megabytes for each in rounds)
        lines.append(f"| {scene} | {shown} | {over[0]:.2f}, {over[1]:.2f} | {most:.0f} |")
    return "\n".join(lines)
