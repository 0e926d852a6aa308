"""A random program, and the state of the brokers that a program learns from their answers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hypothesis.stateful import RuleBasedStateMachine

from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import VERSION, Failover, Type

from .pair import Pair, Said
from .sides import Heard

T = TypeVar("T")
MANY_PERMITS = 1000
Key = tuple[int, int]  # connection, and the id of a producer or consumer there

NON_PERSISTENT, PARTITION, SCHEMA = 2, 3, 4  # topics of a program; topics 0 and 1 are plain
_numbers = itertools.count()


@dataclass
class Producer:
    """A producer of both brokers."""

    topic: str
    name: str
    next_sequence: int = 0


@dataclass
class Consumer:
    """A consumer of both brokers."""

    topic: str
    subscription: str
    type: int
    durable: bool = True
    received: list[int] = field(default_factory=list)  # indexes into `Side.places`


class Program(RuleBasedStateMachine):
    """A random program. Families of rules are subclasses, and each rule sends commands by `tell` or calls REST."""

    def __init__(self, pair: Pair) -> None:
        super().__init__()
        self.pair = pair
        pair.begin()
        self.number = next(_numbers)
        self.links: set[int] = set()
        self.producers: dict[Key, Producer] = {}
        self.consumers: dict[Key, Consumer] = {}
        self.batches = False  # whether batches were sent: then permits never run out, see `flow_to`
        self.terminated: set[int] = set()  # topics where no producer may wait for exclusive access
        self.chunks = False  # whether chunks were sent
        self.awaited: set[int] = set()  # topics where a producer asked to wait for exclusive access
        self.filled: set[str] = set()  # topics with messages
        self.partitioned = 0  # requests to create the partitioned topic
        self._named: set[int] = set()  # topics that the program has used
        self._moved: set[tuple[str, str]] = set()
        self._waiting: dict[Key, Callable[[pb.BaseCommand], None]] = {}
        self._requests = itertools.count(1)

    # used by rules

    def topic(self, number: int) -> str:
        """Return the name of one of the program's topics."""
        self._named.add(number)
        domain = "non-persistent" if number == NON_PERSISTENT else "persistent"
        return f"{domain}://{self.namespace}/{self.stem}-t{number}{'-partition-0' if number == PARTITION else ''}"

    @property
    def namespace(self) -> str:
        return f"public/{self.pair.namespace}"

    @property
    def stem(self) -> str:
        """Return the prefix of the names of the program's topics."""
        return f"program-{self.number}"

    def some_link(self, number: int) -> int:
        """Return one of the open connections."""
        links = sorted(self.links)
        return links[number % len(links)]

    def call(self, method: str, topic: int, path: str, body: object = None, *, whole: bool = False) -> None:
        """Call the admin API about one of the program's topics. With `whole`, about its partitioned topic."""
        name = self.topic(topic).replace("://", "/")
        if whole:
            name = name.partition("-partition-")[0]
        heard = self.pair.call(method, f"/admin/v2/{name}{path}", body)
        self._learn(heard)

    def have_read(self, topic: str) -> None:
        """Wait until both brokers have read the entries that no consumer can receive yet.

        The number of entries that a real broker reads at once decides which consumer is next.
        """
        if topic.startswith("persistent:"):
            self._learn(self.pair.call("GET", f"/admin/v2/{topic.replace('://', '/')}/internalStats"))

    def tell(self, link: int, *frames: Said) -> Heard:
        heard = self.pair.tell(link, frames)
        self._learn(heard)
        return heard

    def ask(self, link: int, type: int, then: Callable[[pb.BaseCommand], None] | None = None, **fields: Any) -> Heard:
        """Send a request. `then` gets the answer, now or later, unless the answer is an error."""
        request = next(self._requests)
        if then is not None:
            self._waiting[link, request] = then
        return self.tell(link, Said(type, {**fields, "request_id": request}))

    def may_move(self, topic: str, subscription: str) -> bool:
        """Return whether SEEK and similar requests are tried. On Failover they are tried once until a consumer joins.

        These requests disconnect the active consumer. The emulator does not copy a real broker without such a consumer.
        """
        types = {
            each.type for each in self.consumers.values() if (each.topic, each.subscription) == (topic, subscription)
        }
        if Failover not in types:
            return True
        before = (topic, subscription) in self._moved
        self._moved.add((topic, subscription))
        return not before

    def joined(self, link: int, number: int, consumer: Consumer) -> None:
        self._moved.discard((consumer.topic, consumer.subscription))
        self.consumers.setdefault((link, number), consumer)

    def flow_to(self, link: int, id: int, permits: int) -> None:
        """Send FLOW. With batches, grant more permits than messages.

        Brokers differ in how far they overdraw permits (docs/differences.md).
        """
        many = MANY_PERMITS if self.batches else permits
        self.tell(link, Said(Type.FLOW, {"consumer_id": id, "messagePermits": many}))

    def connect(self, link: int, version: int = VERSION, **fields: Any) -> None:
        self.pair.dial(link)
        self.links.add(link)
        self.tell(link, Said(Type.CONNECT, {"client_version": "diff", "protocol_version": version, **fields}))

    def disconnect(self, link: int) -> None:
        heard = self.pair.hang_up(link)
        self._gone(link)
        self._learn(heard)

    def need_link(self, link: int) -> int:
        """Open a connection, unless it is open. Return its number."""
        if link not in self.links:
            self.connect(link)
        return link

    def teardown(self) -> None:
        paths = {number: self.topic(number).replace("://", "/") for number in self._named}
        if PARTITION in paths:
            paths[PARTITION] = f"{paths[PARTITION].partition('-partition-')[0]}/partitions"
        self.pair.end(self.links, paths.values())

    # learned from answers

    def _learn(self, heard: Heard) -> None:
        for link, command in heard.commands:
            if command.type == Type.CLOSE_PRODUCER:
                self.producers.pop((link, command.close_producer.producer_id), None)
            elif command.type == Type.CLOSE_CONSUMER:
                self.consumers.pop((link, command.close_consumer.consumer_id), None)
            elif command.type == Type.MESSAGE:
                consumer = self.consumers.get((link, command.message.consumer_id))
                if consumer is not None:
                    where = command.message.message_id
                    consumer.received.append(self.pair.ours.places.index((where.ledgerId, where.entryId)))
            elif command.type == Type.ERROR:
                self._waiting.pop((link, command.error.request_id), None)
            elif command.type in _ANSWERS:
                body = getattr(command, _ANSWERS[command.type])
                then = self._waiting.get((link, body.request_id))
                if command.type != Type.PRODUCER_SUCCESS or body.producer_ready:
                    self._waiting.pop((link, body.request_id), None)
                    if then is not None:
                        then(command)
        for link in heard.ended:
            self._gone(link)
        self.pair.keep(self.consumers)

    def _gone(self, link: int) -> None:
        self.links.discard(link)
        for table in (self.producers, self.consumers, self._waiting):
            for key in [key for key in table if key[0] == link]:
                del table[key]


_ANSWERS = {Type.SUCCESS: "success", Type.PRODUCER_SUCCESS: "producer_success"}


def pick(table: dict[Key, T], number: int) -> tuple[Key, T]:
    """Return the key and the value that `number` selects in a table."""
    keys = sorted(table)
    key = keys[number % len(keys)]
    return key, table[key]
