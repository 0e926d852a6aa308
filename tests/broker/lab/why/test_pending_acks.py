"""Explanations of messages that are not delivered because an open transaction acknowledged them."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.lab import Lab
from pulsarium.broker.lab.why import Why
from pulsarium.broker.model.ledger.position import Position
from tests.broker.wire import (
    TOPIC,
    Bed,
    Cumulative,
    Earliest,
    Exclusive,
    Shared,
    Type,
    Wire,
    batch_of,
    message_id,
    plain,
    serving,
)

ON = Config(transactionCoordinatorEnabled=True)


def why(bed: Bed, position: Position | None = None, index: int | None = None) -> Why:
    lab = bed.broker.cluster.attached(Lab)
    asked = None if position is None else f"{position}" if index is None else f"{position}:{index}"
    return lab.why(TOPIC, "sub", asked)


def of(least: int) -> dict[str, int]:
    return {"txnid_most_bits": 0, "txnid_least_bits": least}


def pending(found: Why) -> Any:
    assert found.reason == "pending-ack", found
    return found.details["transactions"]


async def sent(wire: Wire, type: int, count: int) -> list[Position]:
    await wire.producer()
    await wire.subscribe(type=type, initialPosition=Earliest)
    positions = await wire.publish(plain(b"0"), batch_of(b"x", b"y"), plain(b"2"))
    await wire.flow(2 if count == 2 else 4)  # the batch takes two permits
    await wire.messages(count)
    return positions


async def test_single_acks_of_a_transaction_hold_back_their_own_messages() -> None:
    async with serving(ON) as bed:
        wire = await bed.connect()
        plain_one, batch, last = await sent(wire, Shared, 2)
        await wire.ack(plain_one, **of(1))
        found = why(bed, plain_one)
        assert pending(found) == ["(0,1)"]
        assert found.text == "1 open transaction acknowledged it: (0,1)"
        await wire.ack(message_id=[message_id(batch, ack_set=[0b10], batch_size=2)], **of(1))
        assert why(bed, batch).reason == "delivered"
        assert why(bed, batch, 1).reason == "delivered"
        assert pending(why(bed, batch, 0)) == ["(0,1)"]
        await wire.ack(message_id=[message_id(batch, ack_set=[0b01], batch_size=2)], **of(2))
        found = why(bed, batch)
        assert pending(found) == ["(0,1)", "(0,2)"]
        assert found.text == "2 open transactions acknowledged it: (0,1), (0,2)"
        assert why(bed).details["messageId"] == str(last)
        await wire.ack(plain_one)
        assert why(bed, plain_one).reason == "acknowledged"


@pytest.mark.parametrize("after", [0, 1])
async def test_why_passes_over_pending_messages_to_the_next_one(after: int) -> None:
    """Messages whose acknowledgements are pending are not the next message, whether they were read or not."""
    async with serving(ON) as bed:
        wire = await bed.connect()
        plain_one, batch, last = await sent(wire, Shared, 3)
        await wire.ack(plain_one, batch, **of(1))
        await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
        await wire.subscribe(type=Shared)
        if after:
            await wire.flow(1)
            assert (await wire.message()).position == last
        assert why(bed).details.get("messageId") == (None if after else str(last))


async def test_a_cumulative_ack_of_a_transaction_holds_back_all_before_its_position() -> None:
    async with serving(ON) as bed:
        wire = await bed.connect()
        plain_one, batch, last = await sent(wire, Exclusive, 3)
        part = message_id(batch, ack_set=[0b10], batch_size=2)
        await wire.ack(message_id=[part], type=Cumulative, **of(3))
        assert pending(why(bed, plain_one)) == ["(0,3)"]
        assert pending(why(bed, batch, 0)) == ["(0,3)"]
        assert why(bed, batch).reason == "delivered"
        assert why(bed, last).reason == "delivered"
