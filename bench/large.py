"""Programs that accumulate state, and measure the cost of one more item at the beginning and at the end."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

from bench.accounting import cpu_seconds, memory
from bench.raw_driver import (
    CONSUMER_ID,
    IDS_PER_ACK,
    PERMITS,
    Connection,
    empty_ack,
    flow,
    open_producer,
    send_all,
    send_segments,
    subscribe,
)
from bench.work import Done, Timed, Work
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand, MessageMetadata

SHARE = 20
"""The beginning and the end are one part in so many of the whole."""

MB = 1_000_000
HOUR_MS = 3_600_000


class Meter:
    """Meter of the broker's CPU and memory, part by part."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._cpu = cpu_seconds(pid)
        self._resident = memory(pid).resident

    def spent(self, operations: int) -> float:
        """Return the microseconds of CPU per operation since the last call."""
        before, self._cpu = self._cpu, cpu_seconds(self._pid)
        return (self._cpu - before) / operations * 1e6

    def gained(self) -> float:
        """Return the resident megabytes since the meter's start."""
        return (memory(self._pid).resident - self._resident) / MB


def holes(work: Work) -> Timed:
    """Acknowledge every second of twice `count` messages, which makes `count` gaps.

    None is delivered, so no limit applies.
    """
    subscribe(waits := Connection(work.service_url), work.topic)
    waits.socket.close()
    entries: Counter[int] = Counter()
    producer = Connection(work.service_url)
    open_producer(producer, work.topic)
    send_all(
        producer,
        send_segments(2 * work.count, work.size),
        lambda receipt: entries.update((receipt.send_receipt.message_id.ledgerId,)),
    )
    subscribe(connection := Connection(work.service_url), work.topic)
    ids = [(ledger, entry) for ledger, count in entries.items() for entry in range(1, count, 2)]

    def timed() -> Done:
        part = max(1, len(ids) // SHARE)
        meter, rest = Meter(work.pid), iter(ids)
        acknowledge(connection, islice(rest, part))
        first = meter.spent(part)
        acknowledge(connection, islice(rest, max(1, len(ids) - 2 * part)))
        meter.spent(1)
        acknowledge(connection, rest)
        last = meter.spent(part)
        parts = {"first": first, "last": last, "growth": last / first, "memory": meter.gained()}
        return Done(len(ids), parts=parts)

    return timed


def acknowledge(connection: Connection, ids: Iterable[tuple[int, int]]) -> None:
    """Acknowledge messages, many ids at a time as official clients do, and wait for the response to the last group."""
    ids = iter(ids)
    group = list(islice(ids, IDS_PER_ACK))
    while group:
        ack = empty_ack()
        for ledger, entry in group:
            ack.ack.message_id.add(ledgerId=ledger, entryId=entry)
        group = list(islice(ids, IDS_PER_ACK))
        if not group:
            ack.ack.request_id = 2
        connection.send(ack)
    connection.expect(BaseCommand.ACK_RESPONSE)


def delayed(work: Work) -> Timed:
    """Measure `count` messages delayed by one to two hours, and plain messages before and after them."""
    traffic = Traffic(work)
    part = max(1, work.count // SHARE)
    traffic.plain(part)  # warm-up

    def timed() -> Done:
        meter = Meter(work.pid)
        traffic.plain(part)
        alone = meter.spent(part)
        traffic.delayed(part)
        first = meter.spent(part)
        for _ in range(SHARE - 2):
            traffic.delayed(part)
        meter.spent(1)
        traffic.delayed(part)
        last = meter.spent(part)
        gained = meter.gained()
        traffic.plain(part)
        beside = meter.spent(part)
        parts = {"first": first, "last": last, "growth": last / first, "memory": gained}
        parts |= {"plain-alone": alone, "plain-beside": beside, "plain-growth": beside / alone}
        return Done(work.count, parts=parts)

    return timed


class Traffic:
    """A producer and a Shared consumer, in turn."""

    def __init__(self, work: Work) -> None:
        self._size = work.size
        self._consumer = Connection(work.service_url)
        subscribe(self._consumer, work.topic)
        self._consumer.send(flow(CONSUMER_ID, PERMITS))
        self._producer = Connection(work.service_url)
        open_producer(self._producer, work.topic)
        self._taken = 0
        self._random = random.Random(0)

    def delayed(self, count: int) -> None:
        """Publish delayed messages, and a plain one, which arrives when the broker has handled all of them."""
        now = time.time_ns() // 1_000_000

        def delay(metadata: MessageMetadata, number: int) -> None:
            metadata.deliver_at_time = now + HOUR_MS + self._random.randrange(HOUR_MS)

        send_all(self._producer, send_segments(count, self._size, delay))
        self.plain(1)

    def plain(self, count: int) -> None:
        """Publish plain messages, receive and acknowledge them."""
        send_all(self._producer, send_segments(count, self._size))
        acknowledge(self._consumer, islice(self._arrivals(), count))

    def _arrivals(self) -> Iterator[tuple[int, int]]:
        for command in self._consumer.commands():
            if command.type == BaseCommand.MESSAGE:
                self._taken += 1
                if self._taken % (PERMITS // 2) == 0:
                    self._consumer.send(flow(CONSUMER_ID, PERMITS // 2))
                yield command.message.message_id.ledgerId, command.message.message_id.entryId
