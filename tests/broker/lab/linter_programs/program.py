"""The form of a program, and helpers that all programs use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pulsarium.broker.config import Config
from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import TOPIC, Bed, Message, Shared, Type, Wire, batch_of, plain

NOW = 1_700_000_000_000
"""Publish time of messages, in milliseconds since the epoch."""

Run = Callable[["Client", bool], Awaitable[None]]


@dataclass(frozen=True)
class Program:
    """A client that breaks a rule.

    run: takes whether to run mended. config: makes the broker's configuration. pip: proposals of the broker.
    """

    rule: str
    run: Run
    config: Callable[[], Config] = field(default=Config)
    pip: Sequence[int] = ()


PROGRAMS: dict[str, Program] = {}
"""Programs by the rule that they break."""


def breaks(rule: str, config: Callable[[], Config] = Config, pip: Sequence[int] = ()) -> Callable[[Run], Run]:
    """Return a decorator that registers a function as the program of a rule."""

    def register(run: Run) -> Run:
        assert rule not in PROGRAMS, rule
        PROGRAMS[rule] = Program(rule, run, config, pip)
        return run

    return register


class Client:
    """The client under test, with methods that keep all rules."""

    def __init__(self, bed: Bed) -> None:
        self.bed = bed

    async def connected(self, **options: Any) -> Wire:
        return await self.bed.connect(**options)

    async def producing(self, **options: Any) -> Wire:
        """Return a connection with a producer 0, named p by default."""
        wire = await self.bed.connect()
        await wire.producer(**({"producer_name": "p"} | options))
        return wire

    async def consuming(self, *entries: bytes, type: int = Shared, **options: Any) -> tuple[Wire, list[Message]]:
        """Publish `entries`. Return a connection with a consumer 0 named c, and the messages that the consumer
        received."""
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
        """Unload the topic, and wait until the client receives a command of type `closed`."""
        self.bed.broker.topics.unload(TopicName.parse(TOPIC))
        while (await wire.next()).command.type != closed:
            pass


async def message_of(wire: Wire) -> Message:
    """Return the next MESSAGE, and discard other frames before it."""
    while wire.inbox and wire.inbox[0].command.type != Type.MESSAGE:
        wire.inbox.popleft()
    return await wire.message()


def message(sequence: int = 0, payload: bytes = b"x", **metadata: Any) -> bytes:
    """Build the entry of one message, as producer p does."""
    said: dict[str, Any] = {"producer_name": "p", "sequence_id": sequence, "publish_time": NOW}
    return plain(payload, **(said | metadata))


def batch(sequence: int = 0, **metadata: Any) -> bytes:
    """Build a batch of three messages, as producer p does."""
    payloads = [b"of-a-batch"] * 3
    said: dict[str, Any] = {"producer_name": "p", "sequence_id": sequence, "publish_time": NOW}
    return batch_of(*payloads, **(said | metadata))


def given(there: bool, **fields: Any) -> dict[str, Any]:
    """Return the fields if `there` is true, else none."""
    return fields if there else {}


async def send(wire: Wire, sequence: int = 0, data: bytes | None = None, **fields: Any) -> None:
    """Send an entry, and do not wait for the receipt."""
    data = message(sequence) if data is None else data
    await wire.send(Type.SEND, data, **({"producer_id": 0, "sequence_id": sequence, "num_messages": 1} | fields))
