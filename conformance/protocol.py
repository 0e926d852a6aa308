"""Talk to an adapter: a program that lets the kit drive a client, by JSON objects on standard input and output.

The kit writes requests, one a line: `{"id": 7, "do": "send", "producer": "p1", "messages": [...]}`. The adapter answers
in any order, with `{"id": 7, "ok": {...}}`, `{"id": 7, "error": {"kind": "NotFound", "text": "..."}}` or
`{"id": 7, "unsupported": "the client has no transactions"}`. Handles such as `p1` are the kit's names. Message ids and
checkpoints are texts of the adapter's own, which the kit gives back unread.

The first request is `hello`. An adapter that speaks this version answers

    {"protocol": 2, "client": "Pulsar-Go", "version": "0.19.0", "topics": ["classic"],
     "operations": ["open", "close", "producer", "send", ...],
     "lacks": {"consumer.ack-timeout": "no such option", "send.sequence": "the client chooses sequence ids"}}

A client of the WebSocket API adds `"url": "ws"`, and gets ws:// URLs to open. `topics` names the kinds that the client
knows: classic ones, scalable ones (topic://), or both. `operations` are those that it has. `lacks` has a reason for
each operation that it does not have, and for each option, named with a dot. A scenario that asks for something else is
unsupported, with the reason. Options that are not in `lacks` must work. A client that knows proposals (PIPs) before a
release of Pulsar has them adds their numbers, as in `"proposals": [491]`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from queue import Empty, Queue
from typing import Any, Final

PROTOCOL: Final = 2
"""Version of the adapter's protocol."""


@dataclass(frozen=True)
class Operation:
    """An operation of the protocol. `options` are fields that a client may lack, with their meaning."""

    about: str
    options: Mapping[str, str] = field(default_factory=dict)


_MESSAGE: Final = {
    "ordering-key": "the ordering key",
    "properties": "an object of texts",
    "event-time": "milliseconds of the epoch",
    "null": "true for a message without a value (a tombstone)",
}
_SCHEMA: Final = {
    "schema": "text, json or avro. Records have the fields name (text) and age (integer); values are JSON",
}
_READS: Final = {
    **_SCHEMA,
    "compacted": "true to read the compacted topic",
    "queue": "size of the receiver queue",
    "decrypt": "file of a private RSA key (PEM)",
    "crypto-failure": "fail, discard or consume",
}

