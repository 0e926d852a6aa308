"""Base class of loads. A load is what clients do to a broker for a while, and what must be true afterwards."""

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
QUIET_SECONDS = 0.5  # time after which a consumer without a message checks whether its load is over
NUMBERS = struct.Struct(">QIQ")  # number, lane, and earliest delivery in milliseconds since the epoch


class Site:
    """The surroundings of all loads of one process: clients, URLs, the seed, and whether the loads must stop."""

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
        """Return whether the loads must publish no more messages."""
        return self._stopped.is_set()

    def stop(self) -> None:
        self._stopped.set()

    async def pause(self, seconds: float) -> None:
        """Sleep for a time, or until the loads must stop."""
        with anyio.move_on_after(seconds):
            await self._stopped.wait()


class Load(ABC):
    """A load with topics of its own.

    Its `run` publishes until the site stops, and consumes until all messages are accounted for.
    """

    def __init__(self, site: Site, name: str) -> None:
        self.site = site
        self.name = name
        self.chance = random.Random(f"{site.seed} {site.prefix} {name}")
        self.accounts: list[Account] = []
        self.partitioned: set[str] = set()  # the partitioned ones of its topics
        self.is_over = False  # whether all messages are accounted for

    async def arrivals(self, consumer: Consumer[bytes]) -> AsyncIterator[Message[bytes]]:
        """Yield every message that the consumer receives, until the load is over."""
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
        """Wait until all confirmed messages are seen and the subscription has no backlog, or report violations."""
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


async def taken(consumer: Consumer[bytes], within: float = QUIET_SECONDS) -> Message[bytes] | None:
    """Return the next message, or None if none comes within so many seconds."""
    with anyio.move_on_after(within):
        return await consumer.receive()
    return None


async def politely(call: Awaitable[object], *expected: type[AdminError]) -> bool:
    """Await a REST call that may fail with an expected error, and return whether the call succeeded."""
    try:
        await call
    except expected:
        return False
    return True
