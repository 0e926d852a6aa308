"""Actions of the recorder's own clients between calls, which `{"step": ...}` lines name."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any

import pulsar
import pulsar.schema

from tests.foreign.deadline import eventually

from .transactions import Transactions

PERSISTENT = "persistent://t1/data/"
NON_PERSISTENT = "non-persistent://t1/data/"
OF_PARTITION_0 = "a"
"""The recorder's message had no key and went to partition 0 of 2 by chance."""

PATIENCE_MS = 60_000
"""Time for a message that must come, and for a batch that `flush` must send: no timer may cut it in two."""

TYPES = {
    "sub-exclusive": pulsar.ConsumerType.Exclusive,
    "sub-shared": pulsar.ConsumerType.Shared,
    "sub-failover": pulsar.ConsumerType.Failover,
    "sub-keyshared": pulsar.ConsumerType.KeyShared,
}


class Example(pulsar.schema.Record):  # type: ignore[misc]
    """A message of the topics with a JSON or an Avro schema."""

    a = pulsar.schema.String()
    b = pulsar.schema.Integer()


class Avro(pulsar.schema.Schema):  # type: ignore[misc]
    """The Avro schema of `Example` for bytes that are Avro already, so that no Avro library is needed."""

    def __init__(self) -> None:
        super().__init__(Example, pulsar._pulsar.SchemaType.AVRO, Example.schema(), "AVRO")

    def encode(self, obj: bytes) -> bytes:
        return obj


