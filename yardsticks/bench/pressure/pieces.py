"""The measured pieces of work: one request, one command with many ids, many clients at once, floods of each command."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from pulsarium.proto import entry
from pulsarium.proto.commands import CommandSpec
from pulsarium.proto.framing import frame
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand, MessageIdData, MessageMetadata
from yardsticks.bench import wire
from yardsticks.bench.brokers import CONNECT, Broker
from yardsticks.bench.drivers.raw import Group
from yardsticks.bench.minimal import FROM_CLIENTS, answerable_command
from yardsticks.bench.programs import TINY
from yardsticks.bench.wire import Connection, WireError
from yardsticks.bench.work import Work

LIMIT_SECONDS = 120
FLOOD_SECONDS = 2.0  # at most: a frame may ask for all topics of a namespace
NAMESPACE = "public/many"
ONE = "persistent://public/default/one"
PERMITS = 1_000_000
LAST_REQUEST = 1 << 40
LOOKUP_RESPONSE = bytes((0x08, BaseCommand.LOOKUP_RESPONSE))  # the first bytes of a serialized command: its type

Prepare = Callable[[Broker, int], Connection]
DoWork = Callable[[Broker, Connection, int], object]


@dataclass(frozen=True)
class Piece:
    """A piece of work on `count` items.

    `prepare` sets up a broker, and returns a connection that `work` may use. Consecutive pieces with the same `prepare`
    and `count` share the setup. Pieces of one `group` can be selected together.
    """

    name: str
    title: str
    count: int
    prepare: Prepare
    work: DoWork
    group: str = ""


# ---- preparations


def nothing(broker: Broker, count: int) -> Connection:
    return Connection(broker.service_url)


def topic_of(number: int) -> str:
    return f"persistent://{NAMESPACE}/{number}"


def topics(broker: Broker, count: int) -> Connection:
    """Create topics with a consumer each, all of one connection."""
    with suppress(urllib.error.HTTPError):  # the namespace exists
        ask(broker, "PUT", f"/admin/v2/namespaces/{NAMESPACE}")
    return consumers_of(broker, [wire.consumer(topic_of(number), number) for number in range(count)])


def left_topics(broker: Broker, count: int) -> Connection:
    """Create topics with a subscription each, whose consumers have left."""
    return left(broker, topics(broker, count))


def subscriptions(broker: Broker, count: int) -> Connection:
    """Create subscriptions of one topic with a consumer each, all of one connection."""
    return consumers_of(broker, [wire.consumer(ONE, number, subscription=f"s-{number}") for number in range(count)])


def left_subscriptions(broker: Broker, count: int) -> Connection:
    return left(broker, subscriptions(broker, count))


def crowd(kind: str, broker: Broker, count: int) -> Connection:
    """Return a connection that has all consumers of a subscription."""
    return consumers_of(broker, [wire.consumer(ONE, number, kind) for number in range(count)])


def watched_topics(broker: Broker, count: int) -> Connection:
    connection = left_topics(broker, count)
    connection.ask(BaseCommand.WATCH_TOPIC_LIST_SUCCESS, map(watcher, range(WATCHERS)))
    return connection


def owed(broker: Broker, count: int) -> Connection:
    """Publish messages to a topic whose Shared consumer receives as many as maxUnackedMessagesPerConsumer allows."""
    wire.leave_subscription(broker.service_url, ONE)
    wire.publish(broker.service_url, ONE, count, TINY)
    wire.subscribe(connection := Connection(broker.service_url), ONE)
    connection.socket.settimeout(LIMIT_SECONDS)
    connection.send(wire.flow(0, count))
    return connection


def backlog(broker: Broker, count: int) -> Connection:
    wire.leave_subscription(broker.service_url, ONE)
    wire.publish(broker.service_url, ONE, count, 100_000)
    return Connection(broker.service_url)


def consumers_of(broker: Broker, commands: Iterable[BaseCommand]) -> Connection:
    connection = Connection(broker.service_url)
    connection.ask(BaseCommand.SUCCESS, commands)
    return connection


def left(broker: Broker, connection: Connection) -> Connection:
    """End a connection with its consumers, and return another one."""
    connection.socket.close()
    ask(broker, "GET", "/admin/v2/brokers/ready")  # the first request is slower than others
    return Connection(broker.service_url)


# ---- requests


def ask(broker: Broker, method: str, path: str, body: object = None) -> None:
    """Make a request, and read the whole answer."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(broker.admin_url + path, data, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=LIMIT_SECONDS) as answer:
        while answer.read(wire.READ):
            pass


