"""Test an adapter itself: try each operation once, with its smallest request, and say which ones answer as they must.

A scenario judges a client, and takes its adapter for right. So the author of an adapter begins here.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from pulsarium.conformance.material import Material
from pulsarium.conformance.protocol import Adapter, AdapterFault, Client, ClientError, Unsupported, greet
from pulsarium.conformance.run import spec_of
from pulsarium.conformance.scenario import Failed, Stage
from pulsarium.conformance.side import SideFault, Sides, Unavailable, our_brokers

SECONDS: Final = 30.0  # for an answer
_WAITING: Final = 10.0  # seconds of a receive
_END_SECONDS: Final = 10.0
_VALUE: Final = "selftest"  # of each message
_NOBODY: Final = "nobody"  # a handle of nothing
_HANDLES: Final = ("handle", "producer", "consumer", "reader", "view", "client", "transaction")
"""Fields of a request that name what it works on. The first of them counts."""
_SCALABLE: Final = ("queue", "stream", "checkpoint-consumer")
"""Consumers of scalable topics."""
_TYPES: Final = {"text": str, "integer": int, "true or false": bool, "object": dict}
_PLACE: Final = ["integer", "integer", "integer"]
_MESSAGE: Final = {
    "value": _VALUE,
    "id": "text",
    **dict.fromkeys(("key?", "ordering-key?", "topic?", "publisher?"), "text"),
    **dict.fromkeys(("event-time?", "redeliveries?", "index?", "sequence?", "schema-version?"), "integer"),
    "properties?": "object",
    "null?": "true or false",
    "place?": _PLACE,
}
_NAMES: Final = ["text", "..."]
_HELLO: Final = {
    "protocol": "integer",
    "client": "text",
    "version": "text",
    "topics": _NAMES,
    "operations": _NAMES,
    "lacks?": "object",
    "proposals?": ["integer", "..."],
}


class Verdict(StrEnum):
    """The verdict on an adapter in one operation."""

    ANSWERS = "answers"
    WRONG = "does not answer as it must"
    NONE = "the client has none"
    UNTRIED = "not tried"
    """The operation needs another one, or an option, that failed or that the client does not have."""


@dataclass(frozen=True)
class Check:
    """Verdict on an operation, or on a duty of the whole adapter such as `end of input`. ANSWERS has no reason."""

    operation: str
    verdict: Verdict
    reason: str = ""

    @property
    def is_bad(self) -> bool:
        return self.verdict is Verdict.WRONG


def misfit(found: Any, shape: Any, at: str = "ok") -> str:
    """Return what a value of JSON should be, or "" when it has the shape.

    A shape is a name of `_TYPES`, a value, or a list or an object of shapes. A list that ends with "..." has any number
    of values. A field whose name ends with "?" may be left out.
    """
    parts: Iterator[str]
    match shape, found:
        case [each, "..."], list():
            parts = (misfit(value, each, f"{at}[{index}]") for index, value in enumerate(found))
        case list(), list() if len(shape) == len(found):
            parts = (misfit(*both, f"{at}[{index}]") for index, both in enumerate(zip(found, shape, strict=True)))
        case dict(), dict():
            values = ((name, found.get(name.rstrip("?"))) for name in shape)
            parts = (
                misfit(value, shape[name], f"{at}.{name.rstrip('?')}")
                for name, value in values
                if value is not None or not name.endswith("?")
            )
        case _:
            kind = _TYPES.get(shape) if isinstance(shape, str) else None
            fits = found == shape if kind is None else type(found) is kind
            return "" if fits else f"{at} must be {_short(shape)}"
    return next(filter(None, parts), "")


class _Unready(Exception):
    """A request failed that an operation needs before its own."""


class Bench(Stage):
    """A stage that opens what the smallest request of an operation needs, and returns fields of the request."""

    def opening(self, **fields: Any) -> dict[str, Any]:
        """Return the fields of a request that opens something of the client."""
        return {"as": f"tried-{next(self._adapter.handles)}", "client": self.client, **fields}

    def new_topic(self) -> str:
        return self.topic() if "classic" in self._client.topics else self.scalable_topic()

    def sender(self) -> dict[str, Any]:
        return {"producer": self.producer(self.new_topic())}

    def beginning(self) -> dict[str, Any]:
        return self.opening(**({} if "classic" in self._client.topics else {"scalable": True}))

    def begun(self) -> dict[str, Any]:
        fields = self.beginning()
        self.ask("transaction", **fields)
        return {"transaction": fields["as"]}

    def empty(self, *kinds: str, **options: Any) -> tuple[str, str]:
        """Open a consumer of the first of these kinds that the client has. Return its handle, and its new topic."""
        kind = next((each for each in kinds if each in self._client.operations), kinds[0])
        topic = self.scalable_topic() if kind in _SCALABLE else self.topic()
        opener: Callable[..., str] = getattr(self, kind.replace("-", "_"))
        return opener(topic, **options), topic

    def filled(self, *kinds: str, **options: Any) -> dict[str, Any]:
        """Open a consumer, and send a message to its topic."""
        consumer, topic = self.empty(*kinds, **options)
        self.send(self.producer(topic), [_VALUE])
        return {"consumer": consumer}

    def delivered(self, *kinds: str, **options: Any) -> dict[str, Any]:
        """Open a consumer, and receive a message."""
        fields = self.filled(*kinds, **options)
        return {**fields, "message": self.receive_all(fields["consumer"], [_VALUE])[0]["id"]}

    def moved(self) -> dict[str, Any]:
        """Open a consumer, and return the fields of a seek to a message. Not every client can seek to the earliest."""
        fields = self.delivered("consumer", "reader")
        return {"consumer": fields["consumer"], "start": fields["message"]}

    def view(self) -> dict[str, Any]:
        topic = self.topic()
        self.send(self.producer(topic), [("k", _VALUE)])
        return {"view": self.opened("table-view", client=self.client, topic=topic)}


@dataclass(frozen=True)
class Trial:
    """The smallest request of an operation: a function that returns its fields, and the shape of `ok`."""

    fields: Callable[[Bench], dict[str, Any]]
    ok: Mapping[str, Any] = field(default_factory=dict)


_OF_S: Final = {"subscription": "s"}
_NAMED: Final = {**_OF_S, "name": "c1"}
_RECEIVE: Final = {"count": 1, "seconds": _WAITING}
_RECEIVED: Final = {"messages": [_MESSAGE]}
TRIALS: Final[Mapping[str, Trial]] = {
    "open": Trial(lambda bench: {"as": "tried", "url": bench.urls[0]}),
    "close": Trial(lambda bench: {"handle": bench.connect()}),
    "producer": Trial(lambda bench: bench.opening(topic=bench.new_topic())),
    "send": Trial(lambda bench: {**bench.sender(), "messages": [{"value": _VALUE}]}, {"ids": ["text"]}),
    "flush": Trial(Bench.sender),
    "last-sequence": Trial(Bench.sender, {"sequence": "integer"}),
    "consumer": Trial(lambda bench: bench.opening(topics=[bench.topic()], type="Exclusive", start="earliest", **_OF_S)),
    "reader": Trial(lambda bench: bench.opening(topic=bench.topic(), start="earliest")),
    "receive": Trial(lambda bench: {**bench.filled("consumer", "reader", *_SCALABLE), **_RECEIVE}, _RECEIVED),
    "receive-batch": Trial(lambda bench: bench.filled("consumer", batch_receive=_RECEIVE), _RECEIVED),
    "acknowledge": Trial(lambda bench: bench.delivered("consumer", "queue", "stream")),
    "acknowledge-cumulative": Trial(lambda bench: bench.delivered("consumer", "stream")),
    "negative-acknowledge": Trial(lambda bench: bench.delivered("consumer", "queue")),
    "redeliver": Trial(lambda bench: bench.filled("consumer", "queue")),
    "reconsume-later": Trial(
        lambda bench: {**bench.delivered("consumer", kind="Shared", dead_letter={"max": 5}, retry=True), "delay": 1000}
    ),
    "seek": Trial(Bench.moved),
    "unsubscribe": Trial(lambda bench: bench.filled("consumer")),
    "last-message-id": Trial(lambda bench: bench.filled("consumer", "reader"), {"place": _PLACE}),
    "has-message": Trial(lambda bench: {"reader": bench.filled("reader")["consumer"]}, {"available": "true or false"}),
    "table-view": Trial(lambda bench: bench.opening(topic=bench.topic())),
    "table": Trial(Bench.view, {"entries": {"k": _VALUE}}),
    "partitions": Trial(lambda bench: {"client": bench.client, "topic": bench.topic(2)}, {"topics": ["text", "text"]}),
    "transaction": Trial(Bench.beginning),
    "commit": Trial(Bench.begun),
    "abort": Trial(Bench.begun),
    "stream": Trial(lambda bench: bench.opening(topic=bench.scalable_topic(), **_NAMED)),
    "queue": Trial(lambda bench: bench.opening(topic=bench.scalable_topic(), **_OF_S)),
    "checkpoint-consumer": Trial(lambda bench: bench.opening(topic=bench.scalable_topic(), start="earliest")),
    "namespace-stream": Trial(
        lambda bench: bench.opening(namespace=bench.namespace, properties={"team": "x"}, **_NAMED)
    ),
    "checkpoint": Trial(lambda bench: {"consumer": bench.empty("checkpoint-consumer")[0]}, {"checkpoint": "text"}),
}
"""A trial of each operation but hello."""


def check(command: Sequence[str], folder: Path, profile: str = "pulsar-5.0") -> Iterator[Check]:
    """Try an adapter against brokers of this process, and yield each check as it ends.

    The adapter's standard error goes to adapter.log in `folder`. When hello is wrong, its check is the only one.
    """
    with our_brokers(profile, number=1) as sides:
        yield from checks(command, sides, folder, profile)


def checks(command: Sequence[str], sides: Sides, folder: Path, profile: str = "pulsar-5.0") -> Iterator[Check]:
    """Try an adapter against given brokers."""
    tester = _Tester(command, sides, folder, profile)
    try:
        yield from tester.checks()
    finally:
        tester.stop()


class _Tester:
    """Tests an adapter. After a request without an answer, a new process of the adapter goes on."""

    def __init__(self, command: Sequence[str], sides: Sides, folder: Path, profile: str) -> None:
        self._command = command
        self._side = sides.side(None)
        self._folder = folder
        self._spec = spec_of(profile)
        self._running: Adapter | None = None
        self._bench: Bench | None = None
        self._client = Client("", "", frozenset())
        self._found_bad = False

    def checks(self) -> Iterator[Check]:
        hello = self._judged("hello", self._greet)
        yield hello
        if hello.is_bad:
            return
        for name, trial in TRIALS.items():
            if name in self._client.operations:
                yield self._judged(name, self._try, name, trial)
            else:
                absent = self._judged(name, self._refuse, name)
                reason = self._client.lacks.get(name) or "hello does not name it"
                yield absent if absent.is_bad else Check(name, Verdict.NONE, reason)
        yield self._judged("unknown operations", self._refuse, "operation-of-tomorrow")
        yield self._judged("requests during receive", self._overtake)
        yield self._judged("end of input", self._end)

    def stop(self) -> None:
        if self._running is not None:
            self._running.stop(1)
        self._running = self._bench = None

    def _judged(self, name: str, judge: Callable[..., None], *given: Any) -> Check:
        try:
            judge(*given)
        except (Unsupported, Unavailable) as lack:
            return Check(name, Verdict.UNTRIED, str(lack))
        except _Unready as error:
            verdict = Verdict.UNTRIED if self._found_bad else Verdict.WRONG
            return Check(name, verdict, f"a request that it needs failed: {error}")
        except AdapterFault as fault:
            check = Check(name, Verdict.WRONG, self._stopped(fault))
        except (ClientError, Failed, SideFault) as failure:
            check = Check(name, Verdict.WRONG, str(failure))
        else:
            return Check(name, Verdict.ANSWERS)
        self._found_bad = True
        return check

    @contextmanager
    def _preparing(self, *, with_client: bool = True) -> Iterator[Bench]:
        """Prepare a request. Raise `_Unready` when another request fails."""
        try:
            bench = self._ready()
            if with_client and not bench.client:
                bench.client = bench.connect()
            yield bench
        except AdapterFault as fault:
            raise _Unready(self._stopped(fault)) from None
        except (ClientError, Failed, SideFault, LookupError, TypeError, ValueError) as error:
            raise _Unready(f"{type(error).__name__}: {error}") from None

    def _adapter(self) -> Adapter:
        """Return the running adapter, or start another process. Raise `AdapterFault`."""
        if self._running is None or self._running.has_ended:
            self.stop()
            self._running = Adapter(self._command, self._folder / "adapter.log")
        return self._running

    def _ready(self) -> Bench:
        """Return the bench of the running adapter, which has answered hello. Raise `AdapterFault`."""
        adapter = self._adapter()
        if self._bench is None:
            self._client = greet(adapter, SECONDS)
            namespace, material = f"public/conformance-{uuid.uuid4().hex[:10]}", Material(self._folder)
            self._side.namespace(namespace)
            self._bench = Bench(adapter, self._client, self._side, self._spec, namespace, material, secured=False)
        return self._bench

    def _ask(self, name: str, fields: Mapping[str, Any]) -> tuple[str, Any]:
        """Let the adapter do an operation. Return a text of request and answer, and the result or the exception."""
        adapter, sent = self._adapter(), f"sent {_short({'do': name, **fields})}"
        try:
            answer = adapter.begin(name, **fields)
            if not answer.comes_within(SECONDS):
                self.stop()
                raise Failed(f"{sent}, got no answer in {SECONDS:g} s: answer in one line, with the id of the request")
            told = answer.wait(0)
        except Unsupported as lack:
            return f"{sent}, got unsupported {lack}", lack
        except ClientError as error:
            return f"{sent}, got the error {error}", error
        except AdapterFault as fault:
            raise Failed(f"{sent}: {self._stopped(fault)}") from None
        return f"{sent}, got ok {_short(told)}", told

    def _stopped(self, fault: AdapterFault) -> str:
        """Stop an adapter after a fault, and return the reason. Of a process that ended, tell the last words."""
        has_ended = self._running is not None and self._running.has_ended
        self.stop()
        if not has_ended:
            return f"{fault}: see docs/adapters.md"
        last = (self._folder / "adapter.log").read_text("utf-8", "replace").strip().rpartition("\n")[2]
        return f"the process ended, and its standard error with {last!r}: answer with an error instead"

    def _greet(self) -> None:
        self._answer("hello", {}, _HELLO)
        self._ready()
        if not self._client.topics:
            raise Failed("hello names no topics: name classic, scalable or both")
        if both := sorted(self._client.operations & self._client.lacks.keys()):
            raise Failed(f"operations and lacks of hello both name {', '.join(both)}: take them out of one")

    def _try(self, name: str, trial: Trial) -> None:
        with self._preparing(with_client=name != "open") as bench:
            fields = trial.fields(bench)
        self._answer(name, fields, trial.ok)
        handle = next((each for each in _HANDLES if each in fields), None)
        if handle is not None:
            exchange, told = self._ask(name, {**fields, handle: _NOBODY})
            if not isinstance(told, ClientError):
                raise Failed(
                    f"{exchange}: nothing is open as {_NOBODY}, so answer with an error, such as AlreadyClosed"
                )

    def _answer(self, name: str, fields: Mapping[str, Any], ok: Mapping[str, Any]) -> None:
        exchange, told = self._ask(name, fields)
        if isinstance(told, Unsupported):
            raise Failed(f"{exchange}: do it, or leave {name} out of the operations of hello")
        if isinstance(told, ClientError):
            raise Failed(f"{exchange}: this must succeed, unless the client itself has a bug")
        if wanted := misfit(told, ok):
            raise Failed(f"{exchange}: {wanted}")

    def _refuse(self, name: str) -> None:
        self._ready()
        exchange, told = self._ask(name, {})
        if not isinstance(told, Unsupported):
            raise Failed(f"{exchange}: answer with unsupported, because hello does not name {name}")

    def _overtake(self) -> None:
        """Send a message while a receive waits for it."""
        with self._preparing() as bench:
            bench.need("receive")
            bench.need("send")
            consumer, topic = bench.empty("consumer", "reader", *_SCALABLE)
            fields = {"producer": bench.producer(topic), "messages": [{"value": _VALUE}]}
            receive = bench.begin("receive", consumer=consumer, **_RECEIVE)
        self._answer("send", fields, TRIALS["send"].ok)
        if not receive.wait(SECONDS).get("messages"):
            raise Failed(
                "sent receive, and then send with the message that receive waits for, got no message: do each request"
                " in a thread or task of its own, so that a receive holds up no other one"
            )

    def _end(self) -> None:
        adapter, begun = self._adapter(), time.monotonic()
        adapter.stop(_END_SECONDS)
        if time.monotonic() - begun >= _END_SECONDS:
            raise Failed(
                f"closed the input, and the process went on for {_END_SECONDS:g} s: end it when the input ends"
            )


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:297]}..."