class Clients:
    """The recorder's clients. They call `get` to wait for a state that the admin API shows."""

    def __init__(self, service_url: str, get: Callable[[str], Any]) -> None:
        self._client = pulsar.Client(service_url, logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull))
        self._get = get
        self._sent = 0.0
        self._consumers: list[Any] = []
        self._held: list[Any] = []  # Python would close these producers and consumers otherwise
        self._service_url = service_url
        self._transactions: Transactions | None = None
        self.names: dict[str, str] = {}  # mark in the recordings -> name that the broker gave

    def take(self, step: str) -> None:
        """Perform a step of the recording."""
        STEPS[step](self)

    def close(self) -> None:
        self._client.close()
        if self._transactions is not None:
            self._transactions.close()

    def transaction(self) -> None:
        self._transactions = self._transactions or Transactions(self._service_url, PERSISTENT + "txn", "txn-sub")
        self.names |= self._transactions.begin()

    def commit(self) -> None:
        assert self._transactions is not None
        self._transactions.commit()

    def persistent(self) -> None:
        consumers = [self._subscribe(topic, name) for topic in ("single", "batched") for name in TYPES]
        self._subscribe("single", "sub-failover", consumer_name="c2-sub-failover")
        self._single()
        self._batched()
        self._by_key()
        for consumer in consumers:
            if (consumer.topic(), consumer.subscription_name()) != (PERSISTENT + "single", "sub-failover"):
                acknowledge_some(consumer)  # the other one is inactive
        self._sent = time.monotonic()

    def _subscribe(self, topic: str, name: str, **options: Any) -> Any:
        if not options:
            options = {
                "consumer_name": f"c-{name}",
                "properties": {"app": "samples"},
                "initial_position": pulsar.InitialPosition.Earliest,
                "receiver_queue_size": 20,
            }
        return self._client.subscribe(PERSISTENT + topic, name, consumer_type=TYPES[name], **options)

    def _single(self) -> None:
        producer = self._client.create_producer(
            PERSISTENT + "single", producer_name="prod-single", batching_enabled=False, properties={"app": "samples"}
        )
        for i in range(20):
            producer.send(
                b"m%d" % i,
                properties={"k": "v", "n": str(i)},
                partition_key=f"key{i % 4}",
                event_timestamp=1_700_000_000_000 + i,
                ordering_key=f"o{i}",
            )
        for i in range(2):
            producer.send(b"delayed%d" % i, deliver_after=timedelta(hours=1))

    def _batched(self) -> None:
        producer = self._client.create_producer(
            PERSISTENT + "batched",
            producer_name="prod-batched",
            batching_enabled=True,
            batching_max_messages=10,
            batching_max_publish_delay_ms=PATIENCE_MS,
            batching_type=pulsar.BatchingType.Default,
        )
        for i in range(30):
            producer.send_async(b"b%d" % i, ignore, properties={"n": str(i)}, partition_key=f"key{i % 4}")
        producer.flush()

    def _by_key(self) -> None:
        producer = self._client.create_producer(
            PERSISTENT + "keybatched",
            producer_name="prod-keybatched",
            batching_enabled=True,
            batching_max_publish_delay_ms=PATIENCE_MS,
            batching_type=pulsar.BatchingType.KeyBased,
            compression_type=pulsar.CompressionType.LZ4,
        )
        for i in range(20):
            producer.send_async(b"kb%d" % i, ignore, partition_key=f"key{i % 4}")
        producer.flush()

    def partitioned(self) -> None:
        shared = pulsar.ConsumerType.Shared
        self._client.subscribe(PERSISTENT + "part", "sub-part", consumer_type=shared)
        producer = self._client.create_producer(PERSISTENT + "part", producer_name="prod-part")
        for i in range(12):
            producer.send(b"p%d" % i, partition_key=f"k{i}")
        consumer = self._client.subscribe(NON_PERSISTENT + "np", "sub-np", consumer_type=shared)
        producer = self._client.create_producer(NON_PERSISTENT + "np", producer_name="prod-np")
        for i in range(5):
            producer.send(b"np%d" % i)
        self._held += [consumer, producer]

    def others(self) -> None:
        topic = NON_PERSISTENT + "np-part"
        consumer = self._client.subscribe(topic, "sub-np-part", consumer_type=pulsar.ConsumerType.Shared)
        producer = self._client.create_producer(topic)
        producer.send(b"x", partition_key=OF_PARTITION_0)
        self._held += [consumer, producer]
        self._with_schema("s-json", pulsar.schema.JsonSchema(Example), Example(a="x", b=1))
        self._with_schema("s-avro", Avro(), b"\x02\x02x\x02\x02")  # Example(a="x", b=1)
        self._with_schema("s-string", pulsar.schema.StringSchema(), "x")
        producer = self._client.create_producer(PERSISTENT + "compacted", batching_enabled=False)
        for i in range(10):
            producer.send(b"c%d" % i, partition_key=f"k{i % 2}")
        producer.close()

    def _with_schema(self, topic: str, schema: Any, value: Any) -> None:
        producer = self._client.create_producer(PERSISTENT + topic, schema=schema)
        producer.send(value)
        producer.close()

    def compaction(self) -> None:
        path = "/admin/v2/persistent/t1/data/compacted/compaction"
        eventually(lambda: self._get(path)["status"] != "RUNNING", what="compaction")

    def back(self) -> None:
        """Wait until the clients of non-persistent topics have reconnected after the unload."""
        for topic in ("np", "np-part-partition-0"):
            eventually(partial(self._are_there, topic), what=f"clients of {topic}")

    def _are_there(self, topic: str) -> bool:
        """Tell whether a non-persistent topic has a producer and a consumer."""
        stats = self._get(f"/admin/v2/non-persistent/t1/data/{topic}/stats")
        return bool(stats["publishers"]) and any(each["consumers"] for each in stats["subscriptions"].values())

    def second(self) -> None:
        """Wait until all messages are older than a second."""
        eventually(lambda: time.monotonic() - self._sent > 1.05, what="the clock")

    def few(self, topic: str, count: int) -> None:
        producer = self._client.create_producer(topic)
        for _ in range(count):
            producer.send(b"x")
        producer.close()

    def consumer(self, topic: str) -> None:
        self._consumers.append(self._client.subscribe(topic, "s"))

    def no_consumer(self) -> None:
        self._consumers.pop().close()


def acknowledge_some(consumer: Any) -> None:
    """Acknowledge every second of ten messages for Shared and Key_Shared, else the first five cumulatively."""
    shared = consumer.subscription_name() in ("sub-shared", "sub-keyshared")
    for i in range(10):
        message = consumer.receive(PATIENCE_MS)
        if shared and i % 2 == 0:
            consumer.acknowledge(message)
        elif not shared and i == 4:
            consumer.acknowledge_cumulative(message)


def ignore(*_: object) -> None:
    """Ignore the receipt of a message."""


STEPS: Mapping[str, Callable[[Clients], None]] = {
    "persistent topics": Clients.persistent,
    "partitioned topic, non-persistent topic": Clients.partitioned,
    "partitioned non-persistent topic, schemas, keys": Clients.others,
    "compaction": Clients.compaction,
    "non-persistent clients are back": Clients.back,
    "messages of one second ago": Clients.second,
    "five messages": lambda clients: clients.few("persistent://t1/tops/trunc", 5),
    "three messages": lambda clients: clients.few("persistent://t1/tops/term", 3),
    "persistent consumer": lambda clients: clients.consumer("persistent://t1/tops/forced"),
    "non-persistent consumer": lambda clients: clients.consumer("non-persistent://t1/tops/forced"),
    "no consumer": Clients.no_consumer,
    "transaction": Clients.transaction,
    "commit": Clients.commit,
    "another transaction": Clients.transaction,
}
