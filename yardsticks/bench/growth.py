"""Run scripts/bench growth: measure how the cost of a message grows, and write a table and a picture."""

from __future__ import annotations

import argparse
import os
import resource
import selectors
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from textwrap import wrap

from pulsarium.proto.framing import frame
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand
from yardsticks.bench import wire
from yardsticks.bench.accounting import Meter, cpu_seconds
from yardsticks.bench.brokers import Broker, launched, pulsarium_command
from yardsticks.bench.drivers.raw import Group, consume_as_many
from yardsticks.bench.picture import Costs, short, svg
from yardsticks.bench.programs import GROWTH, TINY
from yardsticks.bench.report import in_markdown, machine
from yardsticks.bench.wire import Connection, WireError
from yardsticks.bench.work import Work
from yardsticks.servers import ROOT

ABOUT = """\
Measures the broker's CPU time for a message while the number of topics, connections or consumers grows, or the backlog
beside it, and the CPU time of a start while the data directory grows. Each broker has a data directory. Every size is
measured N times in turn, and the median counts.

  scripts/bench growth --write               everything, with 100,000 topics, 5,000 connections and 50 GB of backlog:
                                             half an hour, and 55 GB of disk; writes docs/growth.md and its picture
  scripts/bench growth --up-to 0.01          sizes up to a hundredth of the largest: minutes
  scripts/bench growth topics connections    only these
"""

PAGE = ROOT / "docs" / "growth.md"
PICTURE = ROOT / "docs" / "images" / "growth.svg"
TOPIC = "persistent://public/default/growth"
LARGE = 1_000_000  # bytes of the messages of a large backlog
PERMITS = 1_000_000  # a consumer grants permits once
IDS_PER_ACK = 10  # few, so that consumers of many topics acknowledge as many at a time as a single consumer
SEGMENTS = 16  # of 64 messages each, in flight at once
SPARE_FILES = 100

WHY: Mapping[str, str] = {
    "topics": "A message that is alone on its topic in a turn pays for its topic's commit, dispatch, receipt and "
    "acknowledgement alone. Of 64 messages for one topic in a turn, each pays for a part of these. With "
    "up to 100 topics, several messages of a topic share a turn here. With 20 topics in memory, a message "
    "alone takes 23 us of the event loop, spread over 190 calls. With 1,000 topics it takes 35 us, and 46 "
    "us with a data directory. The storage threads take 14 us more."
}
"""Why an axis exceeds its limit."""


Points = Iterator[tuple[int, float]]
"""Each size with its cost: broker CPU in microseconds."""


@dataclass(frozen=True)
class Axis:
    """A number that grows, its sizes, and the function that yields the cost at each size.

    `count` messages are measured at each size. The cost of the largest size is at most GROWTH times that of the first.
    """

    name: str
    title: str
    sizes: Sequence[int]
    count: int
    measure: Callable[[Sequence[int], int], Points]


# ---- topics, connections and consumers


