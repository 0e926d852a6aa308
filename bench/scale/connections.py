"""Measure the cost of the number of connections."""

from __future__ import annotations

import resource
import selectors
from collections import deque

from bench.programs import CONNECTIONS
from bench.raw_driver import FRAMES_PER_SEGMENT, WINDOW, Connection, RawDriverError, open_producer
from bench.scale.driving import Cost, cost_of, grown, receipts, send_frame
from bench.work import Done, Timed, Work

SPARE_FILES = 100


def connections(work: Work) -> Timed:
    """Publish `count` messages over 1, 100 and 1000 connections, and over one beside 999 idle ones.

    Each connection has a producer of its own on the same topic. Every write holds 64 messages, and about a thousand
    messages are in flight, over all connections together.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < CONNECTIONS[-1] + SPARE_FILES:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, CONNECTIONS[-1] + SPARE_FILES), hard))
    sizes = [min(size, max(1, work.count // FRAMES_PER_SEGMENT)) for size in CONNECTIONS]

    def timed() -> Done:
        costs: dict[str, Cost] = {}
        crowd = Crowd(work)
        for size, title in zip(sizes, CONNECTIONS, strict=True):
            crowd.grow(size)
            crowd.run(size, max(size * FRAMES_PER_SEGMENT, work.count // 10))  # warms up
            costs[str(title)] = crowd.cost(size, work.count)
        costs["beside-idle"] = crowd.cost(1, work.count)
        return grown(work.count, costs, str(CONNECTIONS[-1]))

    return timed


class Crowd:
    """Connections, each with a producer."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._members: list[Connection] = []
        self._frame = send_frame(work.size)

    def grow(self, size: int) -> None:
        while len(self._members) < size:
            self._members.append(connection := Connection(self._work.service_url))
            open_producer(connection, self._work.topic)

    def cost(self, size: int, count: int) -> Cost:
        """Return the cost of messages over `size` connections in turn."""
        return cost_of(self._work.pid, count, self._members[0], lambda: self.run(size, count))

    def run(self, size: int, count: int) -> None:
        segment = self._frame * FRAMES_PER_SEGMENT
        writes = -(-count // FRAMES_PER_SEGMENT)
        free, owed, sent = deque(self._members[:size]), dict.fromkeys(self._members[:size], 0), 0
        underway = 0
        with selectors.DefaultSelector() as selector:
            for member in free:
                selector.register(member.socket, selectors.EVENT_READ, member)
            while sent < writes or underway:
                while sent < writes and underway + FRAMES_PER_SEGMENT <= WINDOW:
                    member = free[0]
                    free.rotate(-1)
                    member.socket.sendall(segment)
                    owed[member] += FRAMES_PER_SEGMENT
                    underway += FRAMES_PER_SEGMENT
                    sent += 1
                for key, _ in selector.select():
                    came = receipts(key.data)
                    owed[key.data] -= came
                    underway -= came
        if any(owed.values()):
            raise RawDriverError("receipts arrived on another connection than their messages")