def rest(method: str, path: str) -> DoWork:
    return lambda broker, connection, count: ask(broker, method, path)


def seed(broker: Broker, connection: Connection, count: int) -> None:
    """Apply a JSON seed with so many messages."""
    messages = [{"text": "x" * 100, "key": "k"}] * count
    ask(broker, "POST", "/lab/seed", {"topics": [{"name": "seeded", "messages": messages}]})


def at_once(url: Callable[[Broker], str], first: bytes) -> DoWork:
    """Open connections, which all send the same first bytes at once, and wait for an answer of each."""

    def work(broker: Broker, connection: Connection, count: int) -> None:
        where = urlsplit(url(broker))
        with ExitStack() as stack:
            opened = [
                stack.enter_context(socket.create_connection((where.hostname, where.port), LIMIT_SECONDS))
                for _ in range(count)
            ]
            for each in opened:
                each.sendall(first)
            for each in opened:
                each.recv(wire.READ)

    return work


# ---- floods: one client sends requests without waiting for their answers, and reads the answers as they come


class Reader:
    """Read what arrives on a connection, in a thread, until the connection ends.

    `messages` is the number of messages. `answered` is set after the answer to LAST_REQUEST, and `over` after the end.
    """

    def __init__(self, connection: Connection) -> None:
        self.messages = 0
        self.answered, self.over = threading.Event(), threading.Event()
        self._connection = connection
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        with suppress(OSError):  # the broker has closed the connection
            self._connection.socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._connection.socket.close()

    def _run(self) -> None:
        with suppress(OSError, WireError):  # the connection has ended
            while True:
                with suppress(TimeoutError):
                    self._take(self._connection.read())
        self.over.set()
        self.answered.set()

    def _take(self, commands: Iterable[bytes]) -> None:
        for command in commands:
            if command.startswith(wire.MESSAGE):
                self.messages += 1
            elif command.startswith(LOOKUP_RESPONSE) and is_last(command):
                self.answered.set()


def is_last(command: bytes) -> bool:
    return BaseCommand.FromString(command).lookupTopicResponse.request_id == LAST_REQUEST


def flood(connection: Connection, segments: Iterable[bytes], seconds: float) -> bool:
    """Send segments until the broker has handled all, or for `seconds`, and end the connection.

    Return whether the broker has handled all. It has not when it ended the connection.
    """
    until = time.monotonic() + seconds
    connection.socket.settimeout(seconds)
    reader = Reader(connection)
    try:
        with suppress(OSError):  # the broker has closed the connection, or reads no more
            for segment in segments:
                connection.socket.sendall(segment)
                if time.monotonic() > until:
                    return False
            connection.send(wire.lookup(ONE, LAST_REQUEST))
        reader.answered.wait(max(0, until - time.monotonic()))
        return reader.answered.is_set() and not reader.over.is_set()
    finally:
        reader.close()


def all_of(commands: Callable[[int], Iterator[BaseCommand]]) -> DoWork:
    """Send different commands in one flood. Raise `WireError` when the broker does not handle all of them."""

    def work(broker: Broker, connection: Connection, count: int) -> None:
        data = b"".join(frame(command.SerializeToString()) for command in commands(count))
        if not flood(Connection(broker.service_url), [data], LIMIT_SECONDS):
            raise WireError(f"the broker did not handle a flood in {LIMIT_SECONDS} s, or closed the connection")

    return work


FRAMES_OF_A_TOPIC, SEGMENT = 10, 256  # frames: 50,000 on a broker with 5,000 topics


