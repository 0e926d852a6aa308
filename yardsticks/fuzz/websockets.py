"""Fuzz target of a WebSocket with any path, query and frames. No client may stop the broker.

An input is JSON: `[path, frame, ...]`. A frame is a text in which each character is one byte. A text that begins with a
space is sent as raw bytes without this space. All other texts are sent as text messages.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

import trio
import trio.testing
from trio.testing import memory_stream_pair
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, CloseConnection, Ping, RejectConnection, TextMessage
from wsproto.events import Request as Upgrade
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from pulsarium.broker.web.http.connection import HttpConnection
from pulsarium.broker.web.http.request import HttpClient
from pulsarium.broker.web.routes import site_of
from tests.broker.wire import Bed, plain, serving
from yardsticks.fuzz import mutations
from yardsticks.fuzz.oracle import watched
from yardsticks.fuzz.target import Target

TOPIC = "persistent/public/default/t"
PATHS = (f"v2/producer/{TOPIC}", f"v2/consumer/{TOPIC}/s", f"v2/reader/{TOPIC}", "v3/consumer/s")
QUERIES = (
    "batchingEnabled=true&batchingMaxMessages=2",
    "compressionType=LZ4",
    "encryptionKeys=eyJrIjp7ImtleVZhbHVlIjoiYXc9PSJ9fQ==",
    "pullMode=true",
    "subscriptionType=Shared&ackTimeoutMillis=1000",
    "subscriptionType=Key_Shared&maxRedeliverCount=1&negativeAckRedeliveryDelay=1",
    "messageId=earliest",
    "messageId=CAAQADAA",
    "receiverQueueSize=0",
    "topics=t,u",
    "topicsPattern=persistent://public/default/.*",
)
FRAMES = (
    '{"payload":"YQ==","properties":{"a":"1"},"key":"k","context":"c"}',
    '{"payload":"YQ==","deliverAfterMs":1,"eventTime":"2024-01-02T03:04:05Z","replicationClusters":["x"]}',
    '{"payload":"YQ==","encryptionParam":"YQ==","compressionType":"LZ4","uncompressedMessageSize":1}',
    '{"messageId":"CAAQADAA"}',
    '{"messageId":"CAAQACAAMP////8H"}',
    '{"type":"negativeAcknowledge","messageId":"CAAQADAA"}',
    '{"type":"permit","permitMessages":2}',
    '{"type":"isEndOfTopic"}',
    '{"type":"unsubscribe"}',
    " \x81\x80\0\0\0\0",
    " \x88\x80\0\0\0\0",
    " \x01\x81\0\0\0\0{",
    " \xff\xff",
)


class WebSockets(Target):
    """Frames of WebSockets."""

    name = "websocket"
    fresh = 150

    def run(self, data: bytes) -> None:
        with watched():
            trio.run(play, parts_of(data), clock=trio.testing.MockClock(autojump_threshold=0))

    def mutate(self, data: bytes, others: Sequence[bytes], random: Random) -> bytes:
        path, *frames = parts_of(data)
        _, *other = parts_of(random.choice(others)) if others else [""]
        if random.random() < 0.3:
            path = f"{random.choice(PATHS)}?{'&'.join(random.sample(QUERIES, random.randrange(3)))}"
        elif random.random() < 0.2:
            path = _damaged(path, random)
        made = mutations.list_of(frames, other, random, lambda frame: _damaged(frame, random))
        return json.dumps([path, *made[:12]]).encode()

    def seeds(self) -> Iterable[bytes]:
        for path in PATHS:
            for query in QUERIES:
                yield json.dumps([f"{path}?{query}", *FRAMES]).encode()

    def to_line(self, data: bytes) -> str:
        return data.decode()

    def of_line(self, line: str) -> bytes:
        return line.encode()


def _damaged(text: str, random: Random) -> str:
    return mutations.any_bytes(text.encode("latin-1", "replace"), random).decode("latin-1")


def parts_of(data: bytes) -> list[str]:
    """Return the path and the frames of an input."""
    try:
        found: Any = json.loads(data)
    except (ValueError, RecursionError):
        return [PATHS[0]]
    texts = [each for each in found if isinstance(each, str)] if isinstance(found, list) else []
    return texts or [PATHS[0]]


async def play(parts: list[str]) -> None:
    """Send an input on one connection, and then talk to the broker on another one."""
    async with serving() as bed, trio.open_nursery() as nursery:
        wire = await bed.connect()
        await wire.producer()
        await wire.publish(plain(b"before"))
        await _talk(bed, nursery, parts[0], parts[1:])
        assert await _talk(bed, nursery, PATHS[0], []), "the broker answers no other connection any more"
        nursery.cancel_scope.cancel()


async def _talk(bed: Bed, nursery: trio.Nursery, path: str, frames: Sequence[str]) -> bool:
    """Open a WebSocket, send frames on it, and return whether the broker answered its handshake."""
    near, far = memory_stream_pair()
    site = site_of(bed.broker)
    connection = HttpConnection(site, far, HttpClient("test", 1))  # type: ignore[arg-type]
    nursery.start_soon(connection.serve)
    client = WSConnection(ConnectionType.CLIENT)
    is_answered = False
    target = "".join(letter if " " < letter < "\x7f" else "%20" for letter in f"/ws/{path}")
    try:
        await near.send_all(client.send(Upgrade(host="localhost", target=target)))
        if is_answered := await _until(near, client, AcceptConnection, RejectConnection):
            for frame in frames:
                raw = frame.startswith(" ")
                data = frame[1:].encode("latin-1", "replace") if raw else client.send(TextMessage(data=frame))
                await near.send_all(data)
            await near.send_all(client.send(Ping()))
            with trio.move_on_after(5):  # seconds of the mock clock, in which timers of the broker fire
                await _until(near, client, CloseConnection)
    except (trio.BrokenResourceError, trio.ClosedResourceError, LocalProtocolError, RemoteProtocolError):
        pass
    finally:
        await trio.aclose_forcefully(near)
        site.stop()
    return is_answered


async def _until(stream: trio.abc.Stream, client: WSConnection, *wanted: type) -> bool:
    """Read until one of these events comes, and return False if the broker closes the connection before."""
    while True:
        data = bytes(await stream.receive_some(1 << 16))
        if not data:
            return False
        client.receive_data(data)
        if any(isinstance(event, wanted) for event in client.events()):
            return True
