"""A life of the broker for its actors, which first verify their data and then make load until the kill."""

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
    """The meeting point of all actors during one life of the broker."""

    def __init__(self, broker: Broker, chance: random.Random, number: int, parts: set[str]) -> None:
        """Begin a life of the broker, in which each of `parts` has to verify its data."""
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
        """Return a client of the broker with its own connection."""
        return client_of(self.broker)

    async def has_verified(self, part: str) -> None:
        """Record that a part has verified its data, and wait until load begins."""
        self.pending.remove(part)
        if not self.pending:
            self.verified.set()
        await self.loading.wait()

    def confirms(self) -> None:
        """Count a confirmation of the broker under load."""
        self._confirmed += 1
        if self._confirmed >= self._wanted:
            self._enough.set()

    async def load(self, confirmations: int) -> None:
        """Let load begin, and return after so many confirmations, so that a slow machine has as much load."""
        self._wanted = confirmations
        self.loading.set()
        if confirmations:
            await self._enough.wait()

    async def pause(self, seconds: float = 0.01) -> None:
        """Sleep for a random time of at most `seconds`, so that load is spread over the life of the broker."""
        await trio.sleep(self.chance.random() * seconds)


class Actor(Protocol):
    """A user of the broker that remembers, over all lives of the broker, what the broker confirmed."""

    @property
    def parts(self) -> set[str]:
        """Return the names with which the actor calls `Stage.has_verified`."""

    async def live(self, stage: Stage) -> None:
        """Verify the data, then make load until the task is canceled."""


@asynccontextmanager
async def client_of(broker: Broker) -> AsyncIterator[Client]:
    """Yield a client that reconnects often while the broker is down."""
    async with connect(
        broker.service_url,
        admin_url=broker.admin_url,
        operation_timeout=60.0,
        starting_backoff_interval=0.01,
        max_backoff_interval=0.05,
    ) as client:
        yield client


async def fence(client: Client, messages: Messages) -> Place:
    """Publish a message to the end of the topic while no other client publishes, and return its position."""
    async with client.create_producer(messages.topic, batching_enabled=False) as producer:
        number = messages.next_number()
        messages.has(number, await producer.send(b"", partition_key="fence", **numbered(number)))
    return messages.receipts[number]


async def keep_all(client: Client, topic: str) -> None:
    """Create a subscription that acknowledges nothing, because without one the broker may delete closed ledgers."""
    async with client.subscribe(topic, "keeps", start_paused=True, initial_position=InitialPosition.Earliest):
        pass


async def read(
    client: Client, topic: str, until: Place, since: MessageId = MessageId.earliest, **options: Any
) -> list[Message[bytes]]:
    """Read the messages behind `since`, up to and with the one at `until`."""
    found: list[Message[bytes]] = []
    async with client.create_reader(topic, since, **options) as reader:
        while not found or place_of(found[-1].message_id()) < until:
            found.append(await reader.read_next())
    return found


def located(messages: list[Message[bytes]]) -> list[tuple[Place, int]]:
    """Return the position and the number of each message."""
    return [(place_of(each.message_id()), number_of(each)) for each in messages]
