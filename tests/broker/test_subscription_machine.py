"""Random histories of one subscription of each type: no message is lost or delivered twice, and the order is kept.

A history is a list of plain steps, made before anything runs. Hypothesis shrinks a history by leaving out steps, and
prints it as Python code that plays it again with `run`. A stateful machine would need a thread around trio's run.
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
from pulsarium.broker.model.ledger.position import EARLIEST, LATEST, Position
from tests.broker.subscription_driver import Driver
from tests.broker.subscription_model import Account, Entry, Member
from tests.broker.wire import Bed, Exclusive, Failover, KeyShared, Shared, Type, serving

NAMES = ("a", "b", "c", "d")
SIZES = (1, 2, 3, 6)  # messages in an entry
KEYS = ("k0", "k1", "k2")
SMALL = Config(  # so that a short history crosses every limit
    keepAliveIntervalSeconds=0,
    managedLedgerMaxEntriesPerLedger=7,
    managedLedgerMinLedgerRolloverTimeMinutes=0,
    managedLedgerCacheSizeMB=0,
    managedLedgerMaxUnackedRangesToPersistInMetadataStore=1,
    managedCursorInfoCompressionType="LZ4",
    managedCursorInfoCompressionThresholdInBytes=64,
    dispatcherMaxReadBatchSize=5,
    dispatcherMaxRoundRobinBatchSize=3,
)
VERBS = (
    *("flow", "publish", "ack", "ack_part", "redeliver") * 3,
    *("flow", "join", "wait") * 2,
    *("leave", "redeliver_all", "hold", "upheaval"),
)
UPHEAVALS = ("seek", "unload", "stop", "crash", "crash")

pytestmark = pytest.mark.timeout(900)  # hypothesis shrinks a failed history first, which takes minutes


class Step(NamedTuple):
    """A step of a history. Each verb uses the numbers in its own way."""

    verb: str
    who: int  # index of the consumer
    number: int
    picks: list[int]  # indexes of the entries
    other: bool  # the unusual variant of the verb
    more: bool  # the next command follows in the same read


def histories(*more: str) -> st.SearchStrategy[list[Step]]:
    """Draw histories of the usual verbs and those in `more`.

    A history is eight lists in a row, because hypothesis makes a list five steps long on average, and faults need more.
    """
    step = st.builds(
        Step,
        st.sampled_from(VERBS + more),
        st.integers(0, 3),
        st.integers(1, 12),
        st.lists(st.integers(0, 20), min_size=1, max_size=6),
        st.booleans(),
        st.booleans(),
    )
    return st.tuples(*[st.lists(step, max_size=30)] * 8).map(lambda lists: list(chain(*lists)))


async def take(driver: Driver, step: Step) -> None:
    account, members = driver.account, driver.members
    if step.verb == "publish":
        await driver.publish([made_of(pick, step) for pick in step.picks])
    elif step.verb == "hold":
        await driver.hold(reads=step.other)
    elif step.verb == "change":
        await driver.change((Exclusive, Failover, Shared, KeyShared)[step.number % 4])
    elif step.verb == "wait":
        await driver.pass_time(1 + step.number // 2)
    elif step.verb == "join" or not members:
        free = [name for name in NAMES if name not in {member.name for member in members}]
        if free and not (members and account.type == Exclusive):
            await driver.join(free[step.number % len(free)])
    else:
        await command(driver, members[step.who % len(members)], step)
    if not step.more:
        await driver.settle()


def made_of(pick: int, step: Step) -> tuple[int, str, float]:
    """Return an entry's number of messages, its key and its delay in seconds."""
    return SIZES[pick % 4], KEYS[pick // 4 % 3], step.number / 4 if step.other and pick % 5 == 0 else 0.0


async def command(driver: Driver, member: Member, step: Step) -> None:
    account, asks = driver.account, bool(step.who % 2)
    if step.verb == "flow":
        await driver.flow(member, step.number * (3 if step.other else 1))
    elif step.verb == "leave":
        await driver.leave(member, politely=step.other)
    elif step.verb == "redeliver_all":
        await driver.redeliver(member, [])
    elif step.verb == "upheaval":
        await (driver.unload() if upheaval(step) == "unload" else seek(driver, member, step))
    elif chosen := picked(account, member, step):
        if step.verb == "redeliver":
            await driver.redeliver(member, list(chosen))
            return
        acks = {where: left_of(entry, step) for where, entry in chosen.items()}
        if account.single and step.number % 2:
            where, left = acks.popitem()
            await driver.ack(member, {where: left}, cumulative=True, asks=asks)
        else:
            await driver.ack(member, acks, asks=asks)


def upheaval(step: Step) -> str:
    return UPHEAVALS[step.number % len(UPHEAVALS)] if step.verb == "upheaval" else ""


def picked(account: Account, member: Member, step: Step) -> dict[Position, Entry]:
    """Pick some entries that the consumer has, or some of all entries."""
    some = list(account.entries.values()) if step.other and step.who else account.of(member)
    return {entry.position: entry for pick in step.picks[: len(some)] for entry in [some[pick % len(some)]]}


def left_of(entry: Entry, step: Step) -> int:
    """Return the ack set that remains after an ACK: 0, or for `ack_part` some messages of a batch."""
    size = entry.full.bit_length()
    left = entry.full & ~(1 << step.number % size | 1 << step.who % size)
    return left if step.verb == "ack_part" else 0


async def seek(driver: Driver, member: Member, step: Step) -> None:
    entries = list(driver.account.entries.values())
    target = entries[step.picks[0] % len(entries)] if entries else None
    if target is None or step.who == 3:
        await driver.seek(member, EARLIEST if step.other else LATEST, -1)
    else:
        inside = target.full & (target.full - 1) if step.other else 0
        await driver.seek(member, target.position, inside or -1)


async def play(type: int, steps: list[Step]) -> None:
    """Play a history to its end, over all lives of the broker."""
    driver = Driver(Account(type))
    *before, (last, _) = lives(steps)
    for life, end in before:
        async with serving(SMALL, storage=driver.disk) as bed:
            await live(driver, bed, life)
            if end == "crash":
                await driver.crash()
            else:
                await driver.release()
        driver.end()
    async with serving(SMALL, storage=driver.disk) as bed:
        await live(driver, bed, last)
        await driver.finish()


def lives(steps: list[Step]) -> list[tuple[list[Step], str]]:
    """Split a history into the lives of the broker: the steps of each, and how it ends."""
    found: list[tuple[list[Step], str]] = []
    life: list[Step] = []
    for step in steps:
        if upheaval(step) in ("stop", "crash"):
            found.append((life, upheaval(step)))
            life = []
        else:
            life.append(step)
    return [*found, (life, "")]


async def live(driver: Driver, bed: Bed, steps: list[Step]) -> None:
    await driver.begin(bed)
    await driver.sender.subscribe(name="holder")  # keeps acknowledged ledgers from being deleted
    await driver.sender.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    for step in steps:
        await take(driver, step)
    await driver.settle()


def run(type: int, steps: list[Step]) -> None:
    trio.run(play, type, steps, clock=MockClock(autojump_threshold=0))


TYPES = [
    pytest.param(Exclusive, marks=pytest.mark.req("B-01", "B-05", "B-13", "B-15", "B-16", "B-34"), id="Exclusive"),
    pytest.param(Failover, marks=pytest.mark.req("B-03", "B-05", "B-13", "B-15", "B-16", "B-34"), id="Failover"),
    pytest.param(Shared, marks=pytest.mark.req("B-04", "B-05", "B-15", "B-18", "B-19", "B-21", "B-34"), id="Shared"),
    pytest.param(KeyShared, marks=pytest.mark.req("B-05", "B-11", "B-18", "B-19", "B-21", "B-34"), id="Key_Shared"),
]
BATCHES = pytest.mark.req("B-17", "S54-12", "S54-14", "S54-15", "S54-16", "S54-17", "S54-18", "S54-19", "S54-22")


@BATCHES
@pytest.mark.parametrize("type", TYPES)
@settings(max_examples=30)
@given(histories())
def test_short_histories_of_subscriptions(type: int, steps: list[Step]) -> None:
    run(type, steps)


@settings(max_examples=12)
@given(histories("change", "change"))
def test_changes_of_type(steps: list[Step]) -> None:
    """The first consumer gives the subscription its type, after all other consumers have left."""
    run(Shared, steps)


@pytest.mark.heavy
@pytest.mark.parametrize("type", TYPES)
@settings(max_examples=60)
@given(histories())
def test_many_histories_of_subscriptions(type: int, steps: list[Step]) -> None:
    run(type, steps)
