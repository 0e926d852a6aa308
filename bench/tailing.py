"""Measuring program of a consumer that is there while somebody publishes: what a message costs from end to end."""

from __future__ import annotations

import selectors
import time

from bench.many_consumers import Group
from bench.raw_driver import Connection, open_producer, send_segments
from bench.work import Done, Timed, Work

RATE = 5_000
"""Messages a second: both brokers keep up with it, on two cores that they share with the driver."""

TOGETHER = 10  # messages of one write


def tail(work: Work, *, kind: str) -> Timed:
    """Publish at RATE while one consumer takes and acknowledges; a latency is from a SEND to its MESSAGE."""
    group = Group(work, kind, range(1))
    group.ask()
    producer = Connection(work.service_url)
    open_producer(producer, work.topic)
    segments = list(send_segments(work.count, work.size, together=TOGETHER))

    def timed() -> Done:
        due = time.perf_counter()
        sent: list[float] = []
        latencies: list[float] = []
        left = iter(segments)
        with selectors.DefaultSelector() as selector:
            selector.register(group.connection.socket, selectors.EVENT_READ)
            selector.register(producer.socket, selectors.EVENT_READ)
            while len(latencies) < work.count:
                now = time.perf_counter()
                if now >= due and len(sent) < work.count:
                    segment, messages = next(left)
                    producer.socket.sendall(segment)
                    sent += [now] * messages
                    due += messages / RATE
                for key, _ in selector.select(max(0.0, due - now) if len(sent) < work.count else None):
                    if key.fileobj is producer.socket:
                        producer.read()
                        continue
                    group.take()
                    now = time.perf_counter()
                    latencies += [now - begin for begin in sent[len(latencies) : group.received]]
        group.finish()
        return Done(work.count, latencies)

    return timed
