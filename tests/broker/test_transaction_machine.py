"""Random transactions over topics and subscriptions, through kills, stops and unloads: each has all effects or none.

A history is a list of plain steps, as in test_subscription_machine.py.
"""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from pulsarium.broker.config import Config
from tests.broker.transaction_driver import PLACES, TOPICS, Driver
from tests.broker.wire import serving

SMALL = Config(  # so that a short history crosses every limit
    transactionCoordinatorEnabled=True,
    keepAliveIntervalSeconds=0,
    managedLedgerMaxEntriesPerLedger=5,
    managedLedgerMinLedgerRolloverTimeMinutes=0,
    managedLedgerCacheSizeMB=0,
    dispatcherMaxReadBatchSize=3,
)
VERBS = (*("publish", "ack") * 5, *("begin", "end", "end_held") * 2, "plain", "unload", "wait", "stop", "kill")

pytestmark = pytest.mark.timeout(900)  # hypothesis shrinks a failed history first, which takes minutes


class Step(NamedTuple):
    verb: str
    who: int  # index of the open transaction
    where: int
    number: int
    commit: bool


STEP = st.builds(
    Step,
    st.sampled_from(VERBS),
    st.integers(0, 3),
    st.integers(0, 5),
    st.integers(0, 7),
    st.sampled_from([True, True, False]),
)
HISTORIES = st.tuples(*[st.lists(STEP, max_size=12)] * 4).map(lambda lists: list(chain(*lists)))


class Killed(Exception):
    """A signal that the broker ends here."""


async def take(driver: Driver, step: Step) -> None:
    model = driver.model
    txn = model.open[step.who % len(model.open)] if model.open else None
    topic, place = TOPICS[step.where % len(TOPICS)], PLACES[step.where]
    match step.verb:
        case "begin":
            await driver.begin()
        case "publish":
            await driver.publish(txn, topic, 1 + step.number % 3)
        case "plain":
            await driver.publish(None, topic, 1 + step.number % 3)
        case "ack":
            if entries := list(model.visible(place[0])):
                of = txn if step.number else None
                await driver.ack(of, place, entries[(step.number + step.who) % len(entries)])
        case "end" if txn is not None:
            await driver.end(txn, commit=step.commit)
            await driver.check()
        case "end_held" if txn is not None:
            await end_held(driver, txn, step)
        case "unload":
            driver.unload(topic)
            await driver.again()
            await driver.check()
        case "wait":
            await driver.wait()
            await driver.check()
        case "stop":
            raise Killed
        case "kill":
            vain, driver.disk = driver.disk, driver.disk.left_behind()
            vain.let_go()
            raise Killed


async def end_held(driver: Driver, txn: int, step: Step) -> None:
    """Send END_TXN while commits wait. Then perform the commits, or kill the broker after some of them."""
    request = await driver.end_held(txn, commit=step.commit)
    if step.number < 4:
        await driver.end_kept(request, txn, commit=step.commit)
        await driver.check()
        return
    # Each commit that waits is a point at which the broker can be killed.
    driver.disk.release(step.number % (len(driver.disk.waiting) + 1))
    vain, driver.disk = driver.disk, driver.disk.left_behind()
    vain.let_go()
    raise Undecided(txn, step.commit)


class Undecided(Killed):
    """A signal that the broker ends here, before it answers an END_TXN."""

    def __init__(self, txn: int, commit: bool) -> None:
        super().__init__()
        self.txn, self.commit = txn, commit


async def play(steps: list[Step]) -> None:
    driver, left, killed = Driver(), steps, Killed()
    while True:
        async with serving(SMALL, storage=driver.disk) as bed:
            await driver.begin_life(bed)
            if isinstance(killed, Undecided):
                await driver.ended_or_not(killed.txn, commit=killed.commit)
            await driver.check()
            try:
                while left:
                    step, left = left[0], left[1:]
                    await take(driver, step)
            except Killed as end:
                killed = end
                continue
            for txn in driver.model.open:
                await driver.end(txn, commit=txn % 2 == 0)
            await driver.check()
            return


def run(steps: list[Step]) -> None:
    trio.run(play, steps, clock=MockClock(autojump_threshold=0))


@pytest.mark.req("B-29")
@settings(max_examples=20)
@given(HISTORIES)
def test_all_of_a_transaction_or_nothing(steps: list[Step]) -> None:
    run(steps)


@pytest.mark.heavy
@settings(max_examples=75)
@given(HISTORIES)
def test_many_histories_of_transactions(steps: list[Step]) -> None:
    run(steps)
