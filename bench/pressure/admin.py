"""Work that one HTTP request asks for."""

from __future__ import annotations

import urllib.error
import urllib.request
from contextlib import suppress

from bench.brokers import Broker
from bench.raw_driver import READ, Connection
from bench.scale.driving import ask_all, consumer
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand

NAMESPACE = "public/many"
TOPIC = "public/default/subscribed"
LIMIT_SECONDS = 120


def many_topics(broker: Broker, count: int) -> Connection:
    """Topics with a consumer each, all of one connection."""
    with suppress(urllib.error.HTTPError):  # it is there
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
    """Subscriptions of one topic, whose consumers are gone."""
    connection = Connection(broker.service_url)
    commands = [consumer(f"persistent://{TOPIC}", number) for number in range(count)]
    for number, command in enumerate(commands):
        command.subscribe.subscription = f"subscription-{number}"
    ask_all(connection, commands, BaseCommand.SUCCESS)
    connection.socket.close()
    ask(broker, "/admin/v2/brokers/ready")  # the first request is slower than others
    return Connection(broker.service_url)


def metrics(broker: Broker, connection: Connection, count: int) -> None:
    ask(broker, "/metrics/")


def stats(broker: Broker, connection: Connection, count: int) -> None:
    ask(broker, f"/admin/v2/persistent/{TOPIC}/stats")


def internal(broker: Broker, connection: Connection, count: int) -> None:
    ask(broker, f"/admin/v2/persistent/{TOPIC}/internalStats")


def page(broker: Broker, connection: Connection, count: int) -> None:
    ask(broker, "/pulsarium/topics")


def clear_backlog(broker: Broker, connection: Connection, count: int) -> None:
    ask(broker, f"/admin/v2/namespaces/{NAMESPACE}/clearBacklog", "POST")


def ask(broker: Broker, path: str, method: str = "GET") -> None:
    """Makes a request and reads all of its answer."""
    request = urllib.request.Request(broker.admin_url + path, method=method)
    with urllib.request.urlopen(request, timeout=LIMIT_SECONDS) as answer:
        while answer.read(READ):
            pass
