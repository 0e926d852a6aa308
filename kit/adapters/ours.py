"""The adapter of the conformance kit for `pulsarium.client`: `python -m pulsarium.kit.adapters.ours`."""

from __future__ import annotations

import base64
import json
import sys
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import anyio
import anyio.abc
import anyio.to_thread

from pulsarium import client as api
from pulsarium.broker.config.version import VERSION
from pulsarium.client import errors

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


class Held:
    """A client, which lives in a task of its own."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._closing = anyio.Event()
        self._closed = anyio.Event()

    async def live(self, *, task_status: anyio.abc.TaskStatus[api.Client]) -> None:
        try:
            async with api.connect(self._url) as client:
                task_status.started(client)
                await self._closing.wait()
        finally:
            self._closed.set()

    async def aclose(self) -> None:
        self._closing.set()
        await self._closed.wait()


class Adapter:
    """Operations of the kit's protocol on `pulsarium.client`."""

    def __init__(self, tasks: anyio.abc.TaskGroup) -> None:
        self._tasks = tasks
        self._clients: dict[str, api.Client] = {}
        self._things: dict[str, Any] = {}
        self._messages: dict[str, Any] = {}
        self._sending: defaultdict[str, anyio.Lock] = defaultdict(anyio.Lock)
        self.operations: dict[str, Operation] = {
            "open": self._open,
            "producer": self._producer,
            "send": self._send,
            "flush": self._flush,
            "last-sequence": self._last_sequence,
            "stream": self._stream,
            "namespace-stream": self._namespace_stream,
            "queue": self._queue,
            "reader": self._reader,
            "receive": self._receive,
            "acknowledge": self._acknowledge,
            "negative-acknowledge": self._negative_acknowledge,
            "checkpoint": self._checkpoint,
            "transaction": self._transaction,
            "commit": lambda request: self._things[request["transaction"]].commit(),
            "abort": lambda request: self._things[request["transaction"]].abort(),
            "close": self._close,
        }

    async def answer(self, request: Request) -> dict[str, Any]:
        number, name = request["id"], request["do"]
        if name == "hello":
            about = {"client": "Pulsarium", "version": VERSION, "operations": sorted(self.operations)}
            return {"id": number, "ok": about}
        if name not in self.operations:
            return {"id": number, "unsupported": f"no operation {name}"}
        try:
            return {"id": number, "ok": dict(await self.operations[name](request) or {})}
        except errors.PulsarError as error:
            kind = next((kind for each, kind in _KINDS if isinstance(error, each)), "Other")
            return {"id": number, "error": {"kind": kind, "text": f"{type(error).__name__}: {error}"}}

    def _topics(self, request: Request) -> Any:
        return self._clients[request["client"]].scalable

    async def _open(self, request: Request) -> None:
        held = self._things[request["as"]] = Held(request["url"])
        self._clients[request["as"]] = await self._tasks.start(held.live)

    async def _enter(self, request: Request, opened: Any) -> None:
        self._things[request["as"]] = await opened.__aenter__()

    async def _producer(self, request: Request) -> None:
        access = _ACCESS[request.get("access", "shared")]
        topics = self._topics(request)
        name = request.get("name")
        await self._enter(request, topics.create_producer(request["topic"], producer_name=name, access_mode=access))

    async def _send(self, request: Request) -> Mapping[str, Any]:
        producer = self._things[request["producer"]]
        txn = self._things[request["transaction"]] if "transaction" in request else None
        receipts = []
        async with self._sending[request["producer"]]:
            for each in request["messages"]:
                options = {"partition_key": each["key"]} if "key" in each else {}
                receipts.append(await producer.submit(each["value"].encode(), txn=txn, **options))
        return {"ids": [str(await receipt.wait()) for receipt in receipts]}

    async def _flush(self, request: Request) -> None:
        async with self._sending[request["producer"]]:  # which includes the messages of all earlier requests
            await self._things[request["producer"]].flush()

    async def _close(self, request: Request) -> None:
        async with self._sending[request["handle"]]:
            await self._things[request["handle"]].aclose()

    async def _last_sequence(self, request: Request) -> Mapping[str, Any]:
        return {"sequence": self._things[request["producer"]].last_sequence_id()}

    async def _stream(self, request: Request) -> None:
        consumer = self._topics(request).subscribe_stream(
            request["topic"],
            request["subscription"],
            consumer_name=request["name"],
            initial_position=api.InitialPosition.Earliest,
            ack_receipt_enabled=True,
        )
        await self._enter(request, consumer)

    async def _namespace_stream(self, request: Request) -> None:
        consumer = self._topics(request).subscribe_namespace(
            request["namespace"],
            request["subscription"],
            property_filters=request["properties"],
            consumer_name=request["name"],
            initial_position=api.InitialPosition.Earliest,
            ack_receipt_enabled=True,
        )
        await self._enter(request, consumer)

    async def _queue(self, request: Request) -> None:
        consumer = self._topics(request).subscribe_queue(
            request["topic"],
            request["subscription"],
            initial_position=api.InitialPosition.Earliest,
            negative_ack_redelivery_delay=0.1,
            ack_receipt_enabled=True,
        )
        await self._enter(request, consumer)

    async def _reader(self, request: Request) -> None:
        start = request["start"]
        known = {"earliest": api.Checkpoint.earliest, "latest": api.Checkpoint.latest}
        at = known[start] if start in known else api.Checkpoint.deserialize(base64.b64decode(start))
        topics, name = self._topics(request), request.get("name", "")
        group = request.get("group")
        await self._enter(
            request, topics.create_checkpoint_consumer(request["topic"], at, group=group, consumer_name=name)
        )

    async def _receive(self, request: Request) -> Mapping[str, Any]:
        consumer = self._things[request["consumer"]]
        told: list[dict[str, Any]] = []
        with anyio.move_on_after(request["seconds"]):
            while len(told) < request["count"]:
                message = await consumer.receive()
                number = str(len(self._messages))
                self._messages[number] = message
                key = message.partition_key()
                told.append({"value": message.data().decode(), "id": number, **({"key": key} if key else {})})
        return {"messages": told}

    async def _acknowledge(self, request: Request) -> None:
        consumer, message = self._things[request["consumer"]], self._messages[request["message"]]
        txn = self._things[request["transaction"]] if "transaction" in request else None
        if isinstance(consumer, api.StreamConsumer | api.NamespaceStreamConsumer):
            await consumer.acknowledge_cumulative(message, txn=txn)
        else:
            await consumer.acknowledge(message, txn=txn)

    async def _negative_acknowledge(self, request: Request) -> None:
        self._things[request["consumer"]].negative_acknowledge(self._messages[request["message"]])

    async def _checkpoint(self, request: Request) -> Mapping[str, Any]:
        data = self._things[request["consumer"]].checkpoint().serialize()
        return {"checkpoint": base64.b64encode(data).decode()}

    async def _transaction(self, request: Request) -> None:
        self._things[request["as"]] = await self._topics(request).begin_transaction()


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
    anyio.run(main)
