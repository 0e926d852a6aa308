"""Skipping messages leaves the same stored bytes as a consumer that acknowledges these messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pulsarium.broker.config import Config
from pulsarium.broker.model.cursor.records import read_cursor_info
from pulsarium.broker.model.ledger.position import Position
from pulsarium.proto.message_id import words_of
from tests.broker.conftest import run_without_waiting
from tests.broker.held import HeldStorage
from tests.broker.web.admin.rest import TOPICS, rest_of
from tests.broker.web.admin.skipped import skip, triplet
from tests.broker.wire import KeyShared, Shared, Wire, batch_of, message_id, plain, serving

WHOLE = None
CURSORS = "/managed-ledgers/public/default/persistent/t/"
CONFIG = Config(
    managedLedgerMaxEntriesPerLedger=3, managedLedgerMinLedgerRolloverTimeMinutes=0, managedLedgerCacheSizeMB=0
)

Request = dict[int, set[int] | None]  # entry number -> batch indexes, or WHOLE


@dataclass
class Program:
    """A program of a test: batch sizes (0: a single message), how many are delivered first, and acknowledgements."""

    sizes: list[int]
    delivered: int
    requests: list[Request] = field(default_factory=list)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    sizes = draw(st.lists(st.sampled_from([0, 1, 2, 3, 5, 64, 70]), min_size=1, max_size=8))

    def messages(number: int) -> st.SearchStrategy[set[int] | None]:
        size = sizes[number]
        parts = st.sets(st.integers(0, size - 1), min_size=1) if size else st.nothing()
        return st.none() | st.just(set(range(size))) | parts if size else st.none()

    program = Program(sizes, draw(st.integers(0, len(sizes))))
    for _ in range(draw(st.integers(1, 4))):
        numbers = draw(st.sets(st.integers(0, len(sizes) - 1), min_size=1))
        program.requests.append({number: draw(messages(number)) for number in sorted(numbers)})
    return program


@pytest.mark.req("S423-43", "S423-44", "S423-45")
@settings(max_examples=30)
@given(programs(), st.sampled_from([Shared, KeyShared]))
# One entry twice, in the second ledger. Then the whole first ledger is acknowledged.
@example(Program([0] * 5, 0, [{0: WHOLE, 1: WHOLE}, {3: WHOLE}, {3: WHOLE}, {2: WHOLE}]), Shared)
def test_skipping_leaves_what_acknowledging_leaves(program: Program, type: int) -> None:
    async def play() -> None:
        store = HeldStorage()
        async with serving(CONFIG, storage=store) as bed:
            rest, wire = rest_of(bed), await bed.connect()
            await wire.producer()
            for consumer_id, name in enumerate(("acks", "sub")):
                await wire.subscribe(name=name, type=type, consumer_id=consumer_id)
            sent = [await publish(wire, size) for size in program.sizes]
            for consumer_id in range(2):
                await wire.flow(max(1, sum(program.sizes[: program.delivered])), consumer_id)
            await wire.rest(0.001)
            for request in program.requests:
                await wire.ack(message_id=list(acks(program, sent, request)))
                await skip(rest, *skips(sent, request))
                assert kept(store, "sub") == kept(store, "acks")
            assert await delivered(wire, 1) == await delivered(wire, 0)
            subscriptions = bed.topic().subscriptions
            left = [(each.cursor.backlog(), [c.unacked for c in each.consumers]) for each in subscriptions.values()]
            assert left[0] == left[1]
            cursors = (await rest.get(f"{TOPICS}/t/internalStats"))["cursors"]
            for key in ("cursorLedger", "lastLedgerSwitchTimestamp"):
                del cursors["acks"][key], cursors["sub"][key]
            assert cursors["sub"] == cursors["acks"]

    run: Any = run_without_waiting
    run(play)


async def publish(wire: Wire, size: int) -> Position:
    entry = batch_of(*[b"x"] * size) if size else plain(b"x")
    (position,) = await wire.publish(entry, num_messages=max(1, size))
    return position


def acks(program: Program, sent: list[Position], request: Request) -> Iterable[dict[str, Any]]:
    """Yield the ids of an ACK as a client sends them, with the ack set that remains of a batch."""
    for number, indexes in request.items():
        if indexes is WHOLE:
            yield message_id(sent[number])
        else:
            left = (1 << program.sizes[number]) - 1 - sum(1 << index for index in indexes)
            yield message_id(sent[number], ack_set=words_of(left) or [0])


def skips(sent: list[Position], request: Request) -> Iterator[Position | dict[str, int]]:
    for number, indexes in request.items():
        if indexes is WHOLE:
            yield sent[number]
        else:
            yield from (triplet(sent[number], index) for index in indexes)


def kept(store: HeldStorage, name: str) -> list[bytes]:
    """Return the stored records of a cursor, without the fields that differ between equal cursors."""
    info = read_cursor_info(store.metadata[CURSORS + name])
    record = store.metadata.get(f"/cursor-ledgers/{info.cursorsLedgerId}", b"")
    info.cursorsLedgerId = 0
    info.ClearField("lastActive")
    return [info.SerializeToString(), record]


async def delivered(wire: Wire, consumer_id: int) -> list[tuple[Position, list[int]]]:
    """Redeliver the backlog to a consumer, and return positions and ack sets."""
    await wire.redeliver(consumer_id=consumer_id)
    await wire.flow(consumer_id=consumer_id)
    received = await wire.rest(0.001)
    wire.inbox.extend(received)
    messages = await wire.messages(len(received))
    assert {message.consumer_id for message in messages} <= {consumer_id}
    return [(message.position, list(message.command.ack_set)) for message in messages]
