"""Measure the cost of the number of topics."""

from __future__ import annotations

from collections.abc import Sequence

from bench.programs import TOPICS
from bench.raw_driver import FRAMES_PER_SEGMENT, Connection, empty_ack, flow
from bench.scale.driving import (
    MESSAGE,
    Cost,
    ask_all,
    broker_of,
    consumer,
    cost_of,
    count_commands,
    grown,
    look_up,
    producer,
    receipts,
    send_frame,
    unsubscribe,
)
from bench.work import Done, Timed, Work
from pulsarium.proto.framing import frame
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand

IDS_PER_ACK = 10  # few, so that consumers of many topics acknowledge as many at a time as a single consumer
SEGMENTS = 16  # of 64 messages each, in flight at once
PERMITS = 1_000_000  # a consumer grants permits once


def topics(work: Work, *, kept: bool) -> Timed:
    """Publish `count` messages to 1, 100 and 10,000 topics, and to one of these while the others are idle.

    There is one connection of producers and one of Shared consumers. Every write holds 64 messages for the topics in
    turn, one each, or ten each in "bursts". With `kept`, the broker has a data directory.
    """
    sizes = [min(size, max(1, work.count // IDS_PER_ACK)) for size in TOPICS]

    def timed() -> Done:
        costs: dict[str, Cost] = {}
        with broker_of(work, kept=kept) as broker:
            for size, title in zip(sizes, TOPICS, strict=True):
                alike = Topics(broker.service_url, [f"{work.topic}-{size}-{n}" for n in range(size)], work.size)
                alike.run(range(size), max(size, work.count // 10))  # warm-up
                costs[str(title)] = alike.cost(broker.pid, range(size), work.count)
                if title == TOPICS[-1]:
                    costs["bursts"] = alike.cost(broker.pid, range(size), work.count, IDS_PER_ACK)
                    costs["beside-idle"] = alike.cost(broker.pid, range(1), work.count)
                alike.close()
        done = grown(work.count, costs, str(TOPICS[-1]))
        done.parts["bursts-growth"] = done.parts["bursts"] / done.parts["1"]
        return done

    return timed


class Topics:
    """A producer and a Shared consumer on each of some topics."""

    def __init__(self, service_url: str, names: Sequence[str], size: int) -> None:
        self._count = len(names)
        self._producers, self._consumers = Connection(service_url), Connection(service_url)
        numbered = list(enumerate(names))
        ask_all(self._consumers, [look_up(name, n) for n, name in numbered], BaseCommand.LOOKUP_RESPONSE)
        ask_all(self._consumers, [consumer(name, n) for n, name in numbered], BaseCommand.SUCCESS)
        ask_all(self._producers, [producer(name, n) for n, name in numbered], BaseCommand.PRODUCER_SUCCESS)
        for n, _ in numbered:
            self._consumers.send(flow(n, PERMITS))
        self._frames = [send_frame(size, n) for n, _ in numbered]
        self._acks = [empty_ack(n) for n, _ in numbered]

    def cost(self, pid: int, which: Sequence[int], count: int, burst: int = 1) -> Cost:
        """Return the cost of messages to the topics `which`, in turn."""
        return cost_of(pid, count, self._consumers, lambda: self.run(which, count, burst))

    def run(self, which: Sequence[int], count: int, burst: int = 1) -> None:
        """Publish, receive and acknowledge `count` messages, `burst` messages per topic in turn."""
        sent = 0
        while sent < count:
            together = min(SEGMENTS * FRAMES_PER_SEGMENT, count - sent)
            for start in range(sent, sent + together, FRAMES_PER_SEGMENT):
                numbers = range(start, min(start + FRAMES_PER_SEGMENT, sent + together))
                self._producers.socket.sendall(b"".join(self._frames[which[n // burst % len(which)]] for n in numbers))
            confirmed = 0
            while confirmed < together:
                confirmed += receipts(self._producers)
            self._take(together)
            sent += together

    def _take(self, count: int) -> None:
        command = BaseCommand()
        full: list[bytes] = []
        while count:
            commands = self._consumers.read()
            count -= count_commands(commands, MESSAGE)
            for data in commands:
                if not data.startswith(MESSAGE):
                    continue
                command.ParseFromString(data)
                told = command.message
                ids = self._acks[told.consumer_id].ack.message_id
                ids.add(ledgerId=told.message_id.ledgerId, entryId=told.message_id.entryId)
                if len(ids) == IDS_PER_ACK:
                    full.append(frame(self._acks[told.consumer_id].SerializeToString()))
                    del ids[:]
        self._consumers.socket.sendall(b"".join(full))

    def close(self) -> None:
        """Delete the subscriptions, and close the connections."""
        ask_all(self._consumers, [unsubscribe(n) for n in range(self._count)], BaseCommand.SUCCESS)
        self._consumers.socket.close()
        self._producers.socket.close()
