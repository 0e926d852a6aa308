"""Declare scenarios, and the stage on which a scenario drives a client and its brokers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pulsarium.kit.adapter import Adapter, Answer, ClientError, Unsupported
from pulsarium.kit.history import History, read
from pulsarium.kit.side import Side
from pulsarium.proto.routing import m1_segment_hash, segment_hash

SECONDS = 30.0
QUIET_SECONDS = 1.0
PATIENCE = 12.0  # seconds for messages that are due

Message = Mapping[str, Any]


class Failed(Exception):
    """The client did not do what the specification demands."""


@dataclass(frozen=True)
class Scenario:
    """A test of one sentence of the specification.

    requirement: number in the specification's conformance checklist. sentence, source: what is tested, and where it
    stands. needs: operations of the adapter. contradiction: a text that says something else, or "". may_break: rules of
    the linter that the scenario provokes.
    """

    name: str
    requirement: str
    sentence: str
    source: str
    needs: frozenset[str]
    run: Callable[[Stage], None]
    contradiction: str = ""
    may_break: frozenset[str] = frozenset()


SCENARIOS: dict[str, Scenario] = {}
"""Scenarios by name. The modules of `scenarios` fill the table."""


def scenario(
    requirement: str,
    sentence: str,
    source: str,
    needs: Iterable[str],
    *,
    contradiction: str = "",
    may_break: Iterable[str] = (),
) -> Callable[[Callable[[Stage], None]], Callable[[Stage], None]]:
    """Make a function a scenario. The function's name, with hyphens, is the scenario's."""

    def register(run: Callable[[Stage], None]) -> Callable[[Stage], None]:
        name = run.__name__.replace("_", "-")
        assert name not in SCENARIOS, name
        needed = frozenset({"open", *needs})
        SCENARIOS[name] = Scenario(
            name, requirement, sentence, source, needed, run, contradiction, frozenset(may_break)
        )
        return run

    return register


class Stage:
    """A scenario's client, brokers and names. Handles are texts."""

    def __init__(self, adapter: Adapter, side: Side, spec: str, namespace: str, operations: frozenset[str]) -> None:
        self.side = side
        self.spec = spec
        self.namespace = namespace
        self._adapter = adapter
        self._operations = operations
        self._number = 0
        self._open: list[str] = []
        self.client = ""

    # the broker's side

    def topic(self, segments: int = 1, **properties: str) -> str:
        """Create a scalable topic with this number of segments, and return its name."""
        name = self.name_of_topic()
        self.side.create(name, segments, properties)
        return name

    def name_of_topic(self) -> str:
        """Return a name that no topic has."""
        self._number += 1
        return f"topic://{self.namespace}/t{self._number}"

    def active(self, topic: str) -> list[int]:
        """Return the ids of the active segments."""
        segments = self.side.layout(topic)["segments"]
        return sorted(int(number) for number, each in segments.items() if each["state"] == "ACTIVE")

    def split_all(self, topic: str) -> None:
        """Split every active segment."""
        for segment in self.active(topic):
            self.side.split(topic, segment)

    def drain_polls(self, times: int = 3) -> None:
        """Let the controller look for drained segments, by the broker's clock."""
        for _ in range(times):
            self.side.advance(4)

    # the client

    def ask(self, operation: str, *, patience: float = SECONDS, **fields: Any) -> dict[str, Any]:
        """Let the client do an operation, and return the result. Raise `ClientError`."""
        return self.begin(operation, **fields).wait(patience)

    def begin(self, operation: str, **fields: Any) -> Answer:
        """Begin an operation of the client. Raise `Unsupported` when the client does not have it."""
        if operation not in self._operations:
            raise Unsupported(f"the adapter has no operation {operation}")
        return self._adapter.begin(operation, **fields)

    def opened(self, operation: str, **fields: Any) -> str:
        """Open a client, producer, consumer or transaction, and return its handle."""
        self._number += 1
        handle = f"{operation}{self._number}"
        told: dict[str, Any] = {"as": handle, **fields}
        self.ask(operation, **told)
        if operation != "transaction":
            self._open.append(handle)
        return handle

    def connect(self, broker: int = 0) -> str:
        """Open another client, and return its handle."""
        return self.opened("open", url=self.side.urls[broker])

    def producer(self, topic: str, client: str = "", **options: Any) -> str:
        return self.opened("producer", client=client or self.client, topic=topic, **options)

    def queue(self, topic: str, subscription: str = "q", client: str = "") -> str:
        return self.opened("queue", client=client or self.client, topic=topic, subscription=subscription)

    def stream(self, topic: str, subscription: str = "s", name: str = "c1", client: str = "") -> str:
        fields = {"client": client or self.client, "topic": topic, "subscription": subscription, "name": name}
        return self.opened("stream", **fields)

    def reader(self, topic: str, start: str = "earliest", **options: Any) -> str:
        return self.opened("reader", client=self.client, topic=topic, start=start, **options)

    def send(self, producer: str, messages: Iterable[tuple[str | None, str]], **options: Any) -> list[str]:
        """Publish pairs of key and value in order, and return their ids when all are stored."""
        return list(self.sending(producer, messages, **options).wait(SECONDS)["ids"])

    def send_each(self, producer: str, messages: Iterable[tuple[str | None, str]]) -> None:
        """Publish messages one after another, so that no two of them are in one batch."""
        for each in messages:
            self.send(producer, [each])

    def sending(self, producer: str, messages: Iterable[tuple[str | None, str]], **options: Any) -> Answer:
        """Begin to publish pairs of key and value."""
        told = [{"value": value} if key is None else {"key": key, "value": value} for key, value in messages]
        return self.begin("send", producer=producer, messages=told, **options)

    def receive(self, consumer: str, count: int, seconds: float = SECONDS) -> list[Message]:
        """Return up to `count` messages."""
        told = self.ask("receive", patience=seconds + SECONDS, consumer=consumer, count=count, seconds=seconds)
        return list(told["messages"])

    def receive_all(self, consumer: str, values: Sequence[str], *, acknowledge: bool = False) -> list[Message]:
        """Receive messages until every value was there. Fail when one is missing or comes twice."""
        got: list[Message] = []
        missing = set(values)
        while missing:
            some = self.receive(consumer, len(missing), PATIENCE)
            if not some:
                break
            got += some
            missing -= {each["value"] for each in some}
            for each in some if acknowledge else []:
                self.ask("acknowledge", consumer=consumer, message=each["id"])
        self.equal(sorted(each["value"] for each in got), sorted(values), "values that the consumer received")
        return got

    def nothing(self, consumer: str) -> None:
        """Fail when a consumer receives anything for a while."""
        got = self.receive(consumer, 1, QUIET_SECONDS)
        self.that(not got, f"the consumer received {[each['value'] for each in got]}, and nothing was due")

    def acknowledge(self, consumer: str, message: Message, **options: Any) -> None:
        self.ask("acknowledge", consumer=consumer, message=message["id"], **options)

    def close(self, handle: str) -> None:
        self.ask("close", handle=handle)
        if handle in self._open:
            self._open.remove(handle)

    def close_all(self) -> None:
        """Close what is open, the newest first. Errors do not matter any more."""
        for handle in reversed(self._open):
            try:
                self.ask("close", patience=10, handle=handle)
            except (ClientError, Unsupported):
                continue

    # judgment

    def that(self, holds: object, otherwise: str) -> None:
        """Fail with a text unless something holds."""
        if not holds:
            raise Failed(otherwise)

    def equal(self, found: object, wanted: object, what: str) -> None:
        """Fail unless two values are equal."""
        if found != wanted:
            raise Failed(f"{what}: {_short(found)}, and not {_short(wanted)}")

    def refused(self, kind: str | Sequence[str], operation: str, **fields: Any) -> None:
        """Fail unless the client answers an operation with an error of a kind."""
        kinds = [kind] if isinstance(kind, str) else list(kind)
        try:
            self.ask(operation, **fields)
        except ClientError as error:
            self.that(error.kind in kinds, f"{operation} failed with {error}, and not with {' or '.join(kinds)}")
        else:
            raise Failed(f"{operation} succeeded, and should fail with {' or '.join(kinds)}")

    def history(self) -> History:
        """Return the history of all frames so far."""
        return read(self.side.records())

    def hash(self, key: str) -> int:
        """Return the hash that chooses a key's segment in the specification of this run."""
        return m1_segment_hash(key) if self.spec == "5.0-m1" else segment_hash(key)

    def in_order(self, messages: Iterable[Message]) -> None:
        """Fail unless the numbers after the hyphen of the values rise for each key."""
        last: dict[str, int] = defaultdict(lambda: -1)
        for each in messages:
            number = int(each["value"].rsplit("-", 1)[1])
            key = each.get("key") or ""
            self.that(number > last[key], f"key {key!r}: {each['value']} came after number {last[key]}")
            last[key] = number


def keyed(first: int, count: int, keys: int = 8) -> list[tuple[str | None, str]]:
    """Return messages of `keys` keys in turn, whose values end with their numbers."""
    return [(f"k{number % keys}", f"m-{number}") for number in range(first, first + count)]


def values_of(messages: Iterable[tuple[str | None, str]]) -> list[str]:
    return [value for _, value in messages]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:297]}..."