def flood_of(spec: CommandSpec, broker: Broker, connection: Connection, count: int) -> None:
    """Send one command repeatedly, on a connection with a producer and a consumer, or with a coordinator."""
    topic, greedy = f"{ONE}-{spec.name.lower()}", Connection(broker.service_url)
    if spec.family == "transaction":
        assigned = "persistent://pulsar/system/transaction_coordinator_assign-partition-0"
        greedy.ask(BaseCommand.LOOKUP_RESPONSE, [wire.lookup(assigned)])
        told = {"request_id": 1, "tc_id": 0}
        connect = BaseCommand(type=BaseCommand.TC_CLIENT_CONNECT_REQUEST, tcClientConnectRequest=told)
        greedy.ask(BaseCommand.TC_CLIENT_CONNECT_RESPONSE, [connect])
    if spec.type != BaseCommand.PRODUCER:
        wire.open_producer(greedy, topic)
    wire.subscribe(greedy, topic)
    segment = _frame(spec, topic) * SEGMENT
    flood(greedy, (segment for _ in range(0, count * FRAMES_OF_A_TOPIC, SEGMENT)), FLOOD_SECONDS)


def _frame(spec: CommandSpec, topic: str) -> bytes:
    if spec.type == BaseCommand.SEND:
        return wire.send_frame(TINY)
    command = answerable_command(spec, topic, wire.SUBSCRIPTION)
    body: Any = getattr(command, spec.field)
    if "namespace" in body.DESCRIPTOR.fields_by_name:
        body.namespace = NAMESPACE
    return frame(command.SerializeToString())


def lists(count: int, pattern: str = "") -> Iterator[BaseCommand]:
    """Ask for the topics that match a pattern of its own each, or for all topics."""
    for number in range(max(1, count)):
        told = {"namespace": NAMESPACE, "request_id": number}
        told |= {"topics_pattern": pattern.format(number)} if pattern else {}
        yield BaseCommand(type=BaseCommand.GET_TOPICS_OF_NAMESPACE, getTopicsOfNamespace=told)


WATCHERS = 100


def watcher(number: int) -> BaseCommand:
    """Return a WATCH_TOPIC_LIST with a pattern of its own, which matches all topics."""
    told = {"watcher_id": number, "request_id": number, "namespace": NAMESPACE}
    told["topics_pattern"] = f"{NAMESPACE}/.*|{number}"
    return BaseCommand(type=BaseCommand.WATCH_TOPIC_LIST, watchTopicList=told)


# ---- WebSockets


def ws_frame(first: int, data: bytes = b"") -> bytes:
    """Return a short WebSocket frame, with a mask that changes nothing."""
    return struct.pack(">BB", first, 0x80 | len(data)) + bytes(4) + data


WS_PATH = "/ws/v2/producer/persistent/public/default/websocket"
WS_REQUEST = (
    f"GET {WS_PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
).encode()


def over_websocket(one: bytes, before: bytes = b"") -> DoWork:
    """Send `before`, then one frame `count` times, and wait until the broker ends the connection."""

    def work(broker: Broker, connection: Connection, count: int) -> None:
        url = urlsplit(broker.admin_url)
        with socket.create_connection((url.hostname, url.port), timeout=LIMIT_SECONDS) as greedy:
            greedy.sendall(WS_REQUEST)
            if not greedy.recv(wire.READ).startswith(b"HTTP/1.1 101 "):
                raise WireError(f"the broker refused a WebSocket at {WS_PATH}")
            reader = threading.Thread(target=read_all, args=(greedy,), daemon=True)
            reader.start()
            with suppress(ConnectionError):  # the broker ends the connection for a message that is none
                greedy.sendall(before + one * count + ws_frame(0x88, b"\x03\xe8"))
            reader.join()

    return work


def read_all(greedy: socket.socket) -> None:
    with suppress(OSError):
        while greedy.recv(wire.READ):
            pass


# ---- consumers and messages


