"""A played broker that gives correct answers, until a test replaces one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import anyio
from anyio.abc import ByteStream, TaskGroup

from pulsarium.client import Client, Consumer
from pulsarium.client.connection.service_url import BrokerAddress
from pulsarium.client.connection.settings import Settings
from pulsarium.client.opening import open_client
from pulsarium.proto.commands import COMMANDS
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import plain
from tests.client.hostile.left_over import nothing_left
from tests.client.peer import Peer, Pipe, Type, pipes

URL = "pulsar://a:6650"
TOPIC = "persistent://public/default/t"
TIMES: dict[str, Any] = {
    "operation_timeout": 3.0,
    "connection_timeout": 1.0,
    "max_backoff_interval": 2.0,
}

Connect = pb.CommandLookupTopicResponse.Connect

#: Answers one command on one connection, or ignores the command.
Answer: TypeAlias = Callable[[Peer, Any], Awaitable[None]]


class Played:
    """A played broker. `on[type]` replaces the usual answer, and `seen` has the client's commands in order."""

    def __init__(self, tasks: TaskGroup) -> None:
        self.on: dict[int, Answer] = {}
        self.seen: list[pb.BaseCommand] = []
        self.connections: list[Peer] = []
        self.streams: list[Pipe] = []
        """The client's ends of the connections."""
        self.entries = 0
        self.record = True
        """True while new commands are added to `seen`."""
        self._came = anyio.Event()
        self._tasks = tasks

    async def dial(self, address: BrokerAddress) -> ByteStream:
        near, far = pipes()
        self.streams.append(near)
        self.connections.append(Peer(far))
        self._tasks.start_soon(self._talk, self.connections[-1])
        return near

    async def _talk(self, peer: Peer) -> None:
        try:
            while True:
                base, _ = await peer.next()
                if self.record:
                    self.seen.append(base)
                self._came.set()
                body = getattr(base, COMMANDS[base.type].field)
                await self.on.get(base.type, self.answer)(peer, body)
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            pass
        finally:
            await peer.close()

    def count(self, type: int) -> int:
        """Return the number of commands of a type that the client has sent."""
        return sum(base.type == type for base in self.seen)

    async def sent(self, type: int, times: int = 1) -> Any:
        """Wait until the client has sent `times` commands of a type, and return the body of the last one."""
        while self.count(type) < times:
            self._came = anyio.Event()
            await self._came.wait()
        last = next(base for base in reversed(self.seen) if base.type == type)
        return getattr(last, COMMANDS[type].field)

    async def answer(self, peer: Peer, body: Any) -> None:
        """Answer a command as a broker with one plain, empty topic does."""
        kind = next(n for n, spec in COMMANDS.items() if _body_of(spec.field) == body.DESCRIPTOR.full_name)
        fields = _ANSWERS.get(kind, {})
        if kind == Type.SEND:
            self.entries += 1
            where = pb.MessageIdData(ledgerId=1, entryId=self.entries)
            await peer.say(
                Type.SEND_RECEIPT, producer_id=body.producer_id, sequence_id=body.sequence_id, message_id=where
            )
        elif kind == Type.PING:
            await peer.say(Type.PONG)
        elif kind == Type.CONNECT:
            await peer.say(Type.CONNECTED, server_version="played", protocol_version=22)
        elif "request_id" in body.DESCRIPTOR.fields_by_name and body.HasField("request_id"):
            await peer.say(COMMANDS[kind].reply or 0, request_id=body.request_id, **fields)


_ANSWERS: dict[int, dict[str, Any]] = {
    Type.LOOKUP: {"response": Connect, "brokerServiceUrl": URL},
    Type.PARTITIONED_METADATA: {"partitions": 0},
    Type.PRODUCER: {"producer_name": "p", "last_sequence_id": -1},
    Type.GET_LAST_MESSAGE_ID: {"last_message_id": pb.MessageIdData(ledgerId=1, entryId=9)},
    Type.ACK: {"consumer_id": 0},
}


def _body_of(field: str) -> str:
    message: Any = pb.BaseCommand.DESCRIPTOR.fields_by_name[field].message_type
    return str(message.full_name)


@asynccontextmanager
async def playing(url: str = URL, **settings: Any) -> AsyncIterator[tuple[Played, Client]]:
    """Run a played broker and a client of it. Fail when the client leaves anything open."""
    async with anyio.create_task_group() as tasks:
        played = Played(tasks)
        try:
            async with open_client(url, Settings(dial=played.dial, **{**TIMES, **settings})) as client:
                yield played, client
                await nothing_left(client)
            assert all(stream.is_closed for stream in played.streams)
        finally:
            tasks.cancel_scope.cancel()
            for stream in [*played.streams, *(peer.stream for peer in played.connections)]:
                await stream.aclose()


@asynccontextmanager
async def subscribed(**options: Any) -> AsyncIterator[tuple[Played, Peer, Consumer[bytes]]]:
    """Open consumer 0 of a played broker, and wait for its permits."""
    settings = {key: options.pop(key) for key in list(options) if key in TIMES or key == "keep_alive_interval"}
    async with playing(**settings) as (played, client), client.subscribe("t", "s", **options) as consumer:
        await played.sent(Type.FLOW)
        yield played, played.connections[0], consumer


def error_answer(code: int, text: str = "no") -> Answer:
    """Return a function that answers any request with ERROR."""

    async def answer(peer: Peer, body: Any) -> None:
        await peer.say(Type.ERROR, request_id=body.request_id, error=code, message=text)

    return answer


def saying(type: int, **fields: Any) -> Answer:
    """Return a function that answers any request with a command of this type."""

    async def answer(peer: Peer, body: Any) -> None:
        await peer.say(type, request_id=body.request_id, **fields)

    return answer


async def silence(peer: Peer, body: Any) -> None:
    """Leave the request without an answer."""


async def deliver(peer: Peer, entry: int = 1, **fields: Any) -> None:
    where = pb.MessageIdData(ledgerId=7, entryId=entry)
    await peer.say(Type.MESSAGE, plain(b"x"), consumer_id=0, message_id=where, **fields)
