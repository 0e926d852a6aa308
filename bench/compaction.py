"""The program of compaction: its rate, its memory, and the longest time in which the broker does nothing else."""

from __future__ import annotations

import json
import time
import urllib.request

from bench.accounting import Pulse
from bench.brokers import Broker
from bench.large import Meter
from bench.raw_driver import Connection, RawDriverError, open_producer, send_all, send_segments
from bench.work import Done, Timed, Work
from pulsarium.proto.generated.PulsarApi_pb2 import MessageMetadata

KEPT_SHARE = 10  # one in so many messages is the last of its key
POLL_SECONDS = 0.02
LIMIT_SECONDS = 200


def compact(work: Work) -> Timed:
    """Compact `count` messages to a tenth, while another connection pings the broker."""
    broker = Broker(work.service_url, work.admin_url, work.pid)
    keys = max(1, work.count // KEPT_SHARE)
    producer = Connection(work.service_url)
    open_producer(producer, work.topic)

    def set_key(metadata: MessageMetadata, number: int) -> None:
        metadata.partition_key = f"key-{number % keys}"

    send_all(producer, send_segments(work.count, work.size, set_key))
    pulse = Pulse(work.service_url, work.pid)

    def timed() -> Done:
        meter = Meter(work.pid)
        with pulse:
            compacted(broker, work.topic)
        return Done(work.count, parts={"memory": meter.gained(), "gap": pulse.gap * 1000})

    return timed


def compacted(broker: Broker, topic: str, limit_seconds: float = LIMIT_SECONDS) -> None:
    """Start compaction, and wait for its end."""
    url = f"{broker.admin_url}/admin/v2/{topic.replace('://', '/')}/compaction"
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
            raise RawDriverError(f"compaction failed: {told}")
        time.sleep(max(POLL_SECONDS, elapsed / 500))  # the answers cost the broker CPU, too
