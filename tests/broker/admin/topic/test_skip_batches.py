"""Skipping single messages of batches (PIP-423 over PIP-54)."""

from __future__ import annotations

import pytest

from tests.broker.admin.rest import Rest
from tests.broker.admin.skipped import backlog, encoded, posted, send_batch, skip, triplet
from tests.broker.model.upkeep.policed import subscription_of
from tests.broker.wire import Bed, Message, Shared, Wire, message_id


def left_of(message: Message) -> list[int]:
    return list(message.command.ack_set)


@pytest.mark.req("S423-04", "S423-05", "S423-06", "S423-09", "SREV-08")
async def test_whole_batches_and_single_messages_of_others(wire: Wire, sender: Wire, rest: Rest) -> None:
    await wire.subscribe(type=Shared)
    batches = [await send_batch(sender) for _ in range(4)]
    await skip(rest, batches[0], triplet(batches[1], 2))
    assert (await posted(rest, [encoded(batches[2], batch_index=1, batch_size=5)])).status == 204
    await wire.flow()
    found = [(message.position, left_of(message)) for message in await wire.messages(3)]
    assert found == [(batches[1], [0b11011]), (batches[2], [0b11101]), (batches[3], [])]
    await wire.quiet()


@pytest.mark.req("S423-46", "S423-47")
async def test_several_messages_of_a_batch_and_then_all(wire: Wire, sender: Wire, rest: Rest) -> None:
    await wire.subscribe(type=Shared)
    batch = await send_batch(sender)
    await skip(rest, triplet(batch, 1), triplet(batch, 3))
    await wire.flow()
    assert left_of(await wire.message()) == [0b10101]
    assert await backlog(rest) == 1
    await skip(rest, *[triplet(batch, index) for index in range(5)])
    assert await backlog(rest) == 0
    await wire.redeliver()
    await wire.quiet()


@pytest.mark.req("S423-48")
async def test_the_whole_entry_wins(wire: Wire, sender: Wire, rest: Rest) -> None:
    await wire.subscribe(type=Shared)
    batch = await send_batch(sender)
    await skip(rest, batch, triplet(batch, 1), triplet(batch, 99))
    assert await backlog(rest) == 0


@pytest.mark.req("S423-51")
async def test_it_joins_what_a_consumer_acknowledged(bed: Bed, wire: Wire, sender: Wire, rest: Rest) -> None:
    await wire.subscribe(type=Shared)
    batch = await send_batch(sender)
    await wire.flow()
    await wire.message()
    await wire.ack(message_id=[message_id(batch, ack_set=[0b11110])])
    await skip(rest, triplet(batch, 1))
    (consumer,) = subscription_of(bed.broker).consumers
    assert consumer.unacked == 3
    await wire.redeliver()
    assert left_of(await wire.message()) == [28]


@pytest.mark.req("S423-17")
async def test_a_batch_of_one(wire: Wire, sender: Wire, rest: Rest) -> None:
    await wire.subscribe(type=Shared)
    batch = await send_batch(sender, size=1)
    await skip(rest, triplet(batch, 0))
    assert await backlog(rest) == 0


async def test_a_batch_of_many_words(bed: Bed, wire: Wire, sender: Wire, rest: Rest) -> None:
    await wire.subscribe(type=Shared)
    batch = await send_batch(sender, size=130)
    await skip(rest, *[triplet(batch, index) for index in range(130) if index not in (0, 63, 64, 129)])
    await wire.flow()
    assert left_of(await wire.message()) == [-(2**63) + 1, 1, 2]
