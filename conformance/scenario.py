"""Declare scenarios, and the stage on which a scenario drives a client and its brokers."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pulsarium.conformance.history import History, read
from pulsarium.conformance.material import Material
from pulsarium.conformance.protocol import OPTIONS, Adapter, AdapterFault, Answer, Client, ClientError, Unsupported
from pulsarium.conformance.side import Side, Unavailable
from pulsarium.proto.routing import m1_segment_hash, segment_hash

SECONDS = 30.0
QUIET_SECONDS = 1.0
PATIENCE = 12.0  # seconds for messages that are due
MOMENT = 0.05  # seconds between two questions

Message = Mapping[str, Any]
Sent = str | tuple[str | None, str] | Mapping[str, Any]
"""A message to publish: a value, a pair of key and value, or an object with options."""


class Failed(Exception):
    """The client did not do what the specification demands."""


@dataclass(frozen=True)
class Scenario:
    """A test of one sentence of the specification.

    requirement: number in the specification's conformance checklist, or the PIP or command. sentence, source: what is
    tested, and where it stands. contradiction: a text that says something else, or "". may_break: rules of the linter
    that the scenario provokes. secured: whether the brokers have tokens and TLS. bug: a bug that the scenario
    finds when it is planted, by `faulty` or, after the word raw, in the raw client of the kit's tests. pip: number of
    the proposal that brokers must have, and clients if it changes the protocol, or 0.
    """

    name: str
    requirement: str
    sentence: str
    source: str
    run: Callable[[Stage], None]
    contradiction: str = ""
    may_break: frozenset[str] = frozenset()
    secured: bool = False
    bug: str = ""
    pip: int = 0

    @property
    def subject(self) -> str:
        return self.run.__module__.partition(".scenarios.")[2]

    @property
    def topics(self) -> str:
        """Return the kind of topics that the scenario is about: classic or scalable."""
        return "scalable" if self.subject.startswith("scalable.") else "classic"


SCENARIOS: dict[str, Scenario] = {}
"""Scenarios by name. The modules of `scenarios` fill the table."""


def scenario(
    requirement: str,
    sentence: str,
    source: str,
    *,
    contradiction: str = "",
    may_break: Iterable[str] = (),
    secured: bool = False,
    bug: str = "",
    pip: int = 0,
) -> Callable[[Callable[[Stage], None]], Callable[[Stage], None]]:
    """Make a function a scenario. The function's name, with hyphens, is the scenario's."""

    def register(run: Callable[[Stage], None]) -> Callable[[Stage], None]:
        name = run.__name__.replace("_", "-")
        assert name not in SCENARIOS, name
        SCENARIOS[name] = Scenario(
            name, requirement, sentence, source, run, contradiction, frozenset(may_break), secured, bug, pip
        )
        return run

    return register


class Stage:
    """A scenario's client, brokers and names. Handles are texts."""

    def __init__(
        self,
        adapter: Adapter,
        client: Client,
        side: Side,
        spec: str,
        namespace: str,
        material: Material,
        *,
        secured: bool,
    ) -> None:
        self.side = side
        self.material = material
        self._secured = secured
        self.spec = spec
        self.namespace = namespace
        self._adapter = adapter
        self._client = client
        self._topics = 0
        self._open: list[str] = []
        self.needs: set[str] = set()
        """Operations and options that the scenario asked for."""
        self.client = ""

    # the broker's side

    def topic(self, partitions: int = 0, *, persistent: bool = True) -> str:
        """Return the name of a new classic topic. Without partitions the first client creates it."""
        self._knows("classic")
        name = f"{'' if persistent else 'non-'}persistent://{self.namespace}/{self._name()}"
        if partitions:
            self.side.partition(name, partitions)
        return name

    def scalable_topic(self, segments: int = 1, **properties: str) -> str:
        """Create a scalable topic with this number of segments, and return its name."""
        name = self.name_of_topic()
        self.side.create(name, segments, properties)
        return name

    def name_of_topic(self) -> str:
        """Return a name that no scalable topic has."""
        self._knows("scalable")
        return f"topic://{self.namespace}/{self._name()}"

    def _name(self) -> str:
        self._topics += 1
        return f"t{self._topics}"

    def _knows(self, kind: str) -> None:
        if kind not in self._client.topics:
            raise Unsupported(f"the client has no {kind} topics")
        if kind == "scalable" and not self.side.has_scalable_topics:
            raise Unavailable("needs a broker of Pulsar 5")

    def need_brokers(self, number: int) -> None:
        """Raise `Unavailable` unless there are enough brokers."""
        if len(self.side.urls) < number:
            raise Unavailable(f"needs {number} brokers")

    def backlog(self, topic: str, subscription: str = "s") -> int:
        """Return the backlog of a subscription of a classic topic."""
        return int(self.side.stats(topic)["subscriptions"][subscription]["msgBacklog"])

    def unacknowledged(self, topic: str, subscription: str = "s") -> int:
        """Return how many messages the consumers of a subscription have and did not acknowledge."""
        return int(self.side.stats(topic)["subscriptions"][subscription]["unackedMessages"])

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

    def now(self) -> int:
        """Return the time in milliseconds of the epoch, apart from what was published before and comes after."""
        time.sleep(2 * MOMENT)
        moment = int(time.time() * 1000)
        time.sleep(2 * MOMENT)
        return moment

    # the client

    @property
    def urls(self) -> Sequence[str]:
        """Return the URL of each broker, of the kind that the client opens."""
        return self.side.web_socket_urls if self._client.is_web else self.side.urls

    @property
    def tls_url(self) -> str:
        """Return the URL of the first broker's TLS port."""
        return self.side.web_socket_tls_url if self._client.is_web else self.side.tls_url

    def ask(self, operation: str, *, patience: float = SECONDS, **fields: Any) -> dict[str, Any]:
        """Let the client do an operation, and return the result. Raise `ClientError`."""
        return self.begin(operation, **fields).wait(patience)

    def begin(self, operation: str, **fields: Any) -> Answer:
        """Begin an operation of the client. Raise `Unsupported` when the client lacks it, or one of its options."""
        self.need(operation, *(f"{operation}.{name.replace('_', '-')}" for name in fields))
        return self._adapter.begin(operation, **{name.replace("_", "-"): value for name, value in fields.items()})

    def need(self, operation: str, *options: str) -> None:
        """Raise `Unsupported` unless the client has an operation and options, such as send.delay."""
        self.needs |= {operation, *OPTIONS.intersection(options)}
        for each in (operation, *options):
            if each in self._client.lacks:
                raise Unsupported(f"{each}: {self._client.lacks[each]}")
        if operation not in self._client.operations:
            raise Unsupported(f"the client has no {operation}")

    def opened(self, operation: str, **fields: Any) -> str:
        """Open a client, producer, consumer or transaction, and return its handle."""
        handle = f"{operation}-{next(self._adapter.handles)}"
        told: dict[str, Any] = {"as": handle, **fields}
        self.ask(operation, **told)
        if operation != "transaction":
            self._open.append(handle)
        return handle

    def connect(self, broker: int = 0) -> str:
        """Open another client, and return its handle."""
        self.need_brokers(broker + 1)
        fields = {"token": self.material.token} if self._secured else {}
        return self.opened("open", url=self.urls[broker], **fields)

    def scalable_transaction(self) -> str:
        """Begin a transaction of scalable topics, and return its handle."""
        self._knows("scalable")
        return self.opened("transaction", client=self.client, scalable=True)

    def producer(self, topic: str, client: str = "", **options: Any) -> str:
        return self.opened("producer", client=client or self.client, topic=topic, **options)

    def queue(self, topic: str, subscription: str = "q", client: str = "") -> str:
        return self.opened("queue", client=client or self.client, topic=topic, subscription=subscription)

    def stream(self, topic: str, subscription: str = "s", name: str = "c1", client: str = "") -> str:
        fields = {"client": client or self.client, "topic": topic, "subscription": subscription, "name": name}
        return self.opened("stream", **fields)

    def checkpoint_consumer(self, topic: str, start: str = "earliest", **options: Any) -> str:
        return self.opened("checkpoint-consumer", client=self.client, topic=topic, start=start, **options)

    def consumer(
        self,
        topics: str | Sequence[str],
        kind: str = "Exclusive",
        subscription: str = "s",
        client: str = "",
        **options: Any,
    ) -> str:
        """Open a consumer of classic topics, from the earliest message."""
        told = [topics] if isinstance(topics, str) else list(topics)
        if len(told) > 1:
            self.need("consumer", "consumer.several")
        fields = {"start": "earliest", **options, "client": client or self.client, "topics": told, "type": kind}
        return self.opened("consumer", subscription=subscription, **fields)

    def reader(self, topic: str, start: str = "earliest", **options: Any) -> str:
        """Open a reader of a classic topic."""
        return self.opened("reader", client=self.client, topic=topic, start=start, **options)

    def send(self, producer: str, messages: Iterable[Sent], **options: Any) -> list[str]:
        """Publish messages in order, and return their ids when all are stored."""
        return list(self.sending(producer, messages, **options).wait(SECONDS)["ids"])

    def send_in(self, producer: str, messages: Iterable[Sent], transaction: str) -> list[str]:
        """Publish messages in a transaction."""
        return self.send(producer, messages, transaction=transaction)

    def send_each(self, producer: str, messages: Iterable[Sent]) -> list[str]:
        """Publish messages one after another, so that no two of them are in one batch."""
        return [self.send(producer, [each])[0] for each in messages]

    def sending(self, producer: str, messages: Iterable[Sent], **options: Any) -> Answer:
        """Begin to publish messages: values, pairs of key and value, or objects with options."""
        told = [_message(each) for each in messages]
        self.need("send", *(f"send.{name}" for each in told for name in each))
        return self.begin("send", producer=producer, messages=told, **options)

    def receive(self, consumer: str, count: int, seconds: float = SECONDS) -> list[Message]:
        """Return up to `count` messages."""
        told = self.ask("receive", patience=seconds + SECONDS, consumer=consumer, count=count, seconds=seconds)
        return list(told["messages"])

    def told(self, message: Message, name: str) -> Any:
        """Return a thing that not every client tells of a message, such as redeliveries."""
        self.need("receive", f"receive.{name}")
        return message.get(name)

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
                self.acknowledge(consumer, each)
        self.equal(sorted(each["value"] for each in got), sorted(values), "values that the consumer received")
        return got

    def receive_at_least(self, consumer: str, values: Iterable[str], seconds: float | None = None) -> None:
        """Receive messages until every value was there. After the loss of a connection, others come, too."""
        missing = set(values)
        while missing and (some := self.receive(consumer, len(missing), seconds or PATIENCE)):
            missing -= {each["value"] for each in some}
        self.equal(missing, set(), "values that the consumer did not receive")

    def nothing(self, consumer: str) -> None:
        """Fail when a consumer receives anything for a while."""
        got = self.receive(consumer, 1, QUIET_SECONDS)
        self.that(not got, f"the consumer received {[each['value'] for each in got]}, and nothing was due")

    def receive_in_order(self, consumer: str, values: Sequence[str], *, acknowledge: bool = False) -> list[Message]:
        """Receive messages with these values. Fail when they come in another order."""
        got = self.receive_all(consumer, values, acknowledge=acknowledge)
        self.equal([each["value"] for each in got], list(values), "values in the order of their arrival")
        return got

    def receive_shared(self, consumers: Sequence[str], number: int) -> list[list[Message]]:
        """Receive and acknowledge `number` messages by several consumers, and return those of each consumer."""
        got: list[list[Message]] = [[] for _ in consumers]
        end = time.monotonic() + PATIENCE
        while sum(map(len, got)) < number and time.monotonic() < end:
            for mine, consumer in zip(got, consumers, strict=True):
                some = self.receive(consumer, number, 0.1)
                for each in some:
                    self.acknowledge(consumer, each)
                mine += some
                end = time.monotonic() + PATIENCE if some else end
        self.equal(sum(map(len, got)), number, "messages that the consumers received")
        return got

    def until(self, holds: Callable[[], object], otherwise: str) -> None:
        """Ask again and again until something holds. Fail with a text after a while."""
        end = time.monotonic() + PATIENCE
        while not holds():
            self.that(time.monotonic() < end, otherwise)
            time.sleep(MOMENT)

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
            except AdapterFault:
                return

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
        if self._client.is_web and not self.side.records_web_sockets:
            raise Unavailable("needs the frames of WebSockets, which are inside of the broker")
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


def _message(sent: Sent) -> Mapping[str, Any]:
    match sent:
        case str(value):
            return {"value": value}
        case (None, value):
            return {"value": value}
        case (key, value):
            return {"key": key, "value": value}
        case Mapping():
            return sent


def texts(first: int, count: int) -> list[str]:
    """Return values that end with their numbers."""
    return [f"m-{number}" for number in range(first, first + count)]


def keyed(first: int, count: int, keys: int = 8) -> list[tuple[str | None, str]]:
    """Return messages of `keys` keys in turn, whose values end with their numbers."""
    return [(f"k{number % keys}", f"m-{number}") for number in range(first, first + count)]


def values_of(messages: Iterable[tuple[str | None, str]]) -> list[str]:
    return [value for _, value in messages]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:297]}..."
