"""A WebSocket client for tests, on a broker's HTTP port."""

from __future__ import annotations

import base64
import json
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    CloseConnection,
    Event,
    Ping,
    Pong,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)

from pulsarium.broker.config import PIP, Config, Profile
from pulsarium.broker.storage.interface import Storage
from tests.broker.web.http.served import Served, served

TOPIC = "persistent/public/default/t"
PRODUCER, CONSUMER, READER = f"v2/producer/{TOPIC}", f"v2/consumer/{TOPIC}/sub", f"v2/reader/{TOPIC}"


def message(text: str, **fields: Any) -> dict[str, Any]:
    return {"payload": base64.b64encode(text.encode()).decode(), **fields}


def text_of(frame: dict[str, Any]) -> str:
    return base64.b64decode(frame["payload"]).decode()


class Talk:
    """A WebSocket. `status` is the HTTP status of its upgrade, `refusal` the body of a refusal."""

    def __init__(self, stream: trio.SocketStream, path: str, headers: dict[str, str], host: str) -> None:
        self.stream = stream
        self.protocol = WSConnection(ConnectionType.CLIENT)
        self.status = 0
        self.refusal = b""
        extra = [(name.encode(), value.encode()) for name, value in headers.items()]
        self._opening = self.protocol.send(Request(host=host, target=f"/ws/{path}", extra_headers=extra))
        self._events: deque[Event] = deque()
        self._text = ""

    async def open(self) -> None:
        await self.stream.send_all(self._opening)
        while True:
            event = await self.event()
            if isinstance(event, AcceptConnection):
                self.status = 101
                return
            if isinstance(event, RejectConnection):
                self.status = event.status_code
            elif isinstance(event, RejectData):
                self.refusal += bytes(event.data)
                if event.body_finished:
                    return

    async def event(self) -> Event:
        while not self._events:
            data = bytes(await self.stream.receive_some(1 << 16))
            if not data:
                return CloseConnection(code=1006)
            self.protocol.receive_data(data)
            self._events.extend(self.protocol.events())
        return self._events.popleft()

    async def send(self, frame: Any) -> None:
        text = frame if isinstance(frame, str) else json.dumps(frame)
        await self.stream.send_all(self.protocol.send(TextMessage(data=text)))

    async def frame(self) -> dict[str, Any]:
        """Return the next JSON frame."""
        while True:
            event = await self.event()
            assert isinstance(event, TextMessage), event
            self._text += event.data
            if event.message_finished:
                text, self._text = self._text, ""
                found: dict[str, Any] = json.loads(text)
                return found

    async def ask(self, frame: Any) -> dict[str, Any]:
        await self.send(frame)
        return await self.frame()

    async def texts(self, count: int) -> list[str]:
        return [text_of(await self.frame()) for _ in range(count)]

    async def alive(self) -> None:
        """Expect nothing but the answer to a ping."""
        await self.stream.send_all(self.protocol.send(Ping()))
        event = await self.event()
        assert isinstance(event, Pong), event

    async def closing(self) -> tuple[int, str]:
        """Expect the end of the connection. Return its code and reason."""
        event = await self.event()
        assert isinstance(event, CloseConnection), event
        return event.code, event.reason or ""


class Client:
    """WebSockets to one broker."""

    def __init__(self, http: Served) -> None:
        self.http = http
        self.broker = http.broker
        self._open: list[Talk] = []

    async def talk(self, path: str, query: str = "", host: str = "localhost", **headers: str) -> Talk:
        """Open a WebSocket, which the broker may refuse."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        stream = await self.http.connect()
        found = Talk(stream, f"{path}?{query}" if query else path, named, host)
        self._open.append(found)
        await found.open()
        return found

    async def publish(self, *texts: str, path: str = PRODUCER, query: str = "", **fields: Any) -> list[dict[str, Any]]:
        """Publish messages through a WebSocket of their own."""
        producer = await self.talk(path, query)
        answers = [await producer.ask(message(text, **fields)) for text in texts]
        await producer.stream.aclose()
        return answers

    async def aclose(self) -> None:
        for each in self._open:
            await each.stream.aclose()


@asynccontextmanager
async def websockets(
    config: Config | None = None, storage: Storage | None = None, profile: Profile = PIP
) -> AsyncIterator[Client]:
    """Serve a broker on a port, and yield its WebSocket clients."""
    async with served(config, storage=storage, profile=profile) as http:
        client = Client(http)
        try:
            yield client
        finally:
            await client.aclose()
