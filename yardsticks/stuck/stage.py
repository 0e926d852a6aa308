"""The stage of a state: clients of a real broker that stay as they are until the state is recorded."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, Final, TypeVar

import trio
from anyio.abc import ByteStream

from pulsarium.client import Admin, Client, Consumer, ConsumerType, Producer, connect, connect_admin
from pulsarium.client.connection.service_url import BrokerAddress
from pulsarium.client.connection.settings import dial_tcp

T = TypeVar("T")

HOUR: Final = 3600.0
SUBSCRIPTION: Final = "billing"
SETTLE: Final = 25.0  # seconds that a state is left alone before it is recorded: more than the broker's own timers

State = Callable[["Stage"], Awaitable[None]]


class Stage:
    """A topic with the clients that a state opens on it."""

    def __init__(self, name: str, urls: tuple[str, str], admin: Admin, stack: AsyncExitStack) -> None:
        self.name = name
        self.topic = f"persistent://public/default/{name}"
        self.admin = admin
        self._url = urls[0]
        self._stack = stack
        self._stalls = False

    async def opened(self, what: AbstractAsyncContextManager[T]) -> T:
        """Open something that stays open until the state is recorded."""
        return await self._stack.enter_async_context(what)

    async def client(self, **options: Any) -> Client:
        """Return a client with a connection of its own."""
        return await self.opened(connect(self._url, **options))

    async def consumer(
        self, type: ConsumerType = ConsumerType.Shared, topic: str = "", client: Client | None = None, **options: Any
    ) -> Consumer[bytes]:
        """Return a consumer of the subscription."""
        opened = (client or await self.client()).subscribe(
            topic or self.topic, options.pop("subscription", SUBSCRIPTION), consumer_type=type, **options
        )
        return await self.opened(opened)

    async def producer(self, topic: str = "", **options: Any) -> Producer[bytes]:
        """Return a producer that sends no batches."""
        settings = {"batching_enabled": False, **options}
        return await self.opened((await self.client()).create_producer(topic or self.topic, **settings))

    async def publish(self, count: int, topic: str = "", content: bytes = b"x", **options: Any) -> None:
        """Publish messages with a producer that closes at the end."""
        async with (await self.client()).create_producer(topic or self.topic, batching_enabled=False) as producer:
            for _ in range(count):
                await producer.send(content, **options)

    async def publish_many(self, count: int) -> None:
        """Publish messages without waiting for each."""
        async with (await self.client()).create_producer(self.topic, batching_enabled=False) as producer:
            for _ in range(count):
                await producer.submit(b"x")

    async def take(self, consumer: Consumer[bytes], count: int) -> list[Any]:
        """Receive messages without acknowledging them."""
        return [await consumer.receive() for _ in range(count)]

    async def stalling(self) -> Client:
        """Return a client that reads nothing after `stall()`."""

        async def dial(address: BrokerAddress) -> ByteStream:
            return _Stalling(await dial_tcp(address), lambda: self._stalls)

        return await self.client(dial=dial, keep_alive_interval=HOUR)

    def stall(self) -> None:
        self._stalls = True


class _Stalling(ByteStream):
    def __init__(self, inner: ByteStream, stalls: Callable[[], bool]) -> None:
        self._inner, self._stalls = inner, stalls

    async def receive(self, max_bytes: int = 65536) -> bytes:
        if self._stalls():
            await trio.sleep_forever()
        return await self._inner.receive(min(max_bytes, 4096))

    async def send(self, item: bytes) -> None:
        await self._inner.send(item)

    async def send_eof(self) -> None:
        await self._inner.send_eof()

    async def aclose(self) -> None:
        await self._inner.aclose()


@asynccontextmanager
async def stage(name: str, urls: tuple[str, str]) -> AsyncIterator[Stage]:
    async with connect_admin(urls[1]) as admin, AsyncExitStack() as stack:
        yield Stage(name, urls, admin, stack)
