"""What a program is, and what programs have in common."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from pulsarium.broker.config import Config
from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import TOPIC, Bed, Message, Shared, Type, Wire, batch_of, plain

NOW = 1_700_000_000_000
"""A publish time."""

Run = Callable[["Client", bool], Awaitable[None]]


@dataclass(frozen=True)
class Program:
    """run: what the client does; mended, if so told. config: of the broker."""

    rule: str
    run: Run
    config: Callable[[], Config] = field(default=Config)


PROGRAMS: dict[str, Program] = {}
"""By the rule they break."""


def breaks(rule: str, config: Callable[[], Config] = Config) -> Callable[[Run], Run]:
    """Makes a function the program of a rule."""

    def register(run: Run) -> Run:
        assert rule not in PROGRAMS, rule
        PROGRAMS[rule] = Program(rule, run, config)
        return run

    return register


class Client:
    """The client under test: connections, and the usual things done as they should be."""

    def __init__(self, bed: Bed) -> None:
        self.bed = bed

    async def connected(self, **options: Any) -> Wire:
        return await self.bed.connect(**options)

    async def producing(self, **options: Any) -> Wire:
        """Producer 0, named p unless told otherwise."""
        wire = await self.bed.connect()
        await wire.producer(**({"producer_name": "p"} | options))
        return wire

    async def consuming(self, *entries: bytes, type: int = Shared, **options: Any) -> tuple[Wire, list[Message]]:
        """Consumer 0, with a name; what it was sent of `entries`, which are published first."""
        wire = await self.producing()
        await wire.subscribe(type=type, consumer_name="c", **options)
        for number, entry in enumerate(entries):
            count = 3 if entry.count(b"of-a-batch") else 1
            await send(wire, number, entry, num_messages=count)
            await wire.expect(Type.SEND_RECEIPT)
        if not entries:
            return wire, []
        await wire.flow()
        return wire, [await message_of(wire) for _ in entries]

    async def unload(self, wire: Wire, closed: int) -> None:
        """The broker closes what there is on the topic, and the client is told by a command of this type."""
        self.bed.broker.topics.unload(TopicName.parse(TOPIC))
        while (await wire.next()).command.type != closed:
            pass


async def message_of(wire: Wire) -> Message:
    """The next MESSAGE, whatever comes before it."""
    while wire.inbox and wire.inbox[0].command.type != Type.MESSAGE:
        wire.inbox.popleft()
    return await wire.message()


def message(sequence: int = 0, payload: bytes = b"x", **metadata: Any) -> bytes:
    """The entry of one message, as producer p makes it."""
    said: dict[str, Any] = {"producer_name": "p", "sequence_id": sequence, "publish_time": NOW}
    return plain(payload, **(said | metadata))


def batch(sequence: int = 0, **metadata: Any) -> bytes:
    """Three of them."""
    payloads = [b"of-a-batch"] * 3
    said: dict[str, Any] = {"producer_name": "p", "sequence_id": sequence, "publish_time": NOW}
    return batch_of(*payloads, **(said | metadata))


def given(there: bool, **fields: Any) -> dict[str, Any]:
    """The fields, or none."""
    return fields if there else {}


async def send(wire: Wire, sequence: int = 0, data: bytes | None = None, **fields: Any) -> None:
    """Without waiting for the receipt."""
    data = message(sequence) if data is None else data
    await wire.send(Type.SEND, data, **({"producer_id": 0, "sequence_id": sequence, "num_messages": 1} | fields))
