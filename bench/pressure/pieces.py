"""The measured pieces of work: one HTTP request, one command with many ids, many clients at once."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from socket import create_connection, socket
from urllib.parse import urlparse

from bench.brokers import CONNECT, Broker
from bench.pressure.loop import Piece
from bench.raw_driver import (
    CONSUMER_ID,
    PING,
    READ,
    Connection,
    empty_ack,
    flow,
    open_producer,
    send_all,
    send_segments,
    subscribe,
)
from bench.scale.driving import ask_all, consumer
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand, MessageIdData

NAMESPACE = "public/many"
SUBSCRIBED = "public/default/subscribed"
LIMIT_SECONDS = 120


def many_topics(broker: Broker, count: int) -> Connection:
    """Create topics with a consumer each, all of one connection."""
    with suppress(urllib.error.HTTPError):  # the namespace exists
        ask(broker, f"/admin/v2/namespaces/{NAMESPACE}", "PUT")
    connection = Connection(broker.service_url)
    ask_all(
        connection,
        [consumer(f"persistent://{NAMESPACE}/{number}", number) for number in range(count)],
        BaseCommand.SUCCESS,
    )
    return connection


def unload(broker: Broker, connection: Connection, count: int) -> None:
    ask(broker, f"/admin/v2/namespaces/{NAMESPACE}/unload", "PUT")


def many_subscriptions(broker: Broker, count: int) -> Connection:
    """Create subscriptions of one topic, whose consumers have left."""
    connection = Connection(broker.service_url)
    commands = [consumer(f"persistent://{SUBSCRIBED}", number) for number in range(count)]
    for number, command in enumerate(commands):
        command.subscribe.subscription = f"subscription-{number}"
    ask_all(connection, commands, BaseCommand.SUCCESS)
    connection.socket.close()
    ask(broker, "/admin/v2/brokers/ready")  # the first request is slower than others
    return Connection(broker.service_url)


def metrics(broker: Broker, connection: Connection, count: int) -> None:
    ask(broker, "/metrics/")


def stats(broker: Broker, connection: Connection, count: int) -> None:
    ask(broker, f"/admin/v2/persistent/{SUBSCRIBED}/stats")


def internal(broker: Broker, connection: Connection, count: int) -> None:
    ask(broker, f"/admin/v2/persistent/{SUBSCRIBED}/internalStats")


def page(broker: Broker, connection: Connection, count: int) -> None:
    ask(broker, "/pulsarium/topics")


def clear_backlog(broker: Broker, connection: Connection, count: int) -> None:
    ask(broker, f"/admin/v2/namespaces/{NAMESPACE}/clearBacklog", "POST")


def ask(broker: Broker, path: str, method: str = "GET") -> None:
    """Make a request, and read the whole answer."""
    request = urllib.request.Request(broker.admin_url + path, method=method)
    with urllib.request.urlopen(request, timeout=LIMIT_SECONDS) as answer:
        while answer.read(READ):
            pass


REQUEST = b"GET /admin/v2/clusters HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
MESSAGE = {"text": "x" * 100, "key": "k"}


def nothing(broker: Broker, count: int) -> Connection:
    return Connection(broker.service_url)


def connects(broker: Broker, connection: Connection, count: int) -> None:
    """Open connections, which all send CONNECT at once."""
    _all_at_once(broker.service_url, CONNECT, count)


def requests(broker: Broker, connection: Connection, count: int) -> None:
    """Open HTTP connections, which all make a request at once."""
    _all_at_once(broker.admin_url, REQUEST, count)


def _all_at_once(url: str, first: bytes, count: int) -> None:
    where = urlparse(url)
    with ExitStack() as stack:
        _for_each([stack.enter_context(create_connection((where.hostname, where.port))) for _ in range(count)], first)


def _for_each(opened: Sequence[socket], first: bytes) -> None:
    for each in opened:
        each.settimeout(LIMIT_SECONDS)
        each.sendall(first)
    for each in opened:
        each.recv(READ)


def seed(broker: Broker, connection: Connection, count: int) -> None:
    """Apply a JSON seed with so many messages."""
    body = json.dumps({"topics": [{"name": "seeded", "messages": [MESSAGE] * count}]}).encode()
    request = urllib.request.Request(
        f"{broker.admin_url}/lab/seed", body, {"Content-Type": "application/json"}, method="POST"
    )
    with urllib.request.urlopen(request, timeout=LIMIT_SECONDS) as answer:
        answer.read()


MANY_IDS = "persistent://public/default/many-ids"
SMALL = 8


def owed(broker: Broker, count: int) -> Connection:
    """Publish messages to a topic whose Shared consumer receives as many as maxUnackedMessagesPerConsumer allows."""
    subscribe(connection := Connection(broker.service_url), MANY_IDS)
    connection.socket.close()  # this connection would not answer PINGs
    producer = Connection(broker.service_url)
    with producer.socket:
        open_producer(producer, MANY_IDS)
        send_all(producer, send_segments(count, SMALL))
    connection = Connection(broker.service_url)
    connection.socket.settimeout(LIMIT_SECONDS)
    subscribe(connection, MANY_IDS)
    connection.send(flow(CONSUMER_ID, count))
    return connection


def acknowledge(broker: Broker, connection: Connection, count: int) -> None:
    command = empty_ack()
    command.ack.message_id.extend(ids(connection, count))
    command.ack.request_id = 2
    connection.send(command)
    connection.expect(BaseCommand.ACK_RESPONSE)


def redeliver(broker: Broker, connection: Connection, count: int) -> None:
    command = BaseCommand(type=BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES)
    command.redeliverUnacknowledgedMessages.consumer_id = CONSUMER_ID
    command.redeliverUnacknowledgedMessages.message_ids.extend(ids(connection, count))
    connection.send(command)
    connection.send(BaseCommand.FromString(PING))  # the broker answers this after the redelivery
    connection.expect(BaseCommand.PONG)


def ids(connection: Connection, count: int) -> list[MessageIdData]:
    """Return the ids of all messages of the topic, in the order of publishing."""
    first = connection.expect(BaseCommand.MESSAGE).message.message_id
    return [MessageIdData(ledgerId=first.ledgerId, entryId=number) for number in range(count)]


TOPICS = 20_000
SUBSCRIPTIONS = 30_000
ACKED = 400_000
REDELIVERED = 300_000
CONNECTIONS = 2_000
REQUESTS = 1_000
SEEDED = 125_000  # messages of 134 bytes

PIECES = [
    Piece("clear", "the backlog of 20,000 topics is cleared", TOPICS, many_topics, clear_backlog),
    Piece("unload", "a namespace of 20,000 topics is unloaded", TOPICS, many_topics, unload),
    Piece("metrics", "/metrics, 30,000 subscriptions", SUBSCRIPTIONS, many_subscriptions, metrics),
    Piece("stats", "stats of a topic, 30,000 subscriptions", SUBSCRIPTIONS, many_subscriptions, stats),
    Piece("internal", "internalStats, 30,000 subscriptions", SUBSCRIPTIONS, many_subscriptions, internal),
    Piece("page", "the page at /, 30,000 subscriptions", SUBSCRIPTIONS, many_subscriptions, page),
    Piece("ack", "one ACK of 400,000 message ids", ACKED, owed, acknowledge),
    Piece("redeliver", "one REDELIVER of 300,000 message ids", REDELIVERED, owed, redeliver),
    Piece("connects", "2,000 connections say CONNECT at once", CONNECTIONS, nothing, connects),
    Piece("requests", "1,000 HTTP requests at once, a connection each", REQUESTS, nothing, requests),
    Piece("seed", "a seed of 16 MB in JSON", SEEDED, nothing, seed),
]
