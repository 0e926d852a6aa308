"""Measure the cost of a backlog: one message more, one message less, and memory."""

from __future__ import annotations

import math
import shutil
import tempfile

from bench.large import Meter
from bench.programs import LEVELS
from bench.raw_driver import Connection, RawDriverError, subscribe
from bench.scale.driving import Peak, Publisher, Taker, broker_of, settled
from bench.work import Done, Timed, Work

SAMPLE = 0.004
"""Share of `count` that is published and consumed to measure one message."""
ON_DISK = 1.25  # bytes on disk per byte of a message, with the write-ahead log and unfilled pages


def backlog(work: Work) -> Timed:
    """Store `count` entries in a broker. On the way, measure the next publish and the next acknowledgement."""

    def timed() -> Done:
        parts: dict[str, float] = {}
        sample = max(1, int(work.count * SAMPLE))
        with broker_of(work) as broker:
            subscribe(waits := Connection(broker.service_url), work.topic)
            waits.socket.close()
            publisher = Publisher(broker.service_url, work.topic, work.size)
            meter = Meter(broker.pid)
            stored = 0

            def publish() -> float:
                settled(publisher.connection)
                meter.spent(1)
                publisher.publish(sample)
                settled(publisher.connection)
                return meter.spent(sample)

            def consume() -> float:
                taker = Taker(broker.service_url, work.topic)
                meter.spent(1)
                taker.take(sample)
                settled(taker.connection)
                cost = meter.spent(sample)
                taker.connection.socket.close()
                return cost

            publish()  # this and its consumption are the warm-up
            consume()
            with Peak(broker.pid) as peak:
                for name, share in LEVELS.items():
                    missing = max(0, math.ceil(work.count * share) - stored - sample)
                    publisher.publish(missing)
                    parts[f"publish-{name}"] = publish()
                    parts[f"consume-{name}"] = consume()
                    stored += missing
        for verb in ("publish", "consume"):
            costs = [parts[f"{verb}-{name}"] for name in LEVELS]
            parts[f"{verb}-growth"] = max(costs[1:]) / costs[0]
        cpu = (parts["publish-10m"] + parts["consume-10m"]) * work.count / 1e6
        return Done(work.count, parts=parts | {"memory": peak.megabytes}, broker_cpu=cpu)

    return timed


def big(work: Work) -> Timed:
    """Publish `count` megabytes, then consume them, and measure the broker's memory meanwhile."""
    needed = int(work.count * work.size * ON_DISK)
    if (free := shutil.disk_usage(tempfile.gettempdir()).free) < needed:
        raise RawDriverError(
            f"{needed / 1e9:.1f} GB of disk are needed, and {tempfile.gettempdir()} has {free / 1e9:.1f} GB: "
            "set TMPDIR to another folder, or pass a smaller --scale"
        )

    def timed() -> Done:
        parts: dict[str, float] = {}
        with broker_of(work) as broker:
            subscribe(waits := Connection(broker.service_url), work.topic)
            waits.socket.close()
            publisher = Publisher(broker.service_url, work.topic, work.size)
            meter = Meter(broker.pid)
            with Peak(broker.pid) as peak:
                publisher.publish(work.count)
            parts |= {"publish": meter.spent(work.count), "publish-memory": peak.megabytes}
            with Peak(broker.pid) as peak:
                Taker(broker.service_url, work.topic).take(work.count)
            parts |= {"consume": meter.spent(work.count), "consume-memory": peak.megabytes}
        return Done(work.count, parts=parts, broker_cpu=(parts["publish"] + parts["consume"]) * work.count / 1e6)

    return timed
