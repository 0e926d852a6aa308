"""Adapters in Python that answer each request in a thread."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from queue import Queue
from threading import Event
from typing import Any

from pulsarium.conformance.adapters.lines import Refusal, serve_in_threads
from pulsarium.conformance.protocol import Unsupported

SECONDS = 20.0


class Played:
    """An adapter whose operations wait for each other."""

    def __init__(self) -> None:
        self.acknowledged = Event()
        self.flushed = Event()
        self.stored: list[str] = []

    def receive(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"acknowledged": self.acknowledged.wait(SECONDS)}

    def acknowledge(self, request: Mapping[str, Any]) -> None:
        self.acknowledged.set()

    def send(self, request: Mapping[str, Any]) -> None:
        if request["value"] == "late":
            self.flushed.wait(SECONDS)
        self.stored.append(request["value"])

    def flush(self, request: Mapping[str, Any]) -> None:
        self.flushed.set()

    def close(self, request: Mapping[str, Any]) -> None:
        raise {"refused": Refusal("Timeout", "late"), "lacking": Unsupported("no such call"), "": KeyError("k")}[
            request["handle"]
        ]


class Written(io.StringIO):
    """Output that hands over each answer."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: Queue[dict[str, Any]] = Queue()

    def write(self, text: str) -> int:
        self.answers.put(json.loads(text))
        return len(text)


def answers(adapter: Played, *requests: Mapping[str, Any]) -> dict[int, dict[str, Any]]:
    """Return the answers to requests, which are numbered from 0."""
    sink = Written()
    found: dict[int, dict[str, Any]] = {}

    def lines() -> Iterator[str]:
        for number, each in enumerate(requests):
            yield json.dumps({"id": number, **each})
        while len(found) < len(requests):
            answer = sink.answers.get(timeout=SECONDS)
            found[answer["id"]] = answer

    serve_in_threads(adapter, {"client": "played"}, lambda error: "Interrupted", lines(), sink)
    return found


def test_a_pending_receive_lets_its_consumer_acknowledge() -> None:
    receive, acknowledge = {"do": "receive", "consumer": "c"}, {"do": "acknowledge", "consumer": "c"}
    assert answers(Played(), receive, acknowledge)[0]["ok"] == {"acknowledged": True}


def test_requests_for_a_handle_keep_their_order_while_others_go_on() -> None:
    adapter = Played()
    first, second = ({"do": "send", "producer": "p", "value": value} for value in ("late", "soon"))
    answers(adapter, first, second, {"do": "flush", "producer": "other"})
    assert adapter.stored == ["late", "soon"]


def test_errors_have_their_kinds() -> None:
    told = answers(Played(), *({"do": "close", "handle": handle} for handle in ("refused", "lacking", "")))
    assert [told[0]["error"]["kind"], told[2]["error"]["kind"]] == ["Timeout", "Interrupted"]
    assert told[1]["unsupported"] == "no such call"


def test_hello_names_the_public_methods() -> None:
    told = answers(Played(), {"do": "hello"})
    assert told[0]["ok"]["operations"] == ["acknowledge", "close", "flush", "receive", "send"]