def until(true: Callable[[], bool], what: str) -> None:
    """Wait until `true` returns True. Raise `WireError` when that takes too long."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while not true():
        if time.monotonic() > deadline:
            raise WireError(f"{what}: this did not happen in {LIMIT_SECONDS} s")
        time.sleep(0.05)


def create_topic(broker: Broker, connection: Connection, count: int) -> None:
    """Create a topic, and wait until all watchers know it."""
    creator = Connection(broker.service_url)
    with creator.socket:
        wire.open_producer(creator, f"persistent://{NAMESPACE}/new")
    for _ in range(WATCHERS):
        connection.expect(BaseCommand.WATCH_TOPIC_UPDATE)


def leave(broker: Broker, connection: Connection, count: int) -> None:
    """End the connection, and wait until the subscription has no consumers."""
    connection.socket.shutdown(socket.SHUT_RDWR)  # `close` would leave it to the process that pings, which has a copy

    def deleted() -> bool:
        """Delete the subscription, and return whether the broker did: it refuses while there are consumers."""
        try:
            ask(broker, "DELETE", f"/admin/v2/{ONE.replace('://', '/')}/subscription/{wire.SUBSCRIPTION}")
        except urllib.error.HTTPError:
            return False
        return True

    until(deleted, "all consumers of an ended connection are gone")


def publish_to_all(broker: Broker, connection: Connection, count: int) -> None:
    """Publish messages at once, and wait until each subscription has received all of them."""
    messages = max(1, count // 10)
    connection.send(*(wire.flow(number, PERMITS) for number in range(count)))
    reader = Reader(connection)
    wire.open_producer(publisher := Connection(broker.service_url), ONE)
    with publisher.socket:
        wire.send_all(publisher, wire.send_segments(messages, TINY, together=messages))
        until(lambda: reader.messages >= messages * count, f"{count} subscriptions receive {messages} messages")
    reader.close()


def fall_due(broker: Broker, connection: Connection, count: int) -> None:
    """Publish a delayed message to each topic, and wait for all of them, which are due at one time."""
    ahead = 5.0  # seconds: all must be published by then
    connection.send(*(wire.flow(number, PERMITS) for number in range(count)))
    reader = Reader(connection)
    publisher = Connection(broker.service_url)
    with publisher.socket:
        publisher.ask(
            BaseCommand.PRODUCER_SUCCESS, [wire.producer(topic_of(number), number) for number in range(count)]
        )
        metadata = MessageMetadata(producer_name="bench", sequence_id=0, publish_time=1)
        metadata.deliver_at_time = int((time.time() + ahead) * 1000)
        message = entry.build(metadata, b"x" * TINY)
        for number in range(count):
            command = BaseCommand(type=BaseCommand.SEND, send={"producer_id": number, "sequence_id": 0})
            publisher.socket.sendall(frame(command.SerializeToString(), message))
        for _ in range(count):
            publisher.expect(BaseCommand.SEND_RECEIPT)
        if reader.messages:
            raise WireError(f"{ahead} s are too few to publish {count} delayed messages")
        until(lambda: reader.messages >= count, f"{count} delayed messages arrive")
    reader.close()


def read_backlog(broker: Broker, connection: Connection, count: int) -> None:
    group = Group(Work(broker.service_url, ONE, count, 0, broker.pid, broker.admin_url), "Shared", range(1))
    group.ask()
    group.consume(count)
    group.connection.socket.close()


def ids(connection: Connection, count: int) -> list[MessageIdData]:
    """Return the ids of all messages of the topic, in the order of publishing."""
    first = connection.expect(BaseCommand.MESSAGE).message.message_id
    return [MessageIdData(ledgerId=first.ledgerId, entryId=number) for number in range(count)]


def acknowledge(commands: int, broker: Broker, connection: Connection, count: int) -> None:
    """Acknowledge all messages with one command, or every second message with many commands in one write."""
    told = ids(connection, count)[:: 1 if commands == 1 else 2]
    each = max(1, len(told) // commands)
    acks = []
    for start in range(0, len(told), each):
        acks.append(wire.empty_ack())
        acks[-1].ack.message_id.extend(told[start : start + each])
        acks[-1].ack.request_id = start + 2
    connection.send(*acks)
    for _ in acks:
        connection.expect(BaseCommand.ACK_RESPONSE)


def redeliver(broker: Broker, connection: Connection, count: int) -> None:
    command = BaseCommand(type=BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES)
    command.redeliverUnacknowledgedMessages.consumer_id = 0
    command.redeliverUnacknowledgedMessages.message_ids.extend(ids(connection, count))
    # the broker answers the PING after the redelivery
    connection.send(command, BaseCommand.FromString(wire.PING))
    connection.expect(BaseCommand.PONG)


SOME, MANY, SUBSCRIPTIONS = 5_000, 20_000, 30_000
STATS = f"/admin/v2/{ONE.replace('://', '/')}"
HTTP = b"GET /admin/v2/clusters HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"

shared_crowd, key_shared_crowd = partial(crowd, "Shared"), partial(crowd, "Key_Shared")
clear_backlog = rest("POST", f"/admin/v2/namespaces/{NAMESPACE}/clearBacklog")
unload = rest("PUT", f"/admin/v2/namespaces/{NAMESPACE}/unload")
connects = at_once(lambda broker: broker.service_url, CONNECT)
requests = at_once(lambda broker: broker.admin_url, HTTP)
list_topics = all_of(lambda count: lists(count // 25))
match_topics = all_of(lambda count: lists(count * 2 // 5, f"{NAMESPACE}/x{{}}.*"))
watch_topics = all_of(lambda count: map(watcher, range(WATCHERS)))
open_producers = all_of(lambda count: (wire.producer(f"{ONE}-{number}", number) for number in range(count)))
open_consumers = all_of(lambda count: (wire.consumer(f"{ONE}-{number}", number) for number in range(count)))
ws_fragments = over_websocket(ws_frame(0x00), ws_frame(0x01))
ws_pings = over_websocket(ws_frame(0x89))
ws_messages = over_websocket(ws_frame(0x81, b'{"payload": "aGk="}'))
WATCH = "100 WATCH_TOPIC_LIST with a pattern of their own, 5,000 topics"


def _read(name: str, title: str, path: str) -> Piece:
    title = f"{title}, 30,000 subscriptions"
    return Piece(name, title, SUBSCRIPTIONS, left_subscriptions, rest("GET", path))


def _flood(spec: CommandSpec) -> Piece:
    name, title = f"flood-{spec.name.lower().replace('_', '-')}", f"{SOME * FRAMES_OF_A_TOPIC:,} {spec.name}"
    return Piece(name, title, SOME, left_topics, partial(flood_of, spec), "floods")


PIECES: Sequence[Piece] = [
    Piece("clear", "the backlog of 20,000 topics is cleared", MANY, topics, clear_backlog),
    Piece("unload", "a namespace of 20,000 topics is unloaded", MANY, topics, unload),
    _read("metrics", "/metrics", "/metrics/"),
    _read("stats", "stats of a topic", f"{STATS}/stats"),
    _read("internal", "internalStats", f"{STATS}/internalStats"),
    _read("page", "the page at /", "/pulsarium/topics"),
    Piece("ack", "one ACK of 400,000 message ids", 400_000, owed, partial(acknowledge, 1)),
    Piece("redeliver", "one REDELIVER of 300,000 message ids", 300_000, owed, redeliver),
    Piece("acks", "100 ACK of 1,000 message ids", 200_000, owed, partial(acknowledge, 100)),
    Piece("connects", "2,000 connections say CONNECT at once", 2_000, nothing, connects),
    Piece("requests", "1,000 HTTP requests at once, a connection each", 1_000, nothing, requests),
    Piece("seed", "a seed of 16 MB in JSON", 125_000, nothing, seed),
    Piece("lists", "200 GET_TOPICS_OF_NAMESPACE, 5,000 topics", SOME, left_topics, list_topics),
    Piece("patterns", "2,000 of them with a pattern of their own", SOME, left_topics, match_topics),
    Piece("watch", WATCH, SOME, left_topics, watch_topics),
    Piece("new-topic", "a new topic, 100 watchers, 5,000 topics", SOME, watched_topics, create_topic),
    Piece("producers", "5,000 PRODUCER, a topic each", SOME, nothing, open_producers),
    Piece("consumers", "5,000 SUBSCRIBE, a topic each", SOME, nothing, open_consumers),
    Piece("shared-leave", "a connection with 10,000 Shared consumers ends", 10_000, shared_crowd, leave),
    Piece("key-shared-leave", "a connection with 1,500 Key_Shared consumers ends", 1_500, key_shared_crowd, leave),
    Piece("sends", "300 SEND to 3,000 subscriptions", 3_000, subscriptions, publish_to_all),
    Piece("due", "delayed messages of 3,000 topics are due", 3_000, topics, fall_due),
    Piece("backlog", "a backlog of 1 GB is read", 10_000, backlog, read_backlog),
    Piece("ws-fragments", "300,000 empty fragments over WebSocket", 300_000, nothing, ws_fragments),
    Piece("ws-pings", "300,000 pings over WebSocket", 300_000, nothing, ws_pings),
    Piece("ws-messages", "20,000 messages over WebSocket", 20_000, nothing, ws_messages),
    # CONNECT ends a connection when it comes again, so its flood comes on many connections: the piece "connects".
    *(_flood(spec) for spec in FROM_CLIENTS if spec.type != BaseCommand.CONNECT),
]
