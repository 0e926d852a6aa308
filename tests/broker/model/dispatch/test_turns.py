"""The bound of one dispatch, so that a large backlog leaves the event loop to other clients."""

from __future__ import annotations

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.model.subscription.dispatcher import MOST_READS, Reason
from tests.broker.wire import Bed, Earliest, Exclusive, KeyShared, Shared, Wire, plain

BACKLOG = 2 * MOST_READS + 50


@pytest.mark.parametrize("kind", [Exclusive, Shared, KeyShared])
@pytest.mark.serving(Config(dispatcherMaxReadBatchSize=1))
async def test_a_backlog_is_delivered_in_several_turns(bed: Bed, kind: int) -> None:
    sender, wire = await bed.connect(), await bed.connect()
    await sender.producer()
    positions = await sender.publish(*[plain(b"x")] * BACKLOG)
    await wire.subscribe(type=kind, initialPosition=Earliest)
    (consumer,) = bed.subscription().consumers
    permits = [BACKLOG]
    bed.broker.turn.every_turn(lambda: permits.append(consumer.permits))
    await wire.flow(BACKLOG)
    messages = await wire.messages(BACKLOG)
    assert [message.position for message in messages] == positions
    assert list(dict.fromkeys(permits)) == [BACKLOG, BACKLOG - MOST_READS, BACKLOG - 2 * MOST_READS, 0]


@pytest.mark.serving(Config(dispatcherMaxReadBatchSize=1))
async def test_a_subscription_that_waits_for_its_next_turn_says_so(bed: Bed, sender: Wire) -> None:
    wire = await bed.connect()
    await sender.publish(*[plain(b"x")] * BACKLOG)
    await wire.subscribe(type=Shared, initialPosition=Earliest)
    reasons: list[Reason] = []
    bed.broker.turn.every_turn(lambda: reasons.append(bed.subscription().reason))
    await wire.flow(BACKLOG)
    await wire.messages(BACKLOG)
    assert reasons[:2] == [Reason.NEXT_TURN, Reason.NEXT_TURN]
