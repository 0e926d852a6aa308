"""Support for the scenarios of Pulsarium's own client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio

from pulsarium.client import Client, Consumer, ConsumerType, InitialPosition, Message, MessageId, Producer, connect
from pulsarium.matrix.python.lines import PATIENCE, QUIET, Failure, Lines

Shared, Failover, KeyShared = ConsumerType.Shared, ConsumerType.Failover, ConsumerType.KeyShared
Scenario = Callable[[Lines, "Ours"], Awaitable[None]]


class Ours:
    """A client with the producers and consumers of a scenario, which close at the end."""

    def __init__(self, client: Client, stack: AsyncExitStack) -> None:
        self.client = client
        self.stack = stack

    async def single(self, topic: str, **options: Any) -> Producer[Any]:
        """Return a producer that sends each message in an entry of its own."""
        return await self.producer(topic, batching_enabled=False, **options)

    async def producer(self, topic: str, **options: Any) -> Producer[Any]:
        return await self.stack.enter_async_context(self.client.create_producer(topic, **options))

    async def subscribe(self, topic: Any, name: str = "s", **options: Any) -> Consumer[Any]:
        given = {"initial_position": InitialPosition.Earliest, **options}
        return await self.stack.enter_async_context(self.client.subscribe(topic, name, **given))


@asynccontextmanager
async def connected(cell: Lines, url: str | None = None, **options: Any) -> AsyncIterator[Ours]:
    where = cell.service_url if url is None else url
    async with connect(where, operation_timeout=10, **options) as client, AsyncExitStack() as stack:
        yield Ours(client, stack)


async def send(producer: Producer[Any], payloads: Sequence[str], **options: Any) -> list[MessageId]:
    """Publish without waiting for each message, and return the ids in order."""
    receipts = [producer.send_nowait(payload.encode(), **options) for payload in payloads]
    await producer.flush()
    return [await receipt.wait() for receipt in receipts]


def text(message: Message[Any]) -> str:
    return message.data().decode()


async def receive(consumer: Consumer[Any], count: int) -> list[Message[Any]]:
    found: list[Message[Any]] = []
    with anyio.move_on_after(PATIENCE):
        while len(found) < count:
            found.append(await consumer.receive())
        return found
    raise Failure(f"only {len(found)} of {count} messages arrived")


async def consume(consumer: Consumer[Any], count: int) -> list[str]:
    """Return the texts of the next messages after acknowledging them."""
    found = await receive(consumer, count)
    await consumer.acknowledge(found)
    return [text(message) for message in found]


async def nothing_more(consumer: Consumer[Any]) -> None:
    with anyio.move_on_after(QUIET):
        raise Failure(f"an unexpected message arrived: {text(await consumer.receive())!r:.60}")


async def refused(error: type[Exception], call: Callable[[], Awaitable[object]]) -> None:
    try:
        await call()
    except error:
        return
    raise Failure(f"not refused with {error.__name__}")
