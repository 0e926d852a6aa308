"""The adapter of the conformance kit for `pulsarium.client`: `python -m pulsarium.conformance.adapters.ours`.

It runs under trio, or under asyncio with the argument `asyncio`.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass
from typing import Any, Final

import anyio
import anyio.abc
import anyio.to_thread

from pulsarium import client as api
from pulsarium.broker.config.version import VERSION
from pulsarium.client import errors
from pulsarium.conformance.protocol import PROTOCOL
from pulsarium.proto.errors import MissingExtra

Request = Mapping[str, Any]
Operation = Callable[[Request], Awaitable[Mapping[str, Any] | None]]

_KINDS: Final = (
    (errors.TopicNotFound, "NotFound"),
    (errors.AuthenticationError, "Authentication"),
    (errors.AuthorizationError, "Authorization"),
    (errors.Timeout, "Timeout"),
    (errors.AlreadyClosed, "AlreadyClosed"),
    (errors.ProducerBusy, "ProducerBusy"),
    (errors.ProducerFenced, "Fenced"),
    (errors.ConsumerBusy, "ConsumerBusy"),
    (errors.IncompatibleSchema, "IncompatibleSchema"),
    (errors.TopicTerminated, "TopicTerminated"),
    (errors.ConnectError, "Connect"),
    (errors.ProducerQueueIsFull, "ProducerQueueFull"),
    (errors.MemoryBufferIsFull, "MemoryBufferFull"),
    (errors.TransactionConflict, "TransactionConflict"),
    (errors.InvalidTxnStatusError, "TransactionConflict"),
    (errors.TransactionNotFound, "NotFound"),
    (errors.CryptoError, "Crypto"),
    (errors.InvalidConfiguration, "InvalidConfiguration"),
    (errors.InvalidUrl, "InvalidServiceURL"),
)
_ACCESS: Final = {
    "shared": api.ProducerAccessMode.Shared,
    "exclusive": api.ProducerAccessMode.Exclusive,
    "exclusive-with-fencing": api.ProducerAccessMode.ExclusiveWithFencing,
    "wait-for-exclusive": api.ProducerAccessMode.WaitForExclusive,
}
_TYPES: Final = {
    "Exclusive": api.ConsumerType.Exclusive,
    "Shared": api.ConsumerType.Shared,
    "Failover": api.ConsumerType.Failover,
    "Key_Shared": api.ConsumerType.KeyShared,
}
_STARTS: Final = {"earliest": api.InitialPosition.Earliest, "latest": api.InitialPosition.Latest}
_COMPRESSIONS: Final = {each.name.upper(): each for each in api.CompressionType}
_MESSAGE: Final = {
    "key": "partition_key",
    "ordering-key": "ordering_key",
    "properties": "properties",
    "event-time": "event_timestamp",
    "sequence": "sequence_id",
}


@dataclass
class Person:
    """The record of scenarios with schemas."""

    name: str
    age: api.AvroInt


class Codec:
    """A schema, and its values as text."""

    def __init__(self, name: str | None) -> None:
        self.is_record = name in ("json", "avro")
        records: Any = {"json": api.JsonSchema, "avro": api.AvroSchema}
        self.schema: Any = (
            records[name](Person) if self.is_record else api.StringSchema() if name else api.BytesSchema()
        )
        self._is_text = name == "text"

    def encoded(self, text: str) -> Any:
        if self.is_record:
            return Person(**json.loads(text))
        return text if self._is_text else text.encode()

    def decoded(self, message: api.Message[Any]) -> str:
        if self.is_record:
            return json.dumps(asdict(message.value()))
        return message.value() if self._is_text else message.data().decode(errors="replace")


class Held:
    """A context, which lives in a task of its own."""

    def __init__(self, context: AbstractAsyncContextManager[Any]) -> None:
        self._context = context
        self._closing = anyio.Event()
        self._closed = anyio.Event()
        self.thing: Any = None

    async def live(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        try:
            async with self._context as self.thing:
                task_status.started()
                await self._closing.wait()
        finally:
            self._closed.set()

    async def aclose(self) -> None:
        self._closing.set()
        await self._closed.wait()


class Adapter:
    """Operations of the kit's protocol on `pulsarium.client`: each public method is one."""

    def __init__(self, tasks: anyio.abc.TaskGroup) -> None:
        self._tasks = tasks
        self._clients: dict[str, api.Client] = {}
        self._things: dict[str, Any] = {}
        self._codecs: dict[str, Codec] = {}
        self._ids: dict[str, Any] = {"earliest": api.MessageId.earliest, "latest": api.MessageId.latest}
        self._sending: defaultdict[str, anyio.Lock] = defaultdict(anyio.Lock)
        names = [name for name in vars(Adapter) if not name.startswith("_") and name != "answer"]
        self._operations: dict[str, Operation] = {name.replace("_", "-"): getattr(self, name) for name in names}

    async def answer(self, request: Request) -> dict[str, Any]:
        number, name = request["id"], request["do"]
        if name == "hello":
            about = {"protocol": PROTOCOL, "client": "Pulsarium", "version": VERSION, "topics": ["classic", "scalable"]}
            known = {"operations": sorted(self._operations), "proposals": [491, 493]}
            return {"id": number, "ok": {**about, **known}}
        if name not in self._operations:
            return {"id": number, "unsupported": f"no operation {name}"}
        try:
            return {"id": number, "ok": dict(await self._operations[name](request) or {})}
        except errors.PulsarError as error:
            if isinstance(error.__cause__, MissingExtra):
                return {"id": number, "unsupported": str(error)}
            kind = next((kind for each, kind in _KINDS if isinstance(error, each)), "Other")
            return {"id": number, "error": {"kind": kind, "text": f"{type(error).__name__}: {error}"}}
        except Exception as error:  # an adapter answers every request
            return {"id": number, "error": {"kind": "Other", "text": f"{type(error).__name__}: {error}"}}

    def _opener(self, request: Request) -> Any:
        """Return what opens producers and consumers of a topic: the client, or its scalable topics."""
        client = self._clients[request["client"]]
        return client.scalable if request.get("topic", "topic://").startswith("topic://") else client

    def _kept(self, thing: Any) -> str:
        """Keep a message or its id, and return the name for the kit."""
        name = str(len(self._ids))
        self._ids[name] = thing
        return name

    async def open(self, request: Request) -> None:
        options: dict[str, Any] = {}
        if "token" in request:
            options["authentication"] = api.AuthenticationToken(request["token"])
        if "trust" in request:
            options["tls_trust_certs_file_path"] = request["trust"]
        held = self._things[request["as"]] = Held(api.connect(request["url"], operation_timeout=15, **options))
        await self._tasks.start(held.live)
        self._clients[request["as"]] = held.thing

    async def _enter(self, request: Request, opened: Any) -> None:
        self._codecs[request["as"]] = Codec(request.get("schema"))
        self._things[request["as"]] = await opened.__aenter__()

    async def producer(self, request: Request) -> None:
        options: dict[str, Any] = {
            "producer_name": request.get("name"),
            "access_mode": _ACCESS[request.get("access", "shared")],
        }
        if not request["topic"].startswith("topic://"):
            options["batching_enabled"] = "batch" in request
            options["schema"] = Codec(request.get("schema")).schema
            if "batch" in request:
                options |= {"batching_max_messages": request["batch"], "batching_max_publish_delay": 60}
            if "compression" in request:
                options["compression_type"] = _COMPRESSIONS[request["compression"]]
            if "chunk" in request:
                options["chunking_enabled"] = True
            if "encrypt" in request:
                options["encryption_keys"] = [request["encrypt"]["name"]]
                options["crypto_key_reader"] = api.CryptoKeyReader(request["encrypt"]["public"], "")
        await self._enter(request, self._opener(request).create_producer(request["topic"], **options))

    async def send(self, request: Request) -> Mapping[str, Any]:
        producer, codec = self._things[request["producer"]], self._codecs[request["producer"]]
        txn = self._things[request["transaction"]] if "transaction" in request else None
        receipts = []
        async with self._sending[request["producer"]]:
            for each in request["messages"]:
                options = {_MESSAGE[name]: each[name] for name in each.keys() & _MESSAGE.keys()}
                if "delay" in each:
                    options["deliver_after"] = each["delay"] / 1000
                value = None if each.get("null") else codec.encoded(each["value"])
                receipts.append(await producer.submit(value, txn=txn, **options))
            await producer.flush()
        return {"ids": [self._kept(await receipt.wait()) for receipt in receipts]}

    async def flush(self, request: Request) -> None:
        async with self._sending[request["producer"]]:  # which includes the messages of all earlier requests
            await self._things[request["producer"]].flush()

    async def close(self, request: Request) -> None:
        async with self._sending[request["handle"]]:
            await self._things[request["handle"]].aclose()

    async def last_sequence(self, request: Request) -> Mapping[str, Any]:
        return {"sequence": self._things[request["producer"]].last_sequence_id()}

    async def stream(self, request: Request) -> None:
        consumer = self._opener(request).subscribe_stream(
            request["topic"],
            request["subscription"],
            consumer_name=request["name"],
            initial_position=api.InitialPosition.Earliest,
            ack_receipt_enabled=True,
        )
        await self._enter(request, consumer)

    async def namespace_stream(self, request: Request) -> None:
        consumer = self._opener(request).subscribe_namespace(
            request["namespace"],
            request["subscription"],
            property_filters=request["properties"],
            consumer_name=request["name"],
            initial_position=api.InitialPosition.Earliest,
            ack_receipt_enabled=True,
        )
        await self._enter(request, consumer)

    async def queue(self, request: Request) -> None:
        consumer = self._opener(request).subscribe_queue(
            request["topic"],
            request["subscription"],
            initial_position=api.InitialPosition.Earliest,
            negative_ack_redelivery_delay=0.1,
            ack_receipt_enabled=True,
        )
        await self._enter(request, consumer)

    async def checkpoint_consumer(self, request: Request) -> None:
        start = request["start"]
        known = {"earliest": api.Checkpoint.earliest, "latest": api.Checkpoint.latest}
        at = known[start] if start in known else api.Checkpoint.deserialize(base64.b64decode(start))
        topics, name = self._opener(request), request.get("name", "")
        group = request.get("group")
        await self._enter(
            request, topics.create_checkpoint_consumer(request["topic"], at, group=group, consumer_name=name)
        )

    async def consumer(self, request: Request) -> None:
        topics: Any = re.compile(request["pattern"]) if "pattern" in request else request["topics"]
        if len(request["topics"]) == 1:
            (topics,) = request["topics"]
        options: dict[str, Any] = {
            "consumer_type": _TYPES[request["type"]],
            "initial_position": _STARTS[request["start"]],
            "consumer_name": request.get("name", ""),
            "negative_ack_redelivery_delay": request.get("nack-delay", 100) / 1000,
            "ordered_negative_ack": api.OrderedNegativeAckMode.BestEffort,
            "retry_enable": request.get("retry", False),
            "batch_index_ack_enabled": request.get("batch-index", False),
            "ack_receipt_enabled": request.get("receipt", False),
            "priority_level": request.get("priority", 0),
            **self._reads(request),
        }
        if "hash-ranges" in request:
            ranges = tuple((first, last) for first, last in request["hash-ranges"])
            options["key_shared_policy"] = api.ConsumerKeySharedPolicy(
                key_shared_mode=api.KeySharedMode.Sticky, sticky_ranges=ranges
            )
        if "ack-timeout" in request:
            options["unacked_messages_timeout"] = request["ack-timeout"] / 1000
        if "dead-letter" in request:
            policy = request["dead-letter"]
            options["dead_letter_policy"] = api.ConsumerDeadLetterPolicy(policy["max"], policy.get("topic"))
        if "batch-receive" in request:
            limits = request["batch-receive"]
            options["batch_receive_policy"] = api.ConsumerBatchReceivePolicy(limits["count"], -1, limits["seconds"])
        client = self._clients[request["client"]]
        await self._enter(request, client.subscribe(topics, request["subscription"], **options))

    async def reader(self, request: Request) -> None:
        client = self._clients[request["client"]]
        options = {"start_message_id_inclusive": request.get("inclusive", False), **self._reads(request)}
        await self._enter(request, client.create_reader(request["topic"], self._id(request["start"]), **options))

    def _reads(self, request: Request) -> dict[str, Any]:
        options: dict[str, Any] = {"schema": Codec(request.get("schema")).schema}
        if "compacted" in request:
            options["read_compacted"] = True
        if "queue" in request:
            options["receiver_queue_size"] = request["queue"]
        if "decrypt" in request:
            options["crypto_key_reader"] = api.CryptoKeyReader("", request["decrypt"])
        if "crypto-failure" in request:
            options["crypto_failure_action"] = api.ConsumerCryptoFailureAction[request["crypto-failure"].upper()]
        return options

    def _id(self, name: str) -> api.MessageId:
        kept = self._ids[name]
        return kept if isinstance(kept, api.MessageId) else kept.message_id()

    async def receive(self, request: Request) -> Mapping[str, Any]:
        consumer, codec = self._things[request["consumer"]], self._codecs[request["consumer"]]
        receive = consumer.read_next if isinstance(consumer, api.Reader) else consumer.receive
        told: list[dict[str, Any]] = []
        with anyio.move_on_after(request["seconds"]):
            while len(told) < request["count"]:
                told.append(self._told(await receive(), codec))
        return {"messages": told}

    async def receive_batch(self, request: Request) -> Mapping[str, Any]:
        codec = self._codecs[request["consumer"]]
        got = await self._things[request["consumer"]].batch_receive()
        return {"messages": [self._told(each, codec) for each in got]}

    def _told(self, message: api.Message[Any], codec: Codec) -> dict[str, Any]:
        told: dict[str, Any] = {"id": self._kept(message), "value": ""}
        if message.has_null_value():
            told["null"] = True
        else:
            told["value"] = codec.decoded(message)
        if isinstance(message, api.Message):
            at = message.message_id()
            told |= {
                "topic": message.topic_name(),
                "place": [at.ledger_id, at.entry_id, at.batch_index],
                "redeliveries": message.redelivery_count(),
                "publisher": message.producer_name(),
                "sequence": message.sequence_id(),
                "index": message.index(),
                "schema-version": int.from_bytes(message.schema_version(), "big") if message.schema_version() else None,
                "ordering-key": message.ordering_key(),
                "event-time": message.event_timestamp(),
            }
        told |= {"key": message.partition_key(), "properties": message.properties()}
        return {name: value for name, value in told.items() if name == "value" or value not in ("", None, {})}

    async def acknowledge(self, request: Request) -> None:
        consumer, message = self._things[request["consumer"]], self._ids[request["message"]]
        txn = self._things[request["transaction"]] if "transaction" in request else None
        if isinstance(consumer, api.StreamConsumer | api.NamespaceStreamConsumer):
            await consumer.acknowledge_cumulative(message, txn=txn)
        else:
            await consumer.acknowledge(message, txn=txn)

    async def acknowledge_cumulative(self, request: Request) -> None:
        await self._things[request["consumer"]].acknowledge_cumulative(self._ids[request["message"]])

    async def negative_acknowledge(self, request: Request) -> None:
        self._things[request["consumer"]].negative_acknowledge(self._ids[request["message"]])

    async def redeliver(self, request: Request) -> None:
        await self._things[request["consumer"]].redeliver_unacknowledged_messages()

    async def reconsume_later(self, request: Request) -> None:
        consumer = self._things[request["consumer"]]
        await consumer.reconsume_later(self._ids[request["message"]], request["delay"] / 1000)

    async def seek(self, request: Request) -> None:
        target = request["time"] if "time" in request else self._id(request["start"])
        await self._things[request["consumer"]].seek(target)

    async def unsubscribe(self, request: Request) -> None:
        await self._things[request["consumer"]].unsubscribe()

    async def last_message_id(self, request: Request) -> Mapping[str, Any]:
        (last,) = await self._things[request["consumer"]].get_last_message_ids()
        return {"place": [last.ledger_id, last.entry_id, last.batch_index]}

    async def has_message(self, request: Request) -> Mapping[str, Any]:
        return {"available": await self._things[request["reader"]].has_message_available()}

    async def table_view(self, request: Request) -> None:
        view = self._things[request["as"]] = Held(self._clients[request["client"]].create_table_view(request["topic"]))
        await self._tasks.start(view.live)

    async def table(self, request: Request) -> Mapping[str, Any]:
        view = self._things[request["view"]].thing
        await view.refresh()
        return {"entries": {key: value.decode() for key, value in view.items()}}

    async def partitions(self, request: Request) -> Mapping[str, Any]:
        return {"topics": await self._clients[request["client"]].get_topic_partitions(request["topic"])}

    async def checkpoint(self, request: Request) -> Mapping[str, Any]:
        data = self._things[request["consumer"]].checkpoint().serialize()
        return {"checkpoint": base64.b64encode(data).decode()}

    async def transaction(self, request: Request) -> None:
        client: Any = self._clients[request["client"]]
        self._things[request["as"]] = await (client.scalable if "scalable" in request else client).begin_transaction()

    async def commit(self, request: Request) -> None:
        await self._things[request["transaction"]].commit()

    async def abort(self, request: Request) -> None:
        await self._things[request["transaction"]].abort()


async def main() -> None:
    """Answer the requests on standard input, several at a time, until the input ends."""
    async with anyio.create_task_group() as tasks:
        adapter = Adapter(tasks)

        async def answer(request: Request) -> None:
            sys.stdout.write(json.dumps(await adapter.answer(request), ensure_ascii=False) + "\n")
            sys.stdout.flush()

        while line := await anyio.to_thread.run_sync(sys.stdin.readline):
            tasks.start_soon(answer, json.loads(line))
        tasks.cancel_scope.cancel()


if __name__ == "__main__":
    anyio.run(main, backend=sys.argv[1] if len(sys.argv) > 1 else "trio")
