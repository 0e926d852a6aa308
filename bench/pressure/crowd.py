"""Work that many clients ask for at once, or one with a large body."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Sequence
from contextlib import ExitStack
from socket import create_connection, socket
from urllib.parse import urlparse

from bench.brokers import CONNECT, Broker
from bench.pressure.admin import LIMIT_SECONDS
from bench.raw_driver import READ, Connection

REQUEST = b"GET /admin/v2/clusters HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
MESSAGE = {"text": "x" * 100, "key": "k"}


def nothing(broker: Broker, count: int) -> Connection:
    return Connection(broker.service_url)


def connects(broker: Broker, connection: Connection, count: int) -> None:
    """Connections that are open, and all say CONNECT at once."""
    _all_at_once(broker.service_url, CONNECT, count)


def requests(broker: Broker, connection: Connection, count: int) -> None:
    """HTTP connections that are open, with a request each at once."""
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
    """A seed in JSON with so many messages."""
    body = json.dumps({"topics": [{"name": "seeded", "messages": [MESSAGE] * count}]}).encode()
    request = urllib.request.Request(
        f"{broker.admin_url}/lab/seed", body, {"Content-Type": "application/json"}, method="POST"
    )
    with urllib.request.urlopen(request, timeout=LIMIT_SECONDS) as answer:
        answer.read()
