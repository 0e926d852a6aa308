"""Programs about compaction: its rate, and the cost of GET_LAST_MESSAGE_ID on a compacted topic."""

from __future__ import annotations

import json
import random
import time
import urllib.request
from collections.abc import Callable

from pulsarium.proto import batch, entry
from pulsarium.proto.compression import compress
from pulsarium.proto.framing import frame
from pulsarium.proto.generated.PulsarApi_pb2 import LZ4, BaseCommand, MessageMetadata, SingleMessageMetadata
from yardsticks.bench.accounting import Meter, Pulse
from yardsticks.bench.wire import Connection, WireError, consumer, lookup, open_producer, send_all, send_segments
from yardsticks.bench.work import Done, Timed, Work, one_by_one

KEPT_SHARE = 10  # one in so many messages is the last of its key
POLL_SECONDS = 0.02
LIMIT_SECONDS = 200
BATCH = 1024  # messages of 1 KB
RANDOM = 72  # bytes of a message that cannot be compressed
OLD, NEW = 21, 22  # protocol versions: the newer one has an answer without the metadata of the last batch


def compact(work: Work) -> Timed:
    """Compact `count` messages to a tenth, while another connection pings the broker."""
    keys = max(1, work.count // KEPT_SHARE)
    open_producer(producer := Connection(work.service_url), work.topic)

    def set_key(metadata: MessageMetadata, number: int) -> None:
        metadata.partition_key = f"key-{number % keys}"

    send_all(producer, send_segments(work.count, work.size, set_key))
    pulse = Pulse(work.service_url)

    def timed() -> Done:
        meter = Meter(work.pid)
        with pulse:
            compacted(work.admin_url, work.topic)
        return Done(work.count, parts={"memory": meter.gained(), "gap": pulse.gap * 1000})

    return timed


def compacted(admin_url: str, topic: str, limit_seconds: float = LIMIT_SECONDS) -> None:
    """Start compaction, and wait for its end."""
    url = f"{admin_url}/admin/v2/{topic.replace('://', '/')}/compaction"
    with urllib.request.urlopen(urllib.request.Request(url, method="PUT"), timeout=30):
        pass
    begin = time.monotonic()
    while True:
        with urllib.request.urlopen(url, timeout=30) as answer:
            told = json.load(answer)
        if told["status"] == "SUCCESS":
            return
        elapsed = time.monotonic() - begin
        if told["status"] == "ERROR" or elapsed > limit_seconds:
            raise WireError(f"compaction failed: {told}")
        time.sleep(max(POLL_SECONDS, elapsed / 500))  # the answers cost the broker CPU, too


def last_id(work: Work) -> Timed:
    """Measure GET_LAST_MESSAGE_ID, one call after the other, on a topic whose last batch is a compacted megabyte.

    Calls before compaction, and those in v21, are part of the preparation. A broker without v22 answers the counted
    calls in its own version.
    """
    publish_batch(work)
    costs = {"uncompacted": calls(work, NEW)()[0]}
    compacted(work.admin_url, work.topic)
    costs["v21"] = calls(work, OLD, BATCH - 1)()[0]
    newest = calls(work, NEW)

    def timed() -> Done:
        costs["v22"], done = newest()
        return Done(work.count, done.latencies, costs | {"over-uncompacted": costs["v22"] / costs["uncompacted"]})

    return timed


def calls(work: Work, version: int, index: int | None = None) -> Callable[[], tuple[float, Done]]:
    """Return a function that makes `count` calls, and returns the broker's microseconds of each, and their latencies.

    The caller is a reader of a compacted topic. `index` is the expected batch index of the answer.
    """
    connection = Connection(work.service_url, version)
    connection.ask(BaseCommand.LOOKUP_RESPONSE, [lookup(work.topic)])
    reader = consumer(work.topic, kind="Exclusive", subscription=f"bench-{time.monotonic_ns()}")
    reader.subscribe.durable, reader.subscribe.read_compacted = False, True
    connection.ask(BaseCommand.SUCCESS, [reader])
    ask = BaseCommand(type=BaseCommand.GET_LAST_MESSAGE_ID, getLastMessageId={"consumer_id": 0, "request_id": 2})

    def call() -> None:
        connection.send(ask)
        answer = connection.expect(BaseCommand.GET_LAST_MESSAGE_ID_RESPONSE).getLastMessageIdResponse
        found = answer.last_message_id.batch_index
        if index not in (None, found):
            raise WireError(f"the last message has batch index {found}, expected {index}")

    def timed() -> tuple[float, Done]:
        meter, done = Meter(work.pid), one_by_one(work.count, call)
        return meter.spent(work.count), done

    one_by_one(20, call)  # warm-up
    return timed


def publish_batch(work: Work) -> None:
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
    told = {"producer_id": 0, "sequence_id": 0, "num_messages": len(singles)}
    command = BaseCommand(type=BaseCommand.SEND, send=told)
    data = frame(command.SerializeToString(), entry.build(metadata, compress(LZ4, packed)))
    open_producer(connection := Connection(work.service_url), work.topic)
    send_all(connection, [(data, 1)])
