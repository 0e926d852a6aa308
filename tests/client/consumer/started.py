"""Start tests of consumers with a broker in this process, under trio."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from pulsarium.client import Client, Consumer, InitialPosition, Message, Reader
from tests.broker.wire import Wire
from tests.client.in_process import InProcess, in_process


@asynccontextmanager
async def started() -> AsyncIterator[tuple[InProcess, Client]]:
    async with in_process() as inside, inside.client() as client:
        yield inside, client


@asynccontextmanager
async def consuming(**options: Any) -> AsyncIterator[tuple[InProcess, Wire, Consumer[bytes]]]:
    """Subscribe to `t` from the earliest message, and open a raw connection that publishes."""
    async with started() as (inside, client):
        wire = await inside.wire()
        async with client.subscribe("t", "s", initial_position=InitialPosition.Earliest, **options) as consumer:
            yield inside, wire, consumer


async def received(consumer: Consumer[Any], count: int) -> list[Message[Any]]:
    with anyio.fail_after(30):
        return [await consumer.receive() for _ in range(count)]


async def data_of(consumer: Consumer[Any], count: int) -> list[bytes]:
    return [message.data() for message in await received(consumer, count)]


async def nothing_more(consumer: Consumer[Any], seconds: float = 1) -> None:
    with anyio.move_on_after(seconds):
        raise AssertionError(f"unexpected {await consumer.receive()}")


def terminate(inside: InProcess, topic: str) -> None:
    """Terminate a topic, which refuses messages from then on."""
    inside.bed.topic(topic).terminate()
    inside.bed.broker.turn.finish()


async def all_of(reader: Reader) -> list[bytes]:
    """Read all messages up to the end, with `has_message_available` and `read_next` (S429-14)."""
    data = []
    with anyio.fail_after(30):
        while await reader.has_message_available():
            data.append((await reader.read_next()).data())
    return data
