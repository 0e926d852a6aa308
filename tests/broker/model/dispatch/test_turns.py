"""The bound of one dispatch, so that a large backlog leaves the event loop to other clients."""

from __future__ import annotations

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.model.subscription.reasons import Reason
from pulsarium.broker.net import slices
from tests.broker.wire import Bed, Earliest, Exclusive, KeyShared, Shared, Wire, plain

BACKLOG = 5

pytestmark = pytest.mark.usefixtures("one_read_a_slice")


@pytest.fixture
def one_read_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make slices so short that each read of a dispatch takes a whole one."""
    monkeypatch.setattr(slices, "SLICE", 0)


@pytest.mark.parametrize("kind", [Exclusive, Shared, KeyShared])
@pytest.mark.serving(Config(dispatcherMaxReadBatchSize=1))
async def test_a_backlog_is_delivered_in_several_turns(bed: Bed, kind: int) -> None:
    sender, wire = await bed.connect(), await bed.connect()
    await sender.producer()
    positions = await sender.publish(*[plain(b"x")] * BACKLOG)
    await wire.subscribe(type=kind, initialPosition=Earliest)
    (consumer,) = bed.subscription().consumers
    permits: list[int] = []
    bed.broker.turn.every_turn(lambda: permits.append(consumer.permits))
    await wire.flow(BACKLOG)
    messages = await wire.messages(BACKLOG)
    assert [message.position for message in messages] == positions
    assert [left for left in dict.fromkeys(permits) if left] == [4, 3, 2, 1]


@pytest.mark.serving(Config(dispatcherMaxReadBatchSize=1))
async def test_a_subscription_that_waits_for_its_next_turn_says_so(bed: Bed, sender: Wire) -> None:
    wire = await bed.connect()
    await sender.publish(*[plain(b"x")] * BACKLOG)
    await wire.subscribe(type=Shared, initialPosition=Earliest)
    reasons: list[Reason] = []
    bed.broker.turn.every_turn(lambda: reasons.append(bed.subscription().reason))
    await wire.flow(BACKLOG)
    await wire.messages(BACKLOG)
    assert reasons.count(Reason.NEXT_TURN) >= BACKLOG
