"""REST calls to a broker without a port."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from pulsarium.broker.cluster import Broker
from pulsarium.broker.model.namespace.ownership import Ownership
from pulsarium.broker.web.http.reply import gathered
from pulsarium.broker.web.http.request import HttpClient, HttpRequest
from pulsarium.broker.web.routes import site_of
from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import TOPIC, Bed

NOTHING = object()
ADMIN = "/admin/v2"
NAME = TopicName.parse(TOPIC)
TENANTS = f"{ADMIN}/tenants"
NAMESPACES = f"{ADMIN}/namespaces"
TOPICS = f"{ADMIN}/persistent/public/default"
NON_PERSISTENT = f"{ADMIN}/non-persistent/public/default"


@dataclass(frozen=True)
class Answer:
    """An answer to a REST call."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def reason(self) -> str:
        """Return the reason of an error of Pulsar."""
        value = self.json
        assert list(value) == ["reason"]
        reason: str = value["reason"]
        return reason


class Rest:
    """An admin client of one broker."""

    def __init__(self, broker: Broker) -> None:
        self.site = site_of(broker)
        self.caller = HttpClient("?", 0)

    async def call(self, method: str, url: str, value: Any = NOTHING, *, body: Any = b"", **headers: str) -> Answer:
        """Send `value` as JSON, or `body` (bytes, or pieces of them) as it is. Keywords become headers."""
        if value is not NOTHING:
            body = json.dumps(value).encode()
        pieces: Iterator[bytes] = iter([body] if isinstance(body, bytes) else body)
        given = {"accept": "application/json", "host": "broker.internal:8080", **headers}
        if body:
            given.setdefault("content_type", "application/json")

        async def receive() -> bytes:
            return next(pieces, b"")

        lines = [(name.replace("_", "-").encode(), text.encode()) for name, text in given.items()]
        return await self.ask(HttpRequest(method, url.encode(), lines, self.caller, receive))

    async def ask(self, request: HttpRequest) -> Answer:
        """Send a request, and return the answer as it is sent. Raise `ClientGone` when the client has gone."""
        with ExitStack() as until_sent:
            reply = await self.site.answer(request, until_sent)
            body = b"".join(await gathered(reply.pieces)) + reply.body
            if reply.file is not None:
                body = reply.file.read_bytes()
        headers = {name.decode(): text.decode("latin-1") for name, text in reply.head(len(body))}
        return Answer(reply.status, headers, body)

    async def get(self, url: str, **headers: str) -> Any:
        """Expect a GET to succeed, and return its JSON."""
        answer = await self.call("GET", url, **headers)
        assert answer.status == 200, answer
        return answer.json

    async def done(self, method: str, url: str, value: Any = NOTHING) -> None:
        """Make a change, and expect 204."""
        answer = await self.call(method, url, value)
        assert (answer.status, answer.body) == (204, b""), answer

    async def refused(self, method: str, url: str, value: Any = NOTHING) -> tuple[int, str]:
        """Expect that a call is refused, and return status and reason."""
        answer = await self.call(method, url, value)
        assert answer.status >= 400, answer
        return answer.status, answer.reason


def rest_of(bed: Bed, broker: int = 0) -> Rest:
    """Return the admin API of one broker. Ports count up from 6650 and 8080."""
    for index, each in enumerate(bed.brokers):
        each.listening(6650 + index, 8080 + index)
    return Rest(bed.brokers[broker])


def give(bed: Bed, broker: int, topic: TopicName = NAME) -> None:
    """Give the bundle of a topic to a broker."""
    ownership: Ownership = bed.broker.cluster.ownership  # type: ignore[type-arg]
    bundle = ownership.bundle_of(topic)
    assert bundle is not None
    ownership.assign("public/default", bundle, bed.brokers[broker])
