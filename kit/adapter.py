"""Talk to an adapter: a program that lets the kit drive a client, by JSON objects on standard input and output.

The kit writes requests, one a line: `{"id": 7, "do": "send", "producer": "p1", "messages": [...]}`. The adapter answers
in any order, with `{"id": 7, "ok": {...}}`, `{"id": 7, "error": {"kind": "NotFound", "text": "..."}}` or
`{"id": 7, "unsupported": "the client has no transactions"}`. Handles such as `p1` are the kit's names. Message ids and
checkpoints are texts of the adapter's own, which the kit gives back unread.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, Queue
from typing import Any, Final

OPERATIONS: Final = {
    "hello": "Return client, version and operations, a list of the operations that the client has.",
    "open": "Open the client `as`, for `url`.",
    "producer": "Open the producer `as` of `client` for `topic`, with `name` and `access` where given.",
    "send": "Publish `messages` (key, value) in order, all at once. Return their ids when all are stored.",
    "flush": "Wait until the messages of `producer` are stored.",
    "last-sequence": "Return the sequence id of the last stored message of `producer`.",
    "stream": "Open the stream consumer `as` for `topic` and `subscription` from the earliest message, as `name`.",
    "queue": "Open the queue consumer `as` for `topic` and `subscription` from the earliest message.",
    "reader": "Open the checkpoint consumer `as` for `topic` from `start`: earliest, latest or a checkpoint. `group`.",
    "namespace-stream": "Open the stream consumer `as` for the topics of `namespace` with `properties`.",
    "receive": "Return messages (key, value, id) of `consumer`: `count` of them, or those of `seconds` seconds.",
    "acknowledge": "Acknowledge up to the id `message` for a stream consumer, and only this message for a queue one.",
    "negative-acknowledge": "Ask for the redelivery of `message`, an id.",
    "checkpoint": "Return the checkpoint of `consumer`, as text.",
    "transaction": "Begin the transaction `as` of `client`. `send` and `acknowledge` may name it as `transaction`.",
    "commit": "Commit `transaction`.",
    "abort": "Abort `transaction`.",
    "close": "Close `handle`: a consumer, a producer or a client.",
}
"""Every operation of the protocol, with its meaning."""

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
        self.ended = ended

    def arrived(self, line: dict[str, Any]) -> None:
        self._told.put(line)

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

    def __init__(self, command: Sequence[str], log: Path) -> None:
        """Start the adapter. Raise `AdapterFault` when the command cannot be started."""
        self._waiting: dict[int, Answer] = {}
        self._next = 0
        self._lock = threading.Lock()
        self._ended = threading.Event()
        try:
            with log.open("ab") as output:
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=output, text=True, encoding="utf-8"
                )
        except OSError as error:
            raise AdapterFault(f"{command[0]}: {error.strerror}: check --command") from None
        self._reader = threading.Thread(target=self._read, name="adapter", daemon=True)
        self._reader.start()

    def begin(self, operation: str, **fields: Any) -> Answer:
        """Send a request, and return its answer, which may still be on its way."""
        answer = Answer(operation, self._ended)
        with self._lock:
            self._next += 1
            number = self._next
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

    def _give_up(self) -> None:
        for number in list(self._waiting):
            answer = self._waiting.pop(number, None)
            if answer is not None:
                answer.arrived({"ok": None, "ended": True})

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
        self._reader.join()
        self._process.stdout.close()
