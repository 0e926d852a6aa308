"""One life of the broker, as those see it who use it: first they verify, then they make load until it is killed."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

import trio

from pulsarium.client import Client, InitialPosition, Message, MessageId, connect

from .journal import Messages, Place, number_of, numbered, place_of
from .process import Broker

CONTENT = b"x" * 2000


class Stage:
    """Where all of them meet."""

    def __init__(self, broker: Broker, chance: random.Random, number: int, parts: set[str]) -> None:
        """`parts` are the names of those who verify."""
        self.broker = broker
        self.chance = chance
        self.number = number
        self.pending = parts
        self.verified = trio.Event()
        self.loading = trio.Event()
        self._enough = trio.Event()
        self._confirmed = 0
        self._wanted = 0

    def client(self) -> AbstractAsyncContextManager[Client]:
        """A connection of its own."""
        return client_of(self.broker)

    async def has_verified(self, part: str) -> None:
        """This part has found everything; returns when all have."""
        self.pending.remove(part)
        if not self.pending:
            self.verified.set()
        await self.loading.wait()

    def confirms(self) -> None:
        """The broker has confirmed something under load."""
        self._confirmed += 1
        if self._confirmed >= self._wanted:
            self._enough.set()

    async def load(self, confirmations: int) -> None:
        """Let load begin, and return when so much of it was confirmed: a slow machine shall have as much."""
        self._wanted = confirmations
        self.loading.set()
        if confirmations:
            await self._enough.wait()

    async def pause(self, seconds: float = 0.01) -> None:
        """A moment by chance, so that load is spread over a life."""
        await trio.sleep(self.chance.random() * seconds)


class Actor(Protocol):
    """Somebody who uses the broker, and remembers over all its lives what it confirmed."""

    @property
    def parts(self) -> set[str]:
        """The names with which it calls `Stage.has_verified`."""

    async def live(self, stage: Stage) -> None:
        """Verify, then make load until it is cancelled."""


@asynccontextmanager
async def client_of(broker: Broker) -> AsyncIterator[Client]:
    """One that looks often for a broker that is away."""
    async with connect(
        broker.service_url,
        admin_url=broker.admin_url,
        operation_timeout=10.0,
        starting_backoff_interval=0.01,
        max_backoff_interval=0.05,
    ) as client:
        yield client


async def fence(client: Client, messages: Messages) -> Place:
    """Publish a message that is the last one for the time being."""
    async with client.create_producer(messages.topic, batching_enabled=False) as producer:
        number = messages.next_number()
        messages.has(number, await producer.send(b"", partition_key="fence", **numbered(number)))
    return messages.receipts[number]


async def keep_all(client: Client, topic: str) -> None:
    """Have a subscription that acknowledges nothing: without one nobody promises to keep what is in a closed ledger."""
    async with client.subscribe(topic, "keeps", start_paused=True, initial_position=InitialPosition.Earliest):
        pass


async def read(
    client: Client, topic: str, until: Place, since: MessageId = MessageId.earliest, **options: Any
) -> list[Message[bytes]]:
    """All messages behind `since` up to a place."""
    found: list[Message[bytes]] = []
    async with client.create_reader(topic, since, **options) as reader:
        while not found or place_of(found[-1].message_id()) < until:
            found.append(await reader.read_next())
    return found


def located(messages: list[Message[bytes]]) -> list[tuple[Place, int]]:
    """Where each is, and its number."""
    return [(place_of(each.message_id()), number_of(each)) for each in messages]
