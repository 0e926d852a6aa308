"""Drive a broker from bare sockets that do little for each message."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from bench.accounting import memory
from bench.brokers import Broker, Launch, pulsarium_command
from bench.large import MB, Meter, acknowledge
from bench.raw_driver import (
    CONSUMER_ID,
    FRAMES_PER_SEGMENT,
    PERMITS,
    PING,
    PRODUCER_ID,
    WINDOW,
    Connection,
    RawDriverError,
    flow,
    open_producer,
    subscribe,
)
from bench.work import Done, Work
from pulsarium.proto import entry
from pulsarium.proto.framing import frame
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand, CommandSubscribe, MessageMetadata

SETTLE_SECONDS = 0.25  # the broker saves a cursor a tenth of a second later, which belongs to the cost
SAMPLE_SECONDS = 0.1
ASKED_AT_ONCE = 100
WINDOW_BYTES = 8 << 20
# The bench kills this process at its time limit, and no broker may outlive it.
WITH_PARENT = ("setpriv", "--pdeathsig", "TERM") if shutil.which("setpriv") else ()
SEND_RECEIPT = b"\x08\x07"  # the first bytes of serialized commands: their type
MESSAGE = b"\x08\x09"


def send_frame(size: int, producer: int = PRODUCER_ID) -> bytes:
    """Return a SEND frame that can be sent repeatedly. Without deduplication its sequence id does not matter."""
    command = BaseCommand(type=BaseCommand.SEND)
    command.send.producer_id, command.send.sequence_id = producer, 0
    metadata = MessageMetadata(producer_name="bench", sequence_id=0, publish_time=1)
    return frame(command.SerializeToString(), entry.build(metadata, b"x" * size))


class Publisher:
    """A producer that sends one frame repeatedly, so that it is faster than any broker."""

    def __init__(self, service_url: str, topic: str, size: int) -> None:
        self.connection = Connection(service_url)
        open_producer(self.connection, topic)
        self._frame = send_frame(size)
        self._window = max(2, min(WINDOW, WINDOW_BYTES // len(self._frame)))
        self._together = max(1, min(FRAMES_PER_SEGMENT, self._window // 2))

    def publish(self, count: int) -> None:
        """Send `count` messages, and wait for their receipts."""
        segment = self._frame * self._together
        sent = confirmed = 0
        while sent < count:
            more = min(self._together, count - sent)
            while sent + more - confirmed > self._window:
                confirmed += receipts(self.connection)
            self.connection.socket.sendall(segment if more == self._together else self._frame * more)
            sent += more
        while confirmed < count:
            confirmed += receipts(self.connection)


class Taker:
    """A Shared consumer that acknowledges what it receives."""

    def __init__(self, service_url: str, topic: str) -> None:
        self.connection = Connection(service_url)
        subscribe(self.connection, topic)
        self._taken = 0
        self.connection.send(flow(CONSUMER_ID, PERMITS))

    def take(self, count: int) -> None:
        """Receive `count` messages, and wait until their acknowledgements are stored."""
        acknowledge(self.connection, islice(self._arrivals(), count))

    def _arrivals(self) -> Iterator[tuple[int, int]]:
        more = PERMITS // 2
        for command in self.connection.commands():
            if command.type == BaseCommand.MESSAGE:
                self._taken += 1
                if self._taken % more == 0:
                    self.connection.send(flow(CONSUMER_ID, more))
                yield command.message.message_id.ledgerId, command.message.message_id.entryId


def receipts(connection: Connection) -> int:
    """Wait for receipts, and return their number."""
    return count_commands(connection.read(), SEND_RECEIPT)


def count_commands(commands: Iterable[bytes], kind: bytes) -> int:
    """Return the number of commands of one type, without parsing them.

    Raise `RawDriverError` for any other command except PING.
    """
    count = 0
    for command in commands:
        if command.startswith(kind):
            count += 1
        elif command != PING:
            raise RawDriverError(str(BaseCommand.FromString(command)))
    return count


def ask_all(connection: Connection, commands: Iterable[BaseCommand], answer: int) -> None:
    """Send requests, many at a time. Each must be answered with a command of type `answer`."""
    coming = iter(commands)
    while group := list(islice(coming, ASKED_AT_ONCE)):
        connection.socket.sendall(b"".join(frame(command.SerializeToString()) for command in group))
        for _ in group:
            connection.expect(answer)


def settled(connection: Connection) -> None:
    """Wait until the broker has handled everything it was sent, and has done its delayed work."""
    connection.socket.sendall(frame(PING))
    connection.expect(BaseCommand.PONG)
    time.sleep(SETTLE_SECONDS)


class Cost(NamedTuple):
    """Broker CPU per message in microseconds, and the seconds of all messages."""

    cpu: float
    seconds: float


def cost_of(pid: int, count: int, connection: Connection, run: Callable[[], object]) -> Cost:
    """Return the cost of `count` messages. `connection` is the one that sent the last command about them."""
    settled(connection)
    meter, begin = Meter(pid), time.perf_counter()
    run()
    seconds = time.perf_counter() - begin
    settled(connection)
    return Cost(meter.spent(count), seconds)


def grown(count: int, costs: dict[str, Cost], largest: str) -> Done:
    """Return the costs at sizes 1, 100 and the largest, and of one busy item beside idle ones."""
    parts = {name: cost.cpu for name, cost in costs.items()}
    parts["growth-100"] = parts["100"] / parts["1"]
    parts["growth"] = parts[largest] / parts["1"]
    parts["idle-growth"] = parts["beside-idle"] / parts["1"]
    return Done(count, parts=parts, seconds=costs[largest].seconds, broker_cpu=parts[largest] * count / 1e6)


def look_up(topic: str, request_id: int) -> BaseCommand:
    command = BaseCommand(type=BaseCommand.LOOKUP)
    command.lookupTopic.topic, command.lookupTopic.request_id = topic, request_id
    return command


def producer(topic: str, producer_id: int) -> BaseCommand:
    command = BaseCommand(type=BaseCommand.PRODUCER)
    command.producer.topic = topic
    command.producer.producer_id = command.producer.request_id = producer_id
    return command


def consumer(topic: str, consumer_id: int) -> BaseCommand:
    """Return the SUBSCRIBE of a Shared consumer."""
    command = BaseCommand(type=BaseCommand.SUBSCRIBE)
    told = command.subscribe
    told.topic, told.subscription, told.subType = topic, "bench", CommandSubscribe.Shared
    told.consumer_id = told.request_id = consumer_id
    return command


def unsubscribe(consumer_id: int) -> BaseCommand:
    command = BaseCommand(type=BaseCommand.UNSUBSCRIBE)
    command.unsubscribe.consumer_id = command.unsubscribe.request_id = consumer_id
    return command


class Peak:
    """The largest RssAnon of a process during a block, in megabytes."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.megabytes = memory(pid).anonymous / MB
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._look()

    def _sample(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            self._look()

    def _look(self) -> None:
        self.megabytes = max(self.megabytes, memory(self._pid).anonymous / MB)


@contextmanager
def broker_of(work: Work, data: Path | None = None, *, kept: bool = True) -> Iterator[Broker]:
    """Yield a broker with a data directory: a new one, or `data`. With `kept` False, yield the broker of `work`."""
    if not kept:
        yield Broker(work.service_url, work.admin_url, work.pid)
        return
    folder = [] if data is None else ["--data", str(data)]
    launch = Launch([*WITH_PARENT, *pulsarium_command(), *folder], kept=data is None)
    try:
        yield launch.broker
    finally:
        launch.stop()
