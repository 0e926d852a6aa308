"""Set up the broker for tests of the console, and ask for its state afterwards."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pulsar

from pulsarium.broker.testing import PulsarBroker

JSON = "application/json"


def asked(broker: PulsarBroker, path: str, method: str = "GET", body: Any = None, **headers: str) -> Any:
    """Make a REST call, and return the JSON of its answer."""
    data = None if body is None else json.dumps(body).encode()
    given = {"Content-Type": JSON, "Accept": JSON, **headers}
    request = urllib.request.Request(f"{broker.admin_url}/{path}", data, given, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def exists(broker: PulsarBroker, path: str) -> bool:
    """Return whether a GET finds something."""
    try:
        asked(broker, path)
    except urllib.error.HTTPError as error:
        with error:
            if error.code != 404:
                raise
            return False
    return True


@contextmanager
def client_of(broker: PulsarBroker) -> Iterator[pulsar.Client]:
    client = pulsar.Client(broker.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    try:
        yield client
    finally:
        client.close()


def publish(broker: PulsarBroker, topic: str, count: int) -> None:
    """Publish messages, which a subscription `sub` keeps."""
    broker.create_topic(topic)
    asked(broker, f"admin/v2/persistent/{topic}/subscription/sub", "PUT", {"ledgerId": -1, "entryId": -1})
    messages = [{"payload": f"message {number}", "key": str(number)} for number in range(count)]
    asked(broker, f"topics/persistent/{topic}", "POST", {"producerName": "p", "messages": messages})
