"""The adapter of the raw client: `python -m tests.conformance.raw --bug misroute`."""

from __future__ import annotations

import argparse
import uuid
from collections.abc import Mapping
from typing import Any

from pulsarium.conformance.adapters.lines import Refusal, serve

from . import BUGS
from .consuming import GroupReader, QueueConsumer, Reader, StreamConsumer
from .producing import Producer
from .topic import Client
from .wire import Lost

Request = Mapping[str, Any]


class Adapter:
    def __init__(self, bugs: frozenset[str]) -> None:
        self._bugs = bugs
        self._things: dict[str, Any] = {}
        self.operations = {
            "open": self._keep(lambda r: Client(r["url"], bugs)),
            "producer": self._keep(self._producer),
            "queue": self._keep(lambda r: QueueConsumer(self._client(r), r["topic"], r["subscription"])),
            "stream": self._keep(self._stream),
            "checkpoint-consumer": self._keep(self._reader),
            "send": self._tell(lambda r: {"ids": self._things[r["producer"]].send(r["messages"])}),
            "flush": self._tell(lambda r: {}),
            "last-sequence": self._tell(lambda r: {"sequence": self._things[r["producer"]].last_sequence}),
            "receive": self._tell(
                lambda r: {"messages": self._things[r["consumer"]].receive(r["count"], r["seconds"])}
            ),
            "acknowledge": self._tell(lambda r: self._things[r["consumer"]].acknowledge(r["message"])),
            "negative-acknowledge": self._tell(lambda r: self._things[r["consumer"]].nack(r["message"])),
            "checkpoint": self._tell(lambda r: {"checkpoint": self._things[r["consumer"]].checkpoint()}),
            "close": self._tell(lambda r: self._things[r["handle"]].close()),
        }

    def _client(self, request: Request) -> Client:
        client: Client = self._things[request["client"]]
        if client.closed:
            raise Refusal("AlreadyClosed", "the client is closed")
        return client

    def _producer(self, request: Request) -> Producer:
        name = request.get("name") or f"raw-{uuid.uuid4().hex[:8]}"
        return Producer(self._client(request), request["topic"], name, request.get("access", "shared"))

    def _stream(self, request: Request) -> StreamConsumer:
        return StreamConsumer(self._client(request), request["topic"], request["subscription"], request["name"])

    def _reader(self, request: Request) -> Reader | GroupReader:
        client = self._client(request)
        if "group" in request:
            return GroupReader(client, request["topic"], request["start"], request["group"], request["name"])
        return Reader(client, request["topic"], request["start"])

    def _keep(self, make: Any) -> Any:
        def keep(request: Request) -> Any:
            self._things[request["as"]] = make(request)

        return self._tell(keep)

    def _tell(self, do: Any) -> Any:
        def tell(request: Request) -> Mapping[str, Any]:
            try:
                return do(request) or {}
            except Lost as lost:
                raise Refusal("Connect", str(lost)) from None
            except Refusal as refusal:
                if "generic-errors" in self._bugs:
                    raise Refusal("Other", str(refusal)) from None
                raise

        return tell


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bug", action="append", default=[], choices=BUGS)
    adapter = Adapter(frozenset(parser.parse_args().bug))
    serve(adapter.operations, {"client": "Pulsar-Raw", "version": "1.0", "topics": ["scalable"]})


main()
