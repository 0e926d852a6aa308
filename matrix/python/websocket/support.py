"""Support for the scenarios of websocket-client: sockets of the WebSocket API, and messages on them."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import websocket

from pulsarium.matrix.python.lines import PATIENCE, QUIET, Failure, Lines, equal, that

Message = dict[str, Any]
Socket = websocket.WebSocket


class Sockets:
    """Opens the sockets of one scenario, and closes them at its end."""

    def __init__(self, http_url: str, **options: Any) -> None:
        self._url = re.sub("^http", "ws", http_url)
        self._options = options
        self._open: list[Socket] = []

    def producer(self, topic: str, **query: object) -> Socket:
        return self._opened(f"v2/producer/{_path(topic)}", query)

    def consumer(self, topic: str, **query: object) -> Socket:
        return self._opened(f"v2/consumer/{_path(topic)}/s", {"subscriptionInitialPosition": "Earliest", **query})

    def consumer_of_several(self, **query: object) -> Socket:
        return self._opened("v3/consumer/s", {"subscriptionInitialPosition": "Earliest", **query})

    def reader(self, topic: str, message_id: str) -> Socket:
        return self._opened(f"v2/reader/{_path(topic)}", {"messageId": message_id})

    def _opened(self, path: str, query: dict[str, object]) -> Socket:
        url = f"{self._url}/ws/{path}?{urlencode(query)}"
        found = websocket.create_connection(url, timeout=PATIENCE, **self._options)
        self._open.append(found)
        return found

    def close(self) -> None:
        for each in self._open:
            each.close()


@contextmanager
def sockets(cell: Lines, url: str = "", **options: Any) -> Iterator[Sockets]:
    """Yield the sockets of a scenario, and close them at the end."""
    found = Sockets(url or cell.http_url, **options)
    try:
        yield found
    finally:
        found.close()


def _path(topic: str) -> str:
    return topic.replace("://", "/")


def say(socket: Socket, **frame: object) -> None:
    socket.send(json.dumps(frame))


def hear(socket: Socket, seconds: float = PATIENCE) -> Message | None:
    """Return the next frame, or None if there is none in time."""
    socket.settimeout(seconds)
    try:
        return dict(json.loads(socket.recv()))
    except websocket.WebSocketTimeoutException:
        return None
    finally:
        socket.settimeout(PATIENCE)


def send(producer: Socket, payloads: Sequence[str], **fields: object) -> list[str]:
    """Publish without waiting for each message, and return the ids in order."""
    for number, payload in enumerate(payloads):
        say(producer, payload=base64.b64encode(payload.encode()).decode(), context=str(number), **fields)
    receipts = [hear(producer) or {} for _ in payloads]
    that(all(each.get("result") == "ok" for each in receipts), f"refused: {receipts}")
    equal([each["context"] for each in receipts], [str(number) for number in range(len(payloads))], "receipts")
    return [each["messageId"] for each in receipts]


def receive(consumer: Socket, count: int) -> list[Message]:
    found: list[Message] = []
    while len(found) < count:
        message = hear(consumer)
        if message is None:
            raise Failure(f"only {len(found)} of {count} messages arrived")
        found.append(message)
    return found


def text(message: Message) -> str:
    return base64.b64decode(message["payload"]).decode()


def acknowledge(consumer: Socket, message: Message) -> None:
    say(consumer, messageId=message["messageId"])


def nack(consumer: Socket, message: Message) -> None:
    say(consumer, type="negativeAcknowledge", messageId=message["messageId"])


def consume(consumer: Socket, count: int) -> list[str]:
    """Return the texts of the next messages after acknowledging each."""
    found = receive(consumer, count)
    for message in found:
        acknowledge(consumer, message)
    return [text(message) for message in found]


def share(consumers: Sequence[Socket], count: int) -> list[tuple[int, Message]]:
    """Return the next messages of several consumers, each with its consumer's number, after acknowledging them."""
    found: list[tuple[int, Message]] = []
    end = time.monotonic() + PATIENCE
    while len(found) < count and time.monotonic() < end:
        for number, consumer in enumerate(consumers):
            while message := hear(consumer, 0.05):
                acknowledge(consumer, message)
                found.append((number, message))
    equal(len(found), count, "messages")
    return found


def nothing_more(consumer: Socket) -> None:
    if message := hear(consumer, QUIET):
        raise Failure(f"an unexpected message arrived: {message!r:.60}")


def refused(status: int, call: Callable[[], object]) -> None:
    """Check that the broker answers this HTTP status in place of a WebSocket."""
    try:
        call()
    except websocket.WebSocketBadStatusException as refusal:
        equal(refusal.status_code, status, "status")
    else:
        raise Failure(f"not refused with {status}")


LEDGER, ENTRY, PARTITION, BATCH_INDEX = 1, 2, 3, 4


def place(message_id: str) -> dict[int, int]:
    """Return the numbers in a message id, by the field numbers of MessageIdData, which has varints only."""
    found: dict[int, int] = {}
    rest = iter(base64.b64decode(message_id))
    for tag in rest:
        number, shift = 0, 0
        for byte in rest:
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        found[tag >> 3] = number
    return found
