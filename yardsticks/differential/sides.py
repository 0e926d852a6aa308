"""A broker with its connections, its REST API and its names, as a program sees them."""

from __future__ import annotations

import http.client
import json
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import trio

from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import Type, Wire, frame_of
from tests.foreign.broker_process import Address

from .normal import Names, frame_facts
from .tolerances import AGAIN

REST_SECONDS = 60.0
NO_LEDGER = 2**63 - 1
LEDGER_BEYOND = 1_000_000  # added to a ledger id, to get the id of a ledger that no topic has


@dataclass(frozen=True)
class Place:
    """The position of the `number`-th receipt of a program, on either broker.

    `entries_on` and `elsewhere` move the place to a position that has no message.
    """

    number: int
    entries_on: int = 0
    elsewhere: bool = False
    extra: tuple[tuple[str, Any], ...] = ()


class Unread(NamedTuple):
    """A received frame. `again` marks a REACHED_END_OF_TOPIC that the consumer has received before."""

    command: pb.BaseCommand
    trailing: bytes
    again: bool


class Link:
    """A connection to one broker. `unread` has the received frames, without PINGs and PONGs."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._wire = Wire(stream)
        self._writing = trio.Lock()
        self._waiting = trio.lowlevel.ParkingLot()
        self.pongs = 0  # PONGs that the broker still has to send
        self.unread: list[Unread] = []
        self.told_end: set[int] = set()  # consumers that received REACHED_END_OF_TOPIC
        self.ended = False

    async def write(self, data: bytes) -> None:
        async with self._writing:
            try:
                await self._wire.write(data)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                self._end()

    async def read(self) -> None:
        """Receive frames, and answer PINGs, until the connection ends."""
        while not self.ended:
            try:
                received = await self._wire.next(math.inf)
            except (trio.BrokenResourceError, trio.ClosedResourceError, AssertionError):
                break
            if received.command.type == Type.PING:
                await self.write(frame_of(Type.PONG))
            elif received.command.type == Type.PONG:
                self.pongs -= 1
            else:
                self.unread.append(Unread(*received, again=self._told_before(received.command)))
            self._waiting.unpark_all()
        self._end()

    def _told_before(self, command: pb.BaseCommand) -> bool:
        if command.type != Type.REACHED_END_OF_TOPIC:
            return False
        consumer = command.reachedEndOfTopic.consumer_id
        again = consumer in self.told_end
        self.told_end.add(consumer)
        return again

    def _end(self) -> None:
        self.ended = True
        self._waiting.unpark_all()

    async def _until(self, done: Callable[[], bool], seconds: float) -> None:
        with trio.move_on_after(seconds):
            while not (self.ended or done()):
                await self._waiting.park()

    async def settle(self, seconds: float) -> None:
        """Wait for all frames that the broker sends before it answers a PING."""
        self.pongs += 1
        await self.write(frame_of(Type.PING))
        await self._until(lambda: self.pongs <= 0, seconds)

    async def catch_up(self, other: Link, seconds: float) -> None:
        """Wait until as many frames have come as from the other broker, and both connections are open or closed."""
        await self._until(lambda: self._awaited() >= other._awaited() and not other.ended, seconds)

    def _awaited(self) -> int:
        """Count the frames, except for those that only one broker may have sent (see tolerances.py)."""
        return sum(not each.again for each in self.unread)

    async def close(self, seconds: float) -> None:
        """Close the connection, and wait until the broker closes its end too."""
        if not self.ended:
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                await self._stream.send_eof()
                await self._until(lambda: False, seconds)
        await self._stream.aclose()
        self._end()


@dataclass
class Heard:
    """Frames that a broker has sent.

    `said` has the frames as text by stream, and order matters only inside a stream. `commands` has each frame with the
    number of its connection.
    """

    said: dict[str, list[str]] = field(default_factory=dict)
    commands: list[tuple[int, pb.BaseCommand]] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)


@dataclass
class Side:
    """A broker and its connections.

    `name` is shown to people. `places` has the positions of receipts in order, and differs from that of the other side
    only in ledger ids.
    """

    name: str
    address: Address
    names: Names = field(default_factory=Names)
    links: dict[int, Link] = field(default_factory=dict)
    places: list[tuple[int, int]] = field(default_factory=list)

    def begin(self) -> None:
        """Forget the last program."""
        self.names, self.places = Names(), []

    async def dial(self, number: int) -> Link:
        """Open a connection. The caller must run `Link.read`."""
        link = self.links[number] = Link(await trio.open_tcp_stream("127.0.0.1", self.address.port))
        return link

    async def hang_up(self, number: int, seconds: float) -> None:
        await self.links.pop(number).close(seconds)

    def fields(self, given: Any) -> Any:
        """Return a command's fields with this broker's message ids in place of each `Place`."""
        if isinstance(given, Place):
            ledger, entry = self.places[given.number]
            where = {"ledgerId": ledger + given.elsewhere * LEDGER_BEYOND, "entryId": max(0, entry + given.entries_on)}
            return where | dict(given.extra)
        if isinstance(given, Mapping):
            return {key: self.fields(value) for key, value in given.items()}
        if isinstance(given, list | tuple):
            return [self.fields(value) for value in given]
        return given

    async def settle(self, first: int, seconds: float) -> None:
        """Wait for all frames that the broker has sent: on the connection `first`, then on the others."""
        if first in self.links:
            await self.links[first].settle(seconds)
        async with trio.open_nursery() as nursery:
            for number, link in self.links.items():
                if number != first:
                    nursery.start_soon(link.settle, seconds)

    def heard(self) -> Heard:
        """Return the frames that have come since the last call."""
        heard = Heard()
        for number, link in sorted(self.links.items()):
            for command, trailing, again in link.unread:
                heard.commands.append((number, command))
                if command.type == Type.SEND_RECEIPT and command.send_receipt.message_id.ledgerId < NO_LEDGER:
                    where = command.send_receipt.message_id
                    self.places.append((where.ledgerId, where.entryId))
                stream, fact = frame_facts(command, trailing, self.names)
                heard.said.setdefault(f"{number} {stream}".strip(), []).append(fact + AGAIN * again)
            link.unread.clear()
            if link.ended:
                heard.ended.append(number)
        return heard

    def rest(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Return the status and the body of a call: JSON where possible, otherwise text, or None without a body."""
        data = None if body is None else json.dumps(body)
        try:
            status, text = self._answer(method, path, data)
        except (http.client.HTTPException, OSError):  # the broker may have closed the idle connection
            self._http.close()
            status, text = self._answer(method, path, data)
        try:
            return status, json.loads(text) if text else None
        except ValueError:
            return status, text

    def close(self) -> None:
        """Close the connection of the REST calls."""
        self._http.close()

    @cached_property
    def _http(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.address.http_port, timeout=REST_SECONDS)

    def _answer(self, method: str, path: str, data: str | None) -> tuple[int, str]:
        self._http.request(method, path, data, {"Content-Type": "application/json"})
        answer = self._http.getresponse()
        return answer.status, answer.read().decode()
