"""The program for PIP-429: the cost of GET_LAST_MESSAGE_ID on a compacted topic."""

from __future__ import annotations

import random
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench import older_engine
from bench.brokers import Broker, Launch, pulsarium_command
from bench.compaction import compacted
from bench.large import Meter
from bench.raw_driver import (
    CONSUMER_ID,
    PRODUCER_ID,
    Connection,
    RawDriverError,
    look_up,
    open_producer,
    send_all,
)
from bench.work import Done, Timed, Work
from pulsarium.proto import batch, entry
from pulsarium.proto.compression import compress
from pulsarium.proto.framing import frame
from pulsarium.proto.generated.PulsarApi_pb2 import (
    LZ4,
    BaseCommand,
    CommandSubscribe,
    MessageMetadata,
    SingleMessageMetadata,
)

BATCH = 1024  # messages of 1 KB
RANDOM = 72  # bytes of a message that cannot be compressed
OLD, NEW = 21, 22
WARM_UP = 20


def last_id(work: Work) -> Timed:
    """Measure GET_LAST_MESSAGE_ID, one call after the other, on a topic whose last batch is a compacted megabyte.

    Calls in v21, and all others that v22 is compared with, are part of the preparation. A broker without v22 answers
    the counted calls in its own version.
    """
    where = Broker(work.service_url, work.admin_url, work.pid)
    publish_batch(where, work.topic)
    costs = {"uncompacted": Asking(where, work.topic, NEW).cost(work.count)}
    compacted(where, work.topic)
    costs["listed"] = Asking(where, work.topic, OLD, BATCH - 1).cost(work.count)
    asking = Asking(where, work.topic, NEW)
    if asking.connection.version >= NEW:  # other brokers cannot have our compaction engine
        costs["unlisted"] = unlisted(work)
    stored = len(asking.connection.trailing)
    copy = cost_of_sending(stored, work.count) if stored else 0

    def timed() -> Done:
        costs["v22"] = asking.cost(work.count)
        parts = {f"{case}-cpu": cost.cpu for case, cost in costs.items()}
        parts |= {f"{case}-rate": cost.rate for case, cost in costs.items()}
        if stored:
            parts |= {"stored": stored / 1000, "copy": copy}
            parts["over-uncompacted"] = (costs["v22"].cpu - copy) / costs["uncompacted"].cpu
            parts["over-unlisted"] = costs["v22"].cpu / costs["unlisted"].cpu
        return Done(work.count, asking.latencies, parts)

    return timed


class Cost(NamedTuple):
    """Cost of one call: microseconds of broker CPU, and calls a second."""

    cpu: float
    rate: float


class Asking:
    """A reader of a compacted topic that asks for the last message id, after a few warm-up calls.

    `index` is the expected batch index of the answer.
    """

    def __init__(self, broker: Broker, topic: str, version: int, index: int | None = None) -> None:
        self.connection = Connection(broker.service_url, version)
        self.latencies: list[float] = []
        self._pid = broker.pid
        look_up(self.connection, topic)
        command = BaseCommand(type=BaseCommand.SUBSCRIBE)
        command.subscribe.topic = topic
        command.subscribe.subscription = f"bench-{time.monotonic_ns()}"
        command.subscribe.subType = CommandSubscribe.Exclusive
        command.subscribe.consumer_id = CONSUMER_ID
        command.subscribe.request_id = 1
        command.subscribe.durable = False
        command.subscribe.read_compacted = True
        self.connection.send(command)
        self.connection.expect(BaseCommand.SUCCESS)
        ask = BaseCommand(type=BaseCommand.GET_LAST_MESSAGE_ID)
        ask.getLastMessageId.consumer_id = CONSUMER_ID
        ask.getLastMessageId.request_id = 2
        self._ask = frame(ask.SerializeToString())
        found = self._calls(WARM_UP)
        if index is not None and found != index:
            raise RawDriverError(f"the last message has batch index {found}, expected {index}")
        self.latencies.clear()

    def cost(self, count: int) -> Cost:
        """Return the cost of `count` calls."""
        meter, begin = Meter(self._pid), time.perf_counter()
        self._calls(count)
        return Cost(meter.spent(count), count / (time.perf_counter() - begin))

    def _calls(self, count: int) -> int:
        """Make `count` calls, and return the batch index of the last answer."""
        index = -1
        for _ in range(count):
            begin = time.perf_counter()
            self.connection.socket.sendall(self._ask)
            answer = self.connection.expect(BaseCommand.GET_LAST_MESSAGE_ID_RESPONSE)
            index = answer.getLastMessageIdResponse.last_message_id.batch_index
            self.latencies.append(time.perf_counter() - begin)
        return index


def publish_batch(broker: Broker, topic: str) -> None:
    """Publish a megabyte of messages with a key each.

    The first one is replaced, and the last one deletes its own key.
    """
    numbers = random.Random(0)
    singles = [
        (SingleMessageMetadata(partition_key=f"key-{max(1, number)}"), numbers.randbytes(RANDOM).ljust(1024, b"x"))
        for number in range(BATCH)
    ]
    singles.append((SingleMessageMetadata(partition_key="gone"), b""))
    packed = batch.pack(singles)
    metadata = MessageMetadata(producer_name="bench", sequence_id=0, publish_time=1, compression=LZ4)
    metadata.num_messages_in_batch, metadata.uncompressed_size = len(singles), len(packed)
    command = BaseCommand(type=BaseCommand.SEND)
    command.send.producer_id, command.send.sequence_id = PRODUCER_ID, 0
    command.send.num_messages = len(singles)
    data = frame(command.SerializeToString(), entry.build(metadata, compress(LZ4, packed)))
    connection = Connection(broker.service_url)
    open_producer(connection, topic)
    send_all(connection, [(data, 1)])


def unlisted(work: Work) -> Cost:
    """Return the cost of a v21 call on a broker whose compaction engine writes no field 31."""
    with older_broker() as older:
        publish_batch(older, work.topic)
        compacted(older, work.topic)
        return Asking(older, work.topic, OLD, BATCH - 1).cost(max(1, work.count // 10))  # each takes milliseconds


@contextmanager
def older_broker() -> Iterator[Broker]:
    """Yield a Pulsarium broker with `older_engine` installed."""
    with tempfile.TemporaryDirectory(prefix="pulsarium-bench-") as folder:
        shutil.copy(older_engine.__file__, folder)
        info = Path(folder, "older_engine-1.dist-info")
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: older-engine\nVersion: 1\n")
        (info / "entry_points.txt").write_text("[pulsarium.compaction]\nolder = older_engine:OlderCompactor\n")
        launch = Launch(pulsarium_command(), Path(folder))
        try:
            yield launch.broker
        finally:
            launch.stop()


def cost_of_sending(size: int, count: int) -> float:
    """Return the microseconds of CPU for sending `size` bytes more over a TCP socket of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sender = socket.create_connection(listener.getsockname())
        receiver, _ = listener.accept()

    def drain() -> None:
        with receiver:
            while receiver.recv(256 * 1024):
                pass

    thread = threading.Thread(target=drain)
    thread.start()
    with sender:
        costs = []
        for data in (bytes(1), bytes(size)):
            begin = time.thread_time()
            for _ in range(count):
                sender.sendall(data)
            costs.append((time.thread_time() - begin) / count * 1e6)
    thread.join()
    return costs[1] - costs[0]
