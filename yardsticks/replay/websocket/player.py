"""A WebSocket client that plays a scenario against any broker, and notes each answer."""

from __future__ import annotations

import json
import re
import socket
from collections import deque
from collections.abc import Mapping
from html import unescape
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    CloseConnection,
    Event,
    Ping,
    Pong,
    RejectConnection,
    RejectData,
    TextMessage,
)
from wsproto.events import Request as Upgrade

PATIENCE = 60.0  # seconds for an answer; a broker on a busy machine needs some
Noted = dict[str, Any]


class Socket:
    """A WebSocket. `status` is the HTTP status of its upgrade, and `body` the text of a refusal."""

    def __init__(self, host: str, port: int, target: str, headers: Mapping[str, str]) -> None:
        self._socket = socket.create_connection((host, port), PATIENCE)
        self._protocol = WSConnection(ConnectionType.CLIENT)
        self._events: deque[Event] = deque()
        self._text = ""
        extra = [(name.encode(), value.encode()) for name, value in headers.items()]
        self.write(Upgrade(host=f"{host}:{port}", target=target, extra_headers=extra))
        self.status, self.body = self._answer()

    def write(self, event: Event) -> None:
        self._socket.sendall(self._protocol.send(event))

    def next(self) -> Noted:
        """Return the next answer: a JSON object, a pong or the end of the connection."""
        while True:
            event = self._event()
            if isinstance(event, TextMessage):
                self._text += event.data
                if event.message_finished:
                    text, self._text = self._text, ""
                    return {"json": json.loads(text)}
            elif isinstance(event, Pong):
                return {"pong": bytes(event.payload).decode()}
            elif isinstance(event, CloseConnection):
                return {"closed": event.code, "reason": event.reason or ""}
            elif isinstance(event, Ping):
                self.write(event.response())

    def leave(self) -> list[Noted]:
        """Close the WebSocket, and return the answers that were not awaited."""
        self.write(CloseConnection(code=1000))
        rest: list[Noted] = []
        while not rest or "closed" not in rest[-1]:
            rest.append(self.next())
        self.end()
        return rest[:-1]

    def end(self) -> None:
        self._socket.close()

    def _answer(self) -> tuple[int, str]:
        status, body = 0, b""
        while True:
            event = self._event()
            if isinstance(event, AcceptConnection):
                return 101, ""
            if isinstance(event, RejectConnection):
                status = event.status_code
                if not event.has_body:
                    return status, ""
            elif isinstance(event, RejectData):
                body += bytes(event.data)
                if event.body_finished:
                    return status, title_of(body.decode())

    def _event(self) -> Event:
        while not self._events:
            data = self._socket.recv(1 << 16)
            self._protocol.receive_data(data or None)
            self._events.extend(self._protocol.events())
            if not data and not self._events:
                return CloseConnection(code=1006)
        return self._events.popleft()


def title_of(page: str) -> str:
    """Return the title of an error page, which has the error's text."""
    found = re.search(r"<title>(.*?)</title>", page, re.DOTALL)
    return page if found is None else unescape(found[1])


class Play:
    """A scenario under way. `lines` are its steps with their answers."""

    def __init__(self, admin_url: str, name: str) -> None:
        parts = urlsplit(admin_url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        self._url = admin_url
        self._sockets: dict[str, Socket] = {}
        self.name = name  # the name of the scenario, which its topics share
        self.topic = f"persistent/public/default/ws-{name}"
        self.lines: list[Noted] = []

    def __enter__(self) -> Play:
        return self

    def __exit__(self, *error: object) -> None:
        for each in self._sockets.values():
            each.end()

    def rest(self, method: str, path: str, body: Any = None) -> Any:
        """Call the admin API. Return the answer's JSON, and note nothing."""
        data = None if body is None else json.dumps(body).encode()
        request = Request(self._url + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urlopen(request, timeout=PATIENCE) as answer:
                text = answer.read()
        except HTTPError as error:
            with error:
                return {"status": error.code}
        return json.loads(text) if text else None

    def asked(self, path: str) -> None:
        """Call the admin API by GET, and note the answer."""
        self.lines.append({"get": path, "answer": self.rest("GET", path)})

    def open(self, name: str, path: str, query: str = "", **headers: str) -> int:
        """Open a WebSocket at a path below /ws, and return the status."""
        target = f"/ws/{path}" + (f"?{query}" if query else "")
        opened = Socket(
            self._host, self._port, target, {key.replace("_", "-"): value for key, value in headers.items()}
        )
        self.lines.append({"open": name, "status": opened.status, "body": opened.body})
        if opened.status == 101:
            if name in self._sockets:  # the broker closed this one
                self._sockets[name].end()
            self._sockets[name] = opened
        else:
            opened.end()
        return opened.status

    def send(self, name: str, message: Any, answers: int = 0) -> list[Noted]:
        """Send JSON, or a text as it is, and await as many answers."""
        text = message if isinstance(message, str) else json.dumps(message)
        self._sockets[name].write(TextMessage(data=text))
        return self.take(name, answers) if answers else []

    def ping(self, name: str) -> None:
        self._sockets[name].write(Ping(payload=b"are you there"))
        self.take(name)

    def take(self, name: str, answers: int = 1) -> list[Noted]:
        """Await answers, and note them."""
        found: list[Noted] = []
        for _ in range(answers):
            found.append(self._sockets[name].next())
            self.lines.append({"from": name, **found[-1]})
        return found

    def messages(self, name: str, count: int = 1) -> list[Any]:
        """Await messages of a consumer. Return them as JSON."""
        return [each["json"] for each in self.take(name, count) if "json" in each]

    def leave(self, *names: str) -> None:
        """Close WebSockets, and note the answers that nobody awaited."""
        for name in names or tuple(self._sockets):
            rest = self._sockets.pop(name).leave()
            self.lines.extend({"from": name, "unasked": True, **each} for each in rest)
