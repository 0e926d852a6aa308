"""Programs that measure what a publisher that never stops, or a consumer that stops reading, costs all others."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand
from yardsticks.bench.accounting import FORK, Meter, Peak
from yardsticks.bench.drivers.raw import send_and_wait
from yardsticks.bench.wire import Connection, flow, open_producer, send_segments, subscribe
from yardsticks.bench.work import Done, Timed, Work, percentile

LOAD_SIZE, LOAD_RATE, LOAD_TOGETHER = 4096, 2000, 20
FLOOD_SIZE, FLOOD_TOGETHER, FLOOD_WINDOW = 64 << 10, 4, 900
PERMITS = 1_000_000
SMALL_WINDOW = 4096
SETTLE_SECONDS = 1.0


def flooded(work: Work) -> Timed:
    """Send and wait for the receipts: alone, and beside a publisher that never stops, on another topic and on this.

    The rate and the CPU are those beside a flood of another topic.
    """

    def timed() -> Done:
        alone = sends(work).parts["p99"]
        with beside(flood, service_url=work.service_url, topic=f"{work.topic}-flood"):
            other = sends(work)
        with beside(flood, service_url=work.service_url, topic=work.topic):
            same = sends(work).parts["p99"]
        parts = {"alone-p99": alone, "same-p99": same, "same-over": same / alone, "over": other.parts["p99"] / alone}
        return replace(other, parts=other.parts | parts)

    return timed


def unread(work: Work) -> Timed:
    """Send and wait for the receipts beside a load whose consumer reads, and beside one whose consumer never does."""
    topic = f"{work.topic}-load"

    def timed() -> Done:
        with beside(take, publish_steadily, service_url=work.service_url, topic=topic):
            quiet = sends(work).parts["p99"]
        stuck = Connection(work.service_url)
        stuck.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_WINDOW)
        subscribe(stuck, topic)
        stuck.send(flow(0, PERMITS))
        load = beside(publish_steadily, service_url=work.service_url, topic=topic)
        with stuck.socket, Peak(work.pid) as peak, load:
            done = sends(work)
        parts = {"quiet-p99": quiet, "over": done.parts["p99"] / quiet}
        return replace(done, parts=done.parts | parts | {"memory": peak.megabytes})

    return timed


def sends(work: Work) -> Done:
    """Return the cost of synchronous sends, after a few that warm up. The parts are milliseconds."""
    send_and_wait(replace(work, count=max(2, work.count // 4)))()
    timed, meter = send_and_wait(work), Meter(work.pid)
    latencies = timed().latencies
    parts = {f"p{percent}": percentile(latencies, percent) * 1000 for percent in (50, 99)}
    cpu = meter.spent(1) / 1e6
    return Done(work.count, parts=parts, seconds=sum(latencies), broker_cpu=cpu)


# ---- loads, each in a process of its own


def publish_steadily(service_url: str, topic: str) -> None:
    open_producer(connection := Connection(service_url), topic)
    begin, sent = time.monotonic(), 0
    while True:
        for segment, count in send_segments(LOAD_RATE, LOAD_SIZE, together=LOAD_TOGETHER):
            connection.socket.sendall(segment)
            for _ in range(count):
                connection.expect(BaseCommand.SEND_RECEIPT)
            sent += count
            time.sleep(max(0.0, begin + sent / LOAD_RATE - time.monotonic()))


def flood(service_url: str, topic: str) -> None:
    open_producer(connection := Connection(service_url), topic)
    left = FLOOD_WINDOW
    while True:
        for segment, count in send_segments(1000, FLOOD_SIZE, together=FLOOD_TOGETHER):
            while left < count:
                connection.expect(BaseCommand.SEND_RECEIPT)
                left += 1
            connection.socket.sendall(segment)
            left -= count


def take(service_url: str, topic: str) -> None:
    subscribe(connection := Connection(service_url), topic)
    connection.send(flow(0, PERMITS))
    while True:
        connection.read()


@contextmanager
def beside(*loads: Callable[[str, str], None], service_url: str, topic: str) -> Iterator[None]:
    started = [FORK.Process(target=load, args=(service_url, topic), daemon=True) for load in loads]
    try:
        for process in started:
            process.start()
        time.sleep(SETTLE_SECONDS)
        yield
    finally:
        for process in started:
            process.kill()
            process.join()