OPERATIONS: Final[Mapping[str, Operation]] = {
    "hello": Operation("Return protocol, client, version, topics, operations and lacks."),
    "open": Operation(
        "Open the client `as` for `url`: pulsar://, pulsar+ssl://, http://, or ws:// for clients of the WebSocket API.",
        {
            "http": "a URL of http://",
            "reconnect": "producers and consumers go on after their connection ended",
            "token": "a JSON web token",
            "trust": "file of the trusted certificates (PEM)",
        },
    ),
    "close": Operation("Close `handle`: a consumer, a reader, a table view, a producer or a client."),
    "producer": Operation(
        "Open the producer `as` of `client` for `topic`. Without `batch` each message is an entry.",
        {
            "name": "name of the producer",
            "access": "shared, exclusive, exclusive-with-fencing or wait-for-exclusive",
            "batch": "number of messages in a batch; `send` ends the last one",
            "chunk": "true to cut large messages",
            "compression": "LZ4, ZLIB, ZSTD or SNAPPY",
            "encrypt": "object of name (of the key) and public (file of a public RSA key, PEM)",
            **_SCHEMA,
        },
    ),
    "send": Operation(
        "Publish `messages` (objects of value and key) in order, all at once. Return `ids` when all are stored.",
        {
            **_MESSAGE,
            "delay": "milliseconds until the delivery",
            "sequence": "the sequence id",
            "transaction": "handle of a transaction",
        },
    ),
    "flush": Operation("Wait until the messages of `producer` are stored."),
    "last-sequence": Operation("Return the `sequence` id of the last stored message of `producer`."),
    "consumer": Operation(
        "Open the consumer `as` of `client` for the list `topics` and `subscription`, with `type`: Exclusive, Shared,"
        " Failover or Key_Shared. `start` is earliest or latest.",
        {
            "pattern": "expression for names of topics, in place of `topics`",
            "several": "`topics` has more than one name",
            "name": "name of the consumer",
            **_READS,
            "nack-delay": "milliseconds until a negatively acknowledged message is asked for; 100 when it is left out",
            "ack-timeout": "milliseconds after which an unacknowledged message is asked for",
            "dead-letter": "object of max (deliveries) and topic",
            "retry": "true to consume from the retry letter topic too",
            "batch-index": "true to acknowledge single messages of a batch",
            "receipt": "true for acknowledgements that the broker confirms",
            "priority": "priority level",
            "hash-ranges": "pairs of ends: the hashes whose keys a Key_Shared consumer gets (KeySharedMode Sticky)",
            "batch-receive": "object of count and seconds: the limits of `receive-batch`",
        },
    ),
    "reader": Operation(
        "Open the reader `as` of `client` for `topic`. `start` is earliest, latest or a message id.",
        {**_READS, "inclusive": "true to begin with the message `start` itself"},
    ),
    "receive": Operation(
        "Return `messages` of `consumer` (or reader): `count` of them, or those of `seconds` seconds. Each has value"
        " and id, and what else it has: key, properties, event-time, null.",
        {
            "topic": "name of the message's topic or partition",
            "redeliveries": "redelivery count",
            "ordering-key": "the ordering key",
            "place": "list of ledger, entry and batch index (-1 outside of batches)",
            "index": "the broker's index of the message (PIP-70)",
            "publisher": "name of the producer",
            "sequence": "sequence id",
            "schema-version": "schema version as a number",
        },
    ),
    "receive-batch": Operation("Return `messages` of `consumer` at once, within the limits of its batch-receive."),
    "acknowledge": Operation(
        "Acknowledge the id `message`. A stream consumer acknowledges up to it.",
        {"transaction": "handle of a transaction"},
    ),
    "acknowledge-cumulative": Operation("Acknowledge everything up to the id `message`."),
    "negative-acknowledge": Operation("Ask for the redelivery of `message`, an id."),
    "redeliver": Operation("Ask for the redelivery of all unacknowledged messages of `consumer`."),
    "reconsume-later": Operation("Publish `message` to the retry letter topic, to come again after `delay` ms."),
    "seek": Operation(
        "Move `consumer` to `start`: earliest, latest or a message id.", {"time": "milliseconds of the epoch"}
    ),
    "unsubscribe": Operation("Delete the subscription of `consumer`."),
    "last-message-id": Operation("Return the `place` of the last message, of `consumer` or reader."),
    "has-message": Operation("Return whether `reader` has a message `available`."),
    "table-view": Operation("Open the table view `as` of `client` for `topic`."),
    "table": Operation("Return `entries`, an object of the newest values by key, of `view`."),
    "partitions": Operation("Return `topics`, the names of the partitions of `topic`."),
    "transaction": Operation(
        "Begin the transaction `as` of `client`.", {"scalable": "true for a transaction of scalable topics"}
    ),
    "commit": Operation("Commit `transaction`."),
    "abort": Operation("Abort `transaction`."),
    "stream": Operation("Open the stream consumer `as` for `topic` and `subscription` from the earliest, as `name`."),
    "queue": Operation("Open the queue consumer `as` for `topic` and `subscription` from the earliest message."),
    "checkpoint-consumer": Operation(
        "Open the checkpoint consumer `as` for `topic` from `start`: earliest, latest or a checkpoint. `group`."
    ),
    "namespace-stream": Operation("Open the stream consumer `as` for the topics of `namespace` with `properties`."),
    "checkpoint": Operation("Return the `checkpoint` of `consumer`, as text."),
}
"""Every operation of the protocol."""

OPTIONS: Final = frozenset(f"{name}.{option}" for name, each in OPERATIONS.items() for option in each.options)
"""Every option, named with its operation."""

KINDS: Final = (
    *("NotFound", "Authentication", "Authorization", "Timeout", "AlreadyClosed", "ProducerBusy", "Fenced"),
    *("ConsumerBusy", "IncompatibleSchema", "TopicTerminated", "Connect", "ProducerQueueFull", "MemoryBufferFull"),
    *("TransactionConflict", "Crypto", "InvalidConfiguration", "InvalidServiceURL", "Interrupted", "Other"),
)
"""Kinds of errors: the categories of the specification's error model, and Other for a generic failure."""


class Unsupported(Exception):
    """The client has no such operation."""


class ClientError(Exception):
    """The client answered an operation with an error of the kind `kind`."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind
        self.text = text


class AdapterFault(Exception):
    """The adapter ended, did not answer, or broke the kit's own protocol."""


class Answer:
    """An answer that may still be on its way."""

    def __init__(self, operation: str, ended: threading.Event) -> None:
        self._operation = operation
        self._told: Queue[dict[str, Any]] = Queue(1)
        self._there = threading.Event()
        self.ended = ended

    def arrived(self, line: dict[str, Any]) -> None:
        self._told.put(line)
        self._there.set()

    def comes_within(self, seconds: float) -> bool:
        """Wait, and return whether the answer has arrived."""
        return self._there.wait(seconds)

    def wait(self, seconds: float) -> dict[str, Any]:
        """Return the result. Raise `ClientError`, `Unsupported` or `AdapterFault`."""
        try:
            line = self._told.get(timeout=seconds)
        except Empty:
            raise AdapterFault(f"{self._operation} got no answer in {seconds:g} s") from None
        if "unsupported" in line:
            raise Unsupported(str(line["unsupported"]))
        if "error" in line:
            error = line["error"]
            if not isinstance(error, dict) or error.get("kind") not in KINDS:
                raise AdapterFault(f"{self._operation} was answered with an unknown kind of error: {error!r}")
            raise ClientError(error["kind"], str(error.get("text", "")))
        if not isinstance(line.get("ok"), dict):
            raise AdapterFault(f"{self._operation} was answered without ok, error or unsupported: {line!r}")
        return dict(line["ok"])


