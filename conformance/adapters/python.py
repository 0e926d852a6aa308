"""The adapter of the conformance kit for the official Python client: `python -m pulsarium.conformance.adapters.python`.

The client is a layer on the C++ client, and has no more than this one. Older releases have less.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from queue import Empty, Queue
from threading import Thread
from typing import Any, Final

import pulsar
from pulsar.schema import AvroSchema, BytesSchema, Integer, JsonSchema, Record, String, StringSchema

from pulsarium.conformance.adapters.lines import Refusal, serve_in_threads
from pulsarium.conformance.protocol import KINDS, Unsupported

Request = Mapping[str, Any]

_NEWER: Final = "this release has no such call"
LACKS: Final = {
    **({} if hasattr(pulsar.Message, "has_null_value") else {"send.null": _NEWER}),
    **({} if hasattr(pulsar.Client, "create_table_view") else dict.fromkeys(("table-view", "table"), _NEWER)),
    **({} if hasattr(pulsar, "ConsumerKeySharedPolicy") else {"consumer.hash-ranges": _NEWER}),
    **({} if hasattr(pulsar.Message, "producer_name") else {"receive.publisher": _NEWER}),
    **(
        {}
        if hasattr(pulsar, "ConsumerCryptoFailureAction")
        else {"consumer.crypto-failure": _NEWER, "reader.crypto-failure": _NEWER}
    ),
    "consumer.ack-timeout": "no timeouts below 10 s",
    "consumer.retry": "no such option",
    "consumer.receipt": "only acknowledgements without a response",
    "consumer.priority": "no such option",
    "send.transaction": "no transactions",
    "acknowledge.transaction": "no transactions",
    "receive.index": "messages have no index",
    "receive.sequence": "messages have no sequence id",
    "reconsume-later": "no such call",
    **dict.fromkeys(("transaction", "commit", "abort"), "no transactions"),
}
_KINDS: Final = {
    "TopicNotFound": "NotFound",
    "SubscriptionNotFound": "NotFound",
    "ConsumerNotFound": "NotFound",
    "AuthenticationError": "Authentication",
    "AuthorizationError": "Authorization",
    "ProducerFenced": "Fenced",
    "ConnectError": "Connect",
    "NotConnected": "Connect",
    "ProducerQueueIsFull": "ProducerQueueFull",
    "MemoryBufferIsFull": "MemoryBufferFull",
    "CryptoError": "Crypto",
    "InvalidUrl": "InvalidServiceURL",
}
_TYPES: Final = {
    "Exclusive": pulsar.ConsumerType.Exclusive,
    "Shared": pulsar.ConsumerType.Shared,
    "Failover": pulsar.ConsumerType.Failover,
    "Key_Shared": pulsar.ConsumerType.KeyShared,
}
_ACCESS: Final = {
    "shared": pulsar.ProducerAccessMode.Shared,
    "exclusive": pulsar.ProducerAccessMode.Exclusive,
    "exclusive-with-fencing": pulsar.ProducerAccessMode.ExclusiveWithFencing,
    "wait-for-exclusive": pulsar.ProducerAccessMode.WaitForExclusive,
}
_STARTS: Final = {"earliest": pulsar.InitialPosition.Earliest, "latest": pulsar.InitialPosition.Latest}
_COMPRESSIONS: Final = {
    "LZ4": pulsar.CompressionType.LZ4,
    "ZLIB": pulsar.CompressionType.ZLib,
    "ZSTD": pulsar.CompressionType.ZSTD,
    "SNAPPY": pulsar.CompressionType.SNAPPY,
}
_MESSAGE: Final = {
    "key": "partition_key",
    "ordering-key": "ordering_key",
    "properties": "properties",
    "event-time": "event_timestamp",
    "sequence": "sequence_id",
}


class Person(Record):  # type: ignore[misc]
    """The record of scenarios with schemas."""

    name = String()
    age = Integer()


_SCHEMAS: Final = {"text": StringSchema, "json": lambda: JsonSchema(Person), "avro": lambda: AvroSchema(Person)}


def _encoded(schema: str | None, value: str) -> Any:
    if schema is None:
        return value.encode()
    return value if schema == "text" else Person(**json.loads(value))


def _decoded(schema: str | None, message: pulsar.Message) -> str:
    if schema is None:
        return str(message.data().decode(errors="replace"))
    value = message.value()
    return str(value) if schema == "text" else json.dumps({"name": value.name, "age": value.age})


def kind_of(error: Exception) -> str:
    """Return the kind of an error, by its class."""
    name = type(error).__name__
    return _KINDS.get(name, name if name in KINDS else "Other")


class WithoutQueue:
    """Receives from a consumer without a receiver queue, which offers no timeout."""

    def __init__(self, consumer: pulsar.Consumer) -> None:
        self._consumer = consumer
        self._got: Queue[Any] = Queue()
        self._is_waiting = False

    def receive(self, milliseconds: int) -> Any:
        if not self._is_waiting:
            self._is_waiting = True
            Thread(target=self._receive, daemon=True).start()
        try:
            got = self._got.get(timeout=milliseconds / 1000)
        except Empty:
            raise pulsar.Timeout from None
        self._is_waiting = False
        if isinstance(got, Exception):
            raise got
        return got

    def _receive(self) -> None:
        try:
            self._got.put(self._consumer.receive())
        except pulsar.PulsarException as error:
            self._got.put(error)


@dataclass(frozen=True)
class Held:
    """A client, producer, consumer, reader or table view, and the name of its schema."""

    thing: Any
    schema: str | None = None


class Adapter:
    """The operations of the protocol, one method for each."""

    def __init__(self) -> None:
        self._held: dict[str, Held] = {}
        self._ids: dict[str, Any] = {"earliest": pulsar.MessageId.earliest, "latest": pulsar.MessageId.latest}
        self._numbers = count()
        self._without_queue: dict[str, WithoutQueue] = {}

    def _thing(self, handle: str) -> Any:
        if handle not in self._held:
            raise Refusal("AlreadyClosed", f"nothing is open as {handle}")
        return self._held[handle].thing

    def _hold(self, request: Request, thing: Any) -> None:
        self._held[request["as"]] = Held(thing, request.get("schema"))

    def _kept(self, thing: Any) -> str:
        """Keep a message or its id, and return the name for the kit."""
        name = str(next(self._numbers))
        self._ids[name] = thing
        return name

    def _id(self, name: str) -> Any:
        kept = self._ids[name]
        return kept.message_id() if isinstance(kept, pulsar.Message) else kept

    def open(self, request: Request) -> None:
        options: dict[str, Any] = {}
        if "token" in request:
            options["authentication"] = pulsar.AuthenticationToken(request["token"])
        if "trust" in request:
            options |= {"tls_trust_certs_file_path": request["trust"], "tls_validate_hostname": True}
        log = pulsar.FileLogger(pulsar.LoggerLevel.Warn, "/dev/stderr")
        try:
            client = pulsar.Client(request["url"], operation_timeout_seconds=15, logger=log, **options)
        except ValueError as error:
            raise Refusal("InvalidServiceURL", str(error)) from None
        self._hold(request, client)

    def close(self, request: Request) -> None:
        self._thing(request["handle"]).close()

    def producer(self, request: Request) -> None:
        options: dict[str, Any] = {
            "producer_name": request.get("name"),
            "access_mode": _ACCESS[request.get("access", "shared")],
            "batching_enabled": "batch" in request,
            "chunking_enabled": request.get("chunk", False),
            "send_timeout_millis": 20_000,
            "schema": _schema(request),
        }
        if "batch" in request:
            options |= {"batching_max_messages": request["batch"], "batching_max_publish_delay_ms": 60_000}
        if "compression" in request:
            options["compression_type"] = _COMPRESSIONS[request["compression"]]
        if "encrypt" in request:
            options["encryption_key"] = request["encrypt"]["name"]
            options["crypto_key_reader"] = pulsar.CryptoKeyReader(request["encrypt"]["public"], "")
        self._hold(request, self._thing(request["client"]).create_producer(request["topic"], **options))

    def send(self, request: Request) -> Mapping[str, Any]:
        producer, schema = self._thing(request["producer"]), self._held[request["producer"]].schema
        results: list[Queue[Any]] = []
        for each in request["messages"]:
            options = {_MESSAGE[name]: each[name] for name in each.keys() & _MESSAGE.keys()}
            if "delay" in each:
                options["deliver_after"] = timedelta(milliseconds=each["delay"])
            value = None if each.get("null") else _encoded(schema, each["value"])
            result: Queue[Any] = Queue(1)
            results.append(result)
            producer.send_async(value, lambda *told, result=result: result.put(told), **options)
        with suppress(pulsar.PulsarException):  # each message tells its own error
            producer.flush()
        ids = []
        for stored, message_id in [each.get() for each in results]:
            if stored != pulsar.Result.Ok:
                raise getattr(pulsar, stored.name)("the message was not stored")
            ids.append(self._kept(message_id))
        return {"ids": ids}

    def flush(self, request: Request) -> None:
        self._thing(request["producer"]).flush()

    def last_sequence(self, request: Request) -> Mapping[str, Any]:
        return {"sequence": self._thing(request["producer"]).last_sequence_id()}

    def consumer(self, request: Request) -> None:
        topics: Any = request.get("topics")
        if "pattern" in request:
            topics = re.compile(request["pattern"])
        elif len(topics) == 1:
            (topics,) = topics
        options: dict[str, Any] = {
            "consumer_type": _TYPES[request["type"]],
            "initial_position": _STARTS[request["start"]],
            "consumer_name": request.get("name"),
            "negative_ack_redelivery_delay_ms": request.get("nack-delay", 100),
            "batch_index_ack_enabled": request.get("batch-index", False),
            **_reads(request),
        }
        if "hash-ranges" in request:
            ranges = [(first, last) for first, last in request["hash-ranges"]]
            options["key_shared_policy"] = pulsar.ConsumerKeySharedPolicy(pulsar.KeySharedMode.Sticky, False, ranges)
        if "dead-letter" in request:
            policy = request["dead-letter"]
            options["dead_letter_policy"] = pulsar.ConsumerDeadLetterPolicy(policy["max"], policy.get("topic"))
        if "batch-receive" in request:
            limits = request["batch-receive"]
            milliseconds = int(limits["seconds"] * 1000)
            options["batch_receive_policy"] = pulsar.ConsumerBatchReceivePolicy(limits["count"], -1, milliseconds)
        consumer = self._thing(request["client"]).subscribe(topics, request["subscription"], **options)
        self._hold(request, consumer)
        if request.get("queue") == 0:
            self._without_queue[request["as"]] = WithoutQueue(consumer)

    def reader(self, request: Request) -> None:
        options = {"start_message_id_inclusive": request.get("inclusive", False), **_reads(request)}
        client = self._thing(request["client"])
        self._hold(request, client.create_reader(request["topic"], self._id(request["start"]), **options))

    def receive(self, request: Request) -> Mapping[str, Any]:
        consumer, schema = self._thing(request["consumer"]), self._held[request["consumer"]].schema
        receive = consumer.read_next if isinstance(consumer, pulsar.Reader) else consumer.receive
        if request["consumer"] in self._without_queue:
            receive = self._without_queue[request["consumer"]].receive
        told: list[dict[str, Any]] = []
        end = time.monotonic() + request["seconds"]
        with suppress(pulsar.Timeout):
            while len(told) < request["count"]:
                told.append(self._told(receive(max(0, int((end - time.monotonic()) * 1000))), schema))
        return {"messages": told}

    def receive_batch(self, request: Request) -> Mapping[str, Any]:
        schema = self._held[request["consumer"]].schema
        return {"messages": [self._told(each, schema) for each in self._thing(request["consumer"]).batch_receive()]}

    def _told(self, message: pulsar.Message, schema: str | None) -> dict[str, Any]:
        at = message.message_id()
        told = {
            "key": message.partition_key(),
            "ordering-key": message.ordering_key(),
            "properties": message.properties(),
            "event-time": message.event_timestamp(),
            "topic": message.topic_name(),
            "place": [at.ledger_id(), at.entry_id(), at.batch_index()],
            "publisher": "" if "receive.publisher" in LACKS else message.producer_name(),
        }
        told = {name: value for name, value in told.items() if value}
        if version := message.schema_version():
            told["schema-version"] = int.from_bytes(version.encode() if isinstance(version, str) else version)
        is_null = "send.null" not in LACKS and message.has_null_value()
        value = {"value": "", "null": True} if is_null else {"value": _decoded(schema, message)}
        return {"id": self._kept(message), **value, "redeliveries": message.redelivery_count(), **told}

    def acknowledge(self, request: Request) -> None:
        self._thing(request["consumer"]).acknowledge(self._ids[request["message"]])

    def acknowledge_cumulative(self, request: Request) -> None:
        self._thing(request["consumer"]).acknowledge_cumulative(self._ids[request["message"]])

    def negative_acknowledge(self, request: Request) -> None:
        self._thing(request["consumer"]).negative_acknowledge(self._ids[request["message"]])

    def redeliver(self, request: Request) -> None:
        self._thing(request["consumer"]).redeliver_unacknowledged_messages()

    def seek(self, request: Request) -> None:
        target = request["time"] if "time" in request else self._id(request["start"])
        self._thing(request["consumer"]).seek(target)

    def unsubscribe(self, request: Request) -> None:
        self._thing(request["consumer"]).unsubscribe()

    def last_message_id(self, request: Request) -> Mapping[str, Any]:
        consumer = self._thing(request["consumer"])
        if isinstance(consumer, pulsar.Reader):
            raise Unsupported("last-message-id: readers have no such call")
        last = consumer.get_last_message_id()
        return {"place": [last.ledger_id(), last.entry_id(), last.batch_index()]}

    def has_message(self, request: Request) -> Mapping[str, Any]:
        return {"available": self._thing(request["reader"]).has_message_available()}

    def table_view(self, request: Request) -> None:
        self._hold(request, self._thing(request["client"]).create_table_view(request["topic"]))

    def table(self, request: Request) -> Mapping[str, Any]:
        entries: dict[str, str] = {}
        self._thing(request["view"]).for_each(lambda key, value: entries.update({key: value.decode()}))
        return {"entries": entries}

    def partitions(self, request: Request) -> Mapping[str, Any]:
        return {"topics": self._thing(request["client"]).get_topic_partitions(request["topic"])}


def _schema(request: Request) -> Any:
    return _SCHEMAS[request["schema"]]() if "schema" in request else BytesSchema()


def _reads(request: Request) -> dict[str, Any]:
    """Return the options that consumers and readers share."""
    options: dict[str, Any] = {"schema": _schema(request), "is_read_compacted": request.get("compacted", False)}
    if "queue" in request:
        options["receiver_queue_size"] = request["queue"]
    if "decrypt" in request:
        options["crypto_key_reader"] = pulsar.CryptoKeyReader("", request["decrypt"])
    if "crypto-failure" in request:
        action = request["crypto-failure"].upper()
        options["crypto_failure_action"] = getattr(pulsar.ConsumerCryptoFailureAction, action)
    return options


if __name__ == "__main__":
    about = {"client": "Pulsar-Python", "version": pulsar.__version__, "topics": ["classic"], "lacks": LACKS}
    serve_in_threads(Adapter(), about, kind_of)
