"""Give a scenario a client, names of its own, and the admin API."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar

import anyio
import anyio.to_thread

from pulsarium.client import Client, Consumer, InitialPosition, Message, MessageId, PulsarError, Reader, connect
from tests.foreign.admin import Admin
from tests.foreign.broker_process import Address

T = TypeVar("T")
P = ParamSpec("P")

EARLIEST = InitialPosition.Earliest


@dataclass(frozen=True)
class World:
    """The surroundings of a scenario. All scenarios of a run share `client`."""

    client: Client
    address: Address
    namespace: str
    scenario: str
    loop: str
    keys: Any = None
    """Key files of encryption, by kind."""
    namespaces: list[str] = field(default_factory=list)
    """Namespaces that this scenario has created."""

    def topic(self, name: str = "t") -> str:
        """Return the name of a topic that no other scenario has."""
        return f"persistent://{self.namespace}/{self.scenario}-{name}"

    async def partitioned(self, partitions: int, name: str = "t") -> str:
        """Create a partitioned topic, and return its name."""
        topic = self.topic(name)
        await self.admin(Admin.create_partitioned, topic, partitions)
        return topic

    async def own_namespace(self, **policies: object) -> str:
        """Create a namespace for this scenario, and return its name.

        `policies` has the last part of each policy's path and the body of the request.
        """
        name = f"{self.namespace}-{self.scenario}"
        await self.admin(Admin.create_namespace, name)
        self.namespaces.append(name)
        for policy, value in policies.items():
            await self.admin(Admin.call, "POST", f"/admin/v2/namespaces/{name}/{policy}", value)
        return name

    async def admin(self, call: Callable[Concatenate[Admin, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a method of Admin in a thread: `await world.admin(Admin.unload, topic)`."""
        return await anyio.to_thread.run_sync(partial(call, Admin(self.address.admin_url), *args, **kwargs))

    def connect(self, **options: Any) -> AbstractAsyncContextManager[Client]:
        """Return another client, to be opened."""
        return connect(self.address.service_url, **options)

    async def send(self, topic: str, *contents: bytes, **options: Any) -> list[MessageId]:
        """Publish each content as an entry of its own, or all as one batch with `batching_enabled=True`."""
        options = {"batching_enabled": False, "batching_max_publish_delay": 10.0} | options
        async with self.client.create_producer(topic, **options) as producer:
            receipts = [producer.send_nowait(content) for content in contents]
            await producer.flush()
            return [await receipt.wait() for receipt in receipts]

    async def contents(self, topic: str, **options: Any) -> list[bytes]:
        """Return the contents of the whole topic."""
        async with self.client.create_reader(topic, MessageId.earliest, **options) as reader:
            return data(await available(reader))


async def take(consumer: Consumer[T], count: int) -> list[Message[T]]:
    """Receive the next `count` messages."""
    return [await consumer.receive() for _ in range(count)]


async def take_until(consumer: Consumer[T], last: bytes) -> list[Message[T]]:
    """Receive messages up to one with the content `last`, and return those before it."""
    messages = []
    while (message := await consumer.receive()).data() != last:
        messages.append(message)
    return messages


async def available(reader: Reader[T]) -> list[Message[T]]:
    """Return all messages that a reader finds now."""
    messages = []
    while await reader.has_message_available():
        messages.append(await reader.read_next())
    return messages


def data(messages: list[Message[T]]) -> list[bytes]:
    return [message.data() for message in messages]


def ids(messages: list[Message[T]]) -> list[MessageId]:
    return [message.message_id() for message in messages]


async def outcome(call: Awaitable[object]) -> str:
    """Return `ok`, or the name of the error that the client raises."""
    try:
        await call
    except PulsarError as error:
        return type(error).__name__
    return "ok"


def refusal(call: Callable[[], object]) -> str:
    """Return the `outcome` of a call that is not async."""
    try:
        call()
    except PulsarError as error:
        return type(error).__name__
    return "ok"


async def opening(opened: AbstractAsyncContextManager[object]) -> str:
    """Open and close a producer, consumer or reader, and return the `outcome`."""

    async def open_it() -> None:
        async with opened:
            pass

    return await outcome(open_it())


async def until(condition: Callable[[], Coroutine[Any, Any, bool]] | Callable[[], bool]) -> None:
    """Wait for a condition: check it every 10 ms, until the time of the scenario is up."""
    while True:
        answer = condition()
        if answer if isinstance(answer, bool) else await answer:
            return
        await anyio.sleep(0.01)


async def all_of(messages: AsyncIterable[Message[T]]) -> list[bytes]:
    """Return what `async for` gives until it ends."""
    return [message.data() async for message in messages]