def topics(sizes: Sequence[int], count: int) -> Points:
    """Publish, consume and acknowledge messages of as many topics, one message for each topic in turn."""
    with launched(pulsarium_command(), kept=True) as launch:
        for size in sizes:
            each = max(count, IDS_PER_ACK * size)  # else hardly a consumer acknowledges
            alike = Topics(launch.broker, size)
            alike.run(max(size, each // 10))  # warm-up
            alike.consumers.settle()
            meter = Meter(launch.pid)
            alike.run(each)
            alike.consumers.settle()
            yield size, meter.spent(each)
            alike.close()


class Topics:
    """A producer and a Shared consumer on each of some topics."""

    def __init__(self, broker: Broker, size: int) -> None:
        self._size = size
        self._producers, self.consumers = Connection(broker.service_url), Connection(broker.service_url)
        named = [(number, f"{TOPIC}-{size}-{number}") for number in range(size)]
        self.consumers.ask(BaseCommand.LOOKUP_RESPONSE, [wire.lookup(name, number) for number, name in named])
        self.consumers.ask(BaseCommand.SUCCESS, [wire.consumer(name, number) for number, name in named])
        self._producers.ask(BaseCommand.PRODUCER_SUCCESS, [wire.producer(name, number) for number, name in named])
        for number in range(size):
            self.consumers.send(wire.flow(number, PERMITS))
        self._frames = [wire.send_frame(TINY, number) for number in range(size)]
        self._acks = [wire.empty_ack(number) for number in range(size)]

    def run(self, count: int) -> None:
        """Publish, receive and acknowledge `count` messages of the topics in turn."""
        for begin in range(0, count, SEGMENTS * wire.FRAMES_PER_SEGMENT):
            end = min(begin + SEGMENTS * wire.FRAMES_PER_SEGMENT, count)
            for start in range(begin, end, wire.FRAMES_PER_SEGMENT):
                numbers = range(start, min(start + wire.FRAMES_PER_SEGMENT, end))
                self._producers.socket.sendall(b"".join(self._frames[number % self._size] for number in numbers))
            confirmed = 0
            while confirmed < end - begin:
                confirmed += wire.count_commands(self._producers.read(), wire.SEND_RECEIPT)
            self._take(end - begin)

    def _take(self, count: int) -> None:
        command = BaseCommand()
        full: list[bytes] = []
        while count:
            commands = self.consumers.read()
            count -= wire.count_commands(commands, wire.MESSAGE)
            for data in commands:
                if not data.startswith(wire.MESSAGE):
                    continue
                command.ParseFromString(data)
                told = command.message
                ids = self._acks[told.consumer_id].ack.message_id
                ids.add(ledgerId=told.message_id.ledgerId, entryId=told.message_id.entryId)
                if len(ids) == IDS_PER_ACK:
                    full.append(frame(self._acks[told.consumer_id].SerializeToString()))
                    del ids[:]
        self.consumers.socket.sendall(b"".join(full))

    def close(self) -> None:
        """Delete the subscriptions, and close the connections."""
        told = [{"consumer_id": number, "request_id": number} for number in range(self._size)]
        leave = [BaseCommand(type=BaseCommand.UNSUBSCRIBE, unsubscribe=each) for each in told]
        self.consumers.ask(BaseCommand.SUCCESS, leave)
        self.consumers.socket.close()
        self._producers.socket.close()


def connections(sizes: Sequence[int], count: int) -> Points:
    """Publish messages over as many connections in turn, each with a producer of its own on the same topic."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < max(sizes) + SPARE_FILES:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(sizes) + SPARE_FILES), hard))
    with launched(pulsarium_command(), kept=True) as launch:
        members: list[Connection] = []
        for size in sizes:
            while len(members) < size:
                members.append(connection := Connection(launch.broker.service_url))
                wire.open_producer(connection, TOPIC)
            each = max(count, 128 * size)
            in_turn(members, each // 2)  # warm-up
            members[0].settle()
            meter = Meter(launch.pid)
            in_turn(members, each)
            members[0].settle()
            yield size, meter.spent(each)


def in_turn(members: Sequence[Connection], count: int) -> None:
    """Publish over all connections in turn, 64 messages a write, about a thousand in flight over all together."""
    segment = wire.send_frame(TINY) * wire.FRAMES_PER_SEGMENT
    writes = -(-count // wire.FRAMES_PER_SEGMENT)
    free, owed = deque(members), dict.fromkeys(members, 0)
    sent = underway = 0
    with selectors.DefaultSelector() as selector:
        for member in members:
            selector.register(member.socket, selectors.EVENT_READ, member)
        while sent < writes or underway:
            while sent < writes and underway + wire.FRAMES_PER_SEGMENT <= wire.WINDOW:
                free[0].socket.sendall(segment)
                owed[free[0]] += wire.FRAMES_PER_SEGMENT
                underway += wire.FRAMES_PER_SEGMENT
                free.rotate(-1)
                sent += 1
            for key, _ in selector.select():
                came = wire.count_commands(key.data.read(), wire.SEND_RECEIPT)
                owed[key.data] -= came
                underway -= came
    if any(owed.values()):
        raise WireError("receipts arrived on another connection than their messages")


def consumers(sizes: Sequence[int], count: int) -> Points:
    """Consume and acknowledge messages with as many consumers of one Shared subscription."""
    with launched(pulsarium_command(), kept=True) as launch:
        for size in sizes:
            work = replace(work_on(launch.broker), topic=f"{TOPIC}-{size}", count=count)
            consume_as_many(replace(work, topic=f"{work.topic}-warm"), kind="Shared", consumers=size)()
            timed = consume_as_many(work, kind="Shared", consumers=size)
            meter = Meter(launch.pid)
            timed()
            yield size, meter.spent(count)


# ---- data


def backlog(sizes: Sequence[int], count: int) -> Points:
    """Publish, consume and acknowledge messages on a topic where another subscription has as many bytes of backlog."""
    with launched(pulsarium_command(), kept=True) as launch:
        url, stored, other = launch.broker.service_url, 0, f"{TOPIC}-beside"
        wire.leave_subscription(url, TOPIC)
        for size in sizes:
            stored += store(url, size - stored)
            group = Group(replace(work_on(launch.broker), topic=other), "Shared", range(1))
            group.ask()
            wire.publish(url, other, count // 10, TINY)  # warm-up
            group.consume(count // 10)
            group.connection.settle()
            meter = Meter(launch.pid)
            wire.publish(url, TOPIC, count, TINY)
            wire.publish(url, other, count, TINY)
            group.consume(count)
            group.connection.settle()
            yield size, meter.spent(2 * count)
            group.connection.socket.close()


def start(sizes: Sequence[int], count: int) -> Points:
    """Start a broker on a data directory with as many bytes of backlog.

    The cost is the CPU time up to the ready line, in microseconds.
    """
    with tempfile.TemporaryDirectory(prefix="pulsarium-growth-") as folder:
        command, stored = pulsarium_command("--data", str(Path(folder, "data"))), 0
        for size in sizes:
            with launched(command) as launch:
                if not stored:
                    wire.leave_subscription(launch.broker.service_url, TOPIC)
                stored += store(launch.broker.service_url, size - stored)
            costs = []
            for _ in range(count):
                with launched(command) as launch:
                    costs.append(cpu_seconds(launch.pid) * 1e6)
            yield size, min(costs)


def store(service_url: str, size: int) -> int:
    """Publish `size` bytes, in messages of at most LARGE bytes, and return their number."""
    if size > 0:
        wire.publish(service_url, TOPIC, max(1, size // LARGE), min(size, LARGE))
    return size


def work_on(broker: Broker) -> Work:
    return Work(broker.service_url, TOPIC, 0, TINY, broker.pid, broker.admin_url)


AXES = (
    Axis("topics", "topics, a message each in turn", (1, 10, 100, 1000, 10_000, 100_000), 50_000, topics),
    Axis("connections", "connections that publish", (1, 10, 100, 1000, 5000), 50_000, connections),
    Axis("consumers", "consumers of a Shared subscription", (1, 10, 100, 1000), 50_000, consumers),
    Axis(
        "backlog",
        "backlog of another subscription",
        (1000, 1_000_000, 100_000_000, 1_000_000_000, 10_000_000_000, 50_000_000_000),
        20_000,
        backlog,
    ),
    Axis("start", "start on a data directory", (1000, 1_000_000, 100_000_000, 1_000_000_000, 10_000_000_000), 3, start),
)


def sizes_of(axis: Axis, up_to: float) -> Sequence[int]:
    """Return the sizes up to a share of the largest, at least two of them."""
    kept = [size for size in axis.sizes if size <= axis.sizes[-1] * up_to]
    return kept if len(kept) > 1 else axis.sizes[:2]


def measured(axis: Axis, up_to: float, repetitions: int, count: int) -> list[tuple[int, float]]:
    runs = [list(axis.measure(sizes_of(axis, up_to), count)) for _ in range(repetitions)]
    return [(size, median(run[place][1] for run in runs)) for place, (size, _) in enumerate(runs[0])]


def table(axis: Axis, points: Sequence[tuple[int, float]]) -> str:
    """Return a Markdown table of one axis, with the reason where the cost exceeds the limit."""
    first = points[0][1]
    unit = "ms of CPU" if axis.name == "start" else "us of CPU a message"
    scale = 1000 if axis.name == "start" else 1
    rows = [(short(size), f"{cost / scale:,.1f}", f"{cost / first:.2f}x") for size, cost in points]
    why = WHY.get(axis.name, "") if max(cost for _, cost in points) > GROWTH * first else ""
    return "\n".join(
        [in_markdown([(axis.title, unit, "over the first"), *rows]), *([""] if why else []), *wrap(why, 120)]
    )


def page(costs: Costs, up_to: float, repetitions: int) -> str:
    on = machine()
    axes = {axis.name: axis for axis in AXES}
    sizes = "" if up_to >= 1 else f" Sizes are up to {up_to:g} of the largest."
    where = f"{on['cores']} cores ({on['machine']}, {on['system']}), Python {on['python']}, load {on['load']:.1f}."
    head = f"""# Growth

The cost of a message should not depend on the size of anything else. The target is at most {GROWTH:g} times the cost at
the smallest size.
`scripts/bench growth --write` measures this and writes this page.

![The cost at each size over the cost at the smallest size](images/growth.svg)

Medians of {repetitions} run{"s" * (repetitions > 1)}.{sizes} {where}
"""
    return "\n".join([head, "\n\n".join(table(axes[name], points) for name, points in costs.items()), ""])


def main(given: Sequence[str]) -> int:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("bench growth", description=ABOUT, formatter_class=layout)
    add, known = parser.add_argument, ", ".join(axis.name for axis in AXES)
    add("axes", nargs="*", metavar="AXIS", help=f"measure only these: {known}")
    add("--up-to", type=float, default=1.0, metavar="SHARE", help="sizes up to this share of the largest")
    add("--repetitions", type=int, default=3, metavar="N", help="runs of each axis (default: 3)")
    add("--scale", type=float, default=1.0, metavar="FACTOR", help="multiply the number of messages")
    add("--write", action="store_true", help="write docs/growth.md and its picture")
    options = parser.parse_args(given)
    if unknown := set(options.axes) - {axis.name for axis in AXES}:
        parser.error(f"unknown: {', '.join(sorted(unknown))} (the axes are {known})")
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", file=sys.stderr)
    costs = {}
    for axis in AXES:
        if not options.axes or axis.name in options.axes:
            print(f"measuring {axis.name}", file=sys.stderr, flush=True)
            count = max(1, int(axis.count * (options.scale if axis.name != "start" else 1)))
            costs[axis.name] = measured(axis, options.up_to, options.repetitions, count)
            print(table(axis, costs[axis.name]) + "\n", flush=True)
    if options.write:
        PAGE.write_text(page(costs, options.up_to, options.repetitions))
        PICTURE.write_text(svg(costs, GROWTH))
    return 0
