"""Random histories of one subscription: nothing lost, nothing doubled without a redelivery, order kept."""

from __future__ import annotations

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from pulsarium.broker.config import Config
from pulsarium.broker.model.ledger.position import EARLIEST, LATEST
from tests.broker.held import HeldStorage
from tests.broker.history import History
from tests.broker.wire import Exclusive, Shared, Type, serving

MOST_LIVES = 3
STEPS = 20
MOST_CONSUMERS = 3
SMALL = Config(  # so that a short history crosses every border
    managedLedgerMaxEntriesPerLedger=7,
    managedLedgerMinLedgerRolloverTimeMinutes=0,
    managedLedgerCacheSizeMB=0,
    dispatcherMaxReadBatchSize=5,
    dispatcherMaxRoundRobinBatchSize=3,
)
VERBS = ["publish", "publish", "flow", "flow", "ack", "ack", "redeliver", "leave", "join", "seek", "unload"]


async def step(history: History, data: st.DataObject) -> None:
    verb = data.draw(st.sampled_from(VERBS))
    if verb == "publish":
        await history.publish(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=9)))
        return
    if verb == "join":
        if len(history.wires) < (1 if history.type == Exclusive else MOST_CONSUMERS):
            await history.join()
        return
    if not history.wires:
        return
    index = data.draw(st.integers(0, len(history.wires) - 1))
    unacked = sorted(history.owed[index].unacked)
    if verb == "flow":
        await history.flow(index, data.draw(st.integers(1, 12)))
    elif verb == "leave":
        await history.leave(index, politely=data.draw(st.booleans()))
    elif verb == "unload":
        await history.unload()
    elif verb == "seek":
        await history.seek(index, data.draw(st.sampled_from([*history.positions, EARLIEST, LATEST])))
    elif verb == "redeliver":
        named = data.draw(st.lists(st.sampled_from(unacked), max_size=4)) if unacked else []
        await history.redeliver(index, named)
    elif unacked and history.type == Exclusive and data.draw(st.booleans()):
        await history.ack_through(index, data.draw(st.sampled_from(unacked)))
    elif unacked:
        await history.ack(index, data.draw(st.lists(st.sampled_from(unacked), min_size=1, max_size=6, unique=True)))


async def play(type: int, data: st.DataObject) -> None:
    store, history = HeldStorage(), History(type)
    for life in range(data.draw(st.integers(1, MOST_LIVES))):
        async with serving(SMALL, storage=store) as bed:
            await history.begin(bed)
            if not life:
                # keeps the ledgers that the history is done with
                await history.sender.subscribe(name="holder")
                await history.sender.ask(Type.CLOSE_CONSUMER, consumer_id=0)
            for _ in range(data.draw(st.integers(0, STEPS))):
                await step(history, data)
    async with serving(SMALL, storage=store) as bed:
        await history.begin(bed)
        await history.finish()


@pytest.mark.req("B-01", "B-05", "B-15", "B-16", "B-34")
@settings(max_examples=35)
@given(st.data())
def test_exclusive(data: st.DataObject) -> None:
    trio.run(play, Exclusive, data, clock=MockClock(autojump_threshold=0))


@pytest.mark.req("B-04", "B-05", "B-15", "B-18", "B-19", "B-34")
@settings(max_examples=35)
@given(st.data())
def test_shared(data: st.DataObject) -> None:
    trio.run(play, Shared, data, clock=MockClock(autojump_threshold=0))