class Adapter:
    """A running adapter. Its standard error goes to the file `log`."""

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> None:
        """Start the adapter, with more environment variables. Raise `AdapterFault` when it cannot be started."""
        self._waiting: dict[int, Answer] = {}
        self._numbers = count(1)
        self.handles = count(1)
        """Numbers of handles, which the scenarios of an adapter share."""
        self._lock = threading.Lock()
        self._ended = threading.Event()
        try:
            with log.open("ab") as output:
                self._process = subprocess.Popen(
                    command,
                    env={**os.environ, **(environment or {})},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=output,
                    text=True,
                    encoding="utf-8",
                    start_new_session=True,
                )
        except OSError as error:
            raise AdapterFault(f"{command[0]}: {error.strerror}: check --command") from None
        self._reader = threading.Thread(target=self._read, name="adapter", daemon=True)
        self._reader.start()

    def begin(self, operation: str, **fields: Any) -> Answer:
        """Send a request, and return its answer, which may still be on its way."""
        answer = Answer(operation, self._ended)
        with self._lock:
            number = next(self._numbers)
            self._waiting[number] = answer
        line = json.dumps({"id": number, "do": operation, **fields}, ensure_ascii=False)
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except (OSError, ValueError):
            raise AdapterFault(f"the adapter ended before {operation}") from None
        if self._ended.is_set():
            self._give_up()
        return answer

    def _read(self) -> None:
        assert self._process.stdout is not None
        for text in self._process.stdout:
            try:
                line = json.loads(text)
                answer = self._waiting.pop(line["id"], None)
            except (ValueError, TypeError, KeyError):
                continue  # a client's library may print to standard output
            if answer is not None:
                answer.arrived(line)
        self._ended.set()
        self._give_up()

    @property
    def has_ended(self) -> bool:
        return self._ended.is_set()

    def _give_up(self) -> None:
        for number in list(self._waiting):
            answer = self._waiting.pop(number, None)
            if answer is not None:
                answer.arrived({"ok": None, "ended": True})

    def kill(self) -> None:
        """End the adapter at once. Its requests are answered with `AdapterFault`."""
        self._process.kill()

    def stop(self, seconds: float = 5.0) -> None:
        """Close the adapter's input, and kill the adapter after `seconds`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(OSError):  # the adapter may have ended
            self._process.stdin.close()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        with suppress(ProcessLookupError):  # what the adapter started, such as the program of `go run`
            os.killpg(self._process.pid, signal.SIGKILL)
        self._reader.join()
        self._process.stdout.close()


@dataclass(frozen=True)
class Client:
    """A client by its adapter's answer to hello: what it can do, and why it lacks operations and options."""

    name: str
    version: str
    operations: frozenset[str]
    topics: frozenset[str] = frozenset({"classic"})
    lacks: Mapping[str, str] = field(default_factory=dict)
    is_web: bool = False
    """True for a client of the WebSocket API."""
    proposals: frozenset[int] = frozenset()
    """Numbers of the proposals (PIPs) that the client knows before a release of Pulsar has them."""


def greet(adapter: Adapter, seconds: float = 60.0) -> Client:
    """Return what an adapter says of itself. Raise `AdapterFault`."""
    try:
        told = adapter.begin("hello").wait(seconds)
    except (ClientError, Unsupported) as error:
        raise AdapterFault(f"hello was answered with {error}") from None
    if told.get("protocol") != PROTOCOL:
        raise AdapterFault(f"the adapter speaks version {told.get('protocol')!r} of the protocol, and not {PROTOCOL}")
    operations, topics, lacks = told.get("operations"), told.get("topics"), told.get("lacks", {})
    if not isinstance(operations, list) or any(each not in [*OPERATIONS] for each in operations):
        raise AdapterFault(f"hello names unknown operations: {operations!r}")
    if not isinstance(topics, list) or any(each not in ("classic", "scalable") for each in topics):
        raise AdapterFault(f"hello names unknown kinds of topics: {topics!r}")
    if not isinstance(lacks, dict):
        raise AdapterFault(f"hello has no object of reasons in lacks: {lacks!r}")
    if unknown := sorted(lacks.keys() - OPERATIONS.keys() - OPTIONS):
        raise AdapterFault(f"hello lacks unknown operations or options: {', '.join(unknown)}")
    url = told.get("url", "pulsar")
    if url not in ("pulsar", "ws"):
        raise AdapterFault(f"hello asks for unknown URLs: {url!r}")
    proposals = told.get("proposals", [])
    if not isinstance(proposals, list) or any(type(each) is not int for each in proposals):
        raise AdapterFault(f"hello has no list of numbers in proposals: {proposals!r}")
    name, version = str(told.get("client", "?")), str(told.get("version", ""))
    return Client(name, version, frozenset(operations), frozenset(topics), lacks, url == "ws", frozenset(proposals))
