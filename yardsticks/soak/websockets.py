"""A load of WebSockets that publish and consume, and that leave without a closing handshake."""

from __future__ import annotations

import base64
from urllib.parse import urlsplit

import anyio
import trio

from pulsarium.client import MessageId
from tests.broker.web.websocket.talk import Talk

from .guests import SUBSCRIPTION
from .load import NUMBERS, QUIET_SECONDS, Load, Site

MOST_AT_ONCE = 40  # messages of one WebSocket


class WebSockets(Load):
    """WebSockets on one topic. A consumer must receive every published message, even if others leave in the middle."""

    def __init__(self, site: Site) -> None:
        super().__init__(site, "websockets")
        self._topic = self.topic()
        self._path = self._topic.replace("://", "/")
        self._account = self.account()

    async def run(self) -> None:
        topics = self.site.admin.topics
        await topics.create_non_partitioned_topic(self._topic)
        await topics.create_subscription(self._topic, SUBSCRIPTION, MessageId.earliest)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._consume)
            number = 0
            while not self.site.stopping:
                number = await self._publish(number, self.chance.randrange(1, MOST_AT_ONCE))
                await self.site.pause(self.chance.random())
            await self.settled(self._account, self._topic, SUBSCRIPTION)
            self.is_over = True

    async def _open(self, path: str) -> Talk:
        parts = urlsplit(self.site.admin_url)
        host, port = parts.hostname or "127.0.0.1", parts.port or 80
        talk = Talk(await trio.open_tcp_stream(host, port), path, {}, f"{host}:{port}")
        await talk.open()
        if talk.status != 101:
            self._account.violate(f"{path} got {talk.status}: {talk.refusal!r}")
        return talk

    async def _publish(self, number: int, count: int) -> int:
        """Publish messages on a WebSocket of their own. Return the next number."""
        batches = "batchingEnabled=true" if self.chance.random() < 0.5 else ""
        talk = await self._open(f"v2/producer/{self._path}?{batches}")
        async with talk.stream:
            for each in range(number, number + count):
                await talk.send({"payload": base64.b64encode(self.content(each)).decode(), "context": str(each)})
            for each in range(number, number + count):
                receipt = await talk.frame()
                if receipt["result"] == "ok" and receipt["context"] == str(each):
                    self._account.publish(each)
                else:
                    self._account.violate(f"{each} was refused: {receipt}")
        return number + count

    async def _consume(self) -> None:
        while not self.is_over:
            talk = await self._open(f"v2/consumer/{self._path}/{SUBSCRIPTION}?subscriptionType=Shared")
            async with talk.stream:
                await self._receive(talk, self.chance.randrange(1, MOST_AT_ONCE))

    async def _receive(self, talk: Talk, count: int) -> None:
        while count and not self.is_over:
            count -= 1
            with anyio.move_on_after(QUIET_SECONDS):
                frame = await talk.frame()
                self._account.saw(NUMBERS.unpack_from(base64.b64decode(frame["payload"]))[0])
                await talk.send({"messageId": frame["messageId"]})
