"""A load: something that clients do to a broker for a while, and what has to be true of it afterwards."""

from __future__ import annotations

import random
import struct
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio

from pulsarium.client import Admin, AdminError, Client, Consumer, Message, MessageOptions, Producer, PulsarError

from .account import Account

SETTLE_SECONDS = 60.0
ASK_EVERY_SECONDS = 0.25
QUIET_SECONDS = 0.5  # a consumer looks this often whether it is over
NUMBERS = struct.Struct(">QIQ")  # number, lane, when it may be delivered (ms)


class Site:
    """Where loads of one process run: a client, its REST API, chance, and whether it is over."""

    def __init__(self, client: Client, admin: Admin, service_url: str, admin_url: str, seed: int, prefix: str) -> None:
        self.client = client
        self.admin = admin
        self.service_url = service_url
        self.admin_url = admin_url
        self.seed = seed
        self.prefix = prefix
        self._stopped = anyio.Event()

    @property
    def stopping(self) -> bool:
        """Whether nothing more is published."""
        return self._stopped.is_set()

    def stop(self) -> None:
        self._stopped.set()

    async def pause(self, seconds: float) -> None:
        """Sleep, but not beyond the end."""
        with anyio.move_on_after(seconds):
            await self._stopped.wait()


class Load(ABC):
    """Its topics are its own. `run` publishes until the site stops, and goes on until all is accounted for."""

    def __init__(self, site: Site, name: str) -> None:
        self.site = site
        self.name = name
        self.chance = random.Random(f"{site.seed} {site.prefix} {name}")
        self.accounts: list[Account] = []
        self.partitioned: set[str] = set()  # of its topics
        self.is_over = False  # all is accounted for

    async def arrivals(self, consumer: Consumer[bytes]) -> AsyncIterator[Message[bytes]]:
        """Every message that comes, until it is over."""
        while not self.is_over:
            if (message := await taken(consumer)) is not None:
                yield message

    @abstractmethod
    async def run(self) -> None:
        """Publish and consume."""

    def topic(self, namespace: str = "soak/plain", name: str = "") -> str:
        return f"persistent://{namespace}/{self.site.prefix}-{self.name}{name}"

    def account(self, name: str = "", *, ordered: bool = False, once: bool = False) -> Account:
        made = Account(f"{self.site.prefix} {self.name}{name}", ordered=ordered, once=once)
        self.accounts.append(made)
        return made

    def content(self, number: int, lane: int = 0, due: int = 0, size: int = 0) -> bytes:
        return NUMBERS.pack(number, lane, due) + self.chance.randbytes(size or self.chance.randrange(10, 1000))

    async def settled(self, account: Account, topic: str, subscription: str) -> None:
        """Everything that was confirmed is seen, and the subscription's backlog is gone."""
        await until(lambda: _is_complete(account), lambda: account.violate(f"never seen: {account.missing}"))
        backlog = -1

        async def is_drained() -> bool:
            nonlocal backlog
            backlog = await self.backlog(topic, subscription)
            return backlog == 0

        await until(is_drained, lambda: account.violate(f"{backlog} entries are left of its backlog"))

    async def backlog(self, topic: str, subscription: str) -> int:
        topics = self.site.admin.topics
        if topic in self.partitioned:
            found = (await topics.get_partitioned_stats(topic))["subscriptions"]
        else:
            found = (await topics.get_stats(topic))["subscriptions"]
        return found[subscription]["msgBacklog"]


async def _is_complete(account: Account) -> bool:
    return account.is_complete


async def until(check: Callable[[], Awaitable[bool]], otherwise: Callable[[], None]) -> None:
    with anyio.move_on_after(SETTLE_SECONDS):
        while True:
            if await check():
                return
            await anyio.sleep(ASK_EVERY_SECONDS)
    otherwise()


@asynccontextmanager
async def producing(site: Site, topic: str, **options: object) -> AsyncIterator[Producer[bytes]]:
    async with site.client.create_producer(topic, **options) as producer:  # type: ignore[arg-type]
        yield producer


async def burst(
    producer: Producer[bytes], account: Account, messages: list[tuple[int, int, bytes, MessageOptions]]
) -> None:
    """Publish messages (number, lane, content, options) in a row, and wait for all of their receipts."""
    receipts = [await producer.submit(content, **options) for _, _, content, options in messages]
    await producer.flush()
    for (number, lane, _, _), receipt in zip(messages, receipts, strict=True):
        try:
            await receipt.wait()
        except PulsarError as error:
            account.violate(f"{number} of lane {lane} was refused: {error!r}")
        else:
            account.publish(number, lane)


async def taken(consumer: Consumer[bytes]) -> Message[bytes] | None:
    """The next message, if one comes soon."""
    with anyio.move_on_after(QUIET_SECONDS):
        return await consumer.receive()
    return None


async def politely(call: Awaitable[object], *expected: type[AdminError]) -> bool:
    """A REST call that may come too early or too late; whether it was done."""
    try:
        await call
    except expected:
        return False
    return True
