"""Random acknowledgements with and without transactions, compared with a model over failed commits, kills and unloads.

A history is a list of plain steps, as in tests/broker/test_subscription_machine.py.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import NamedTuple

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsarium.broker.model.cursor.pending_record import PendingEntry
from pulsarium.broker.model.errors import TransactionConflictError
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.base import Consumer
from pulsarium.proto.message_id import words_of
from tests.broker.model.cursor.pended import Pended, txn
from tests.broker.model.cursor.pending_model import Ack, Model
from tests.broker.model.dispatch.clients import FakeClient
from tests.broker.wire import Exclusive, KeyShared, Shared, batch_of, plain

SIZES = [1, 3, 1, 2, 66, 1]
PLENTY = 100_000  # permits that no history uses up
pytestmark = pytest.mark.timeout(900)  # hypothesis takes minutes to shorten a failed history

VERBS = (*("ack", "commit", "hold", "release") * 2, "ack", "through", "plain", "abort", "kill", "rejoin")


class Step(NamedTuple):
    verb: str
    least: int
    entries: list[int]
    bits: int  # the batch indexes, as bits
    number: int
    other: bool


STEP = st.builds(
    Step,
    st.sampled_from(VERBS),
    st.integers(1, 3),
    st.lists(st.integers(0, len(SIZES) - 1), min_size=1, max_size=3, unique=True),
    st.integers(1, 2**66 - 1),
    st.integers(0, 5),
    st.booleans(),
)
STEPS = st.tuples(*[st.lists(STEP, max_size=15)] * 6).map(lambda lists: list(chain(*lists)))  # many histories are long


class Driver:
    """A subscription and its model, which take the same steps."""

    def __init__(self, type: int) -> None:
        self.type = type
        self.stand = Pended()
        self.model = Model(SIZES, type != Exclusive)
        made = [
            plain(b"x", partition_key="k") if size == 1 else batch_of(*[b"x"] * size, partition_key="k")
            for size in SIZES
        ]
        self.sent: list[Position] = self.stand.publish(*made)
        self.stand.publish(plain(b"kept", partition_key="k"))  # an unacknowledged entry, so that no ledger is trimmed
        self.on_their_way: list[tuple[Callable[[], None], Callable[[], None]]] = []  # on success, on failure
        self.low_watermark = -1
        self.join()

    def join(self) -> None:
        self.stand.client = FakeClient(room=1 << 30)
        self.consumer: Consumer = self.stand.join(self.stand.client, self.type, permits=PLENTY)

    def take(self, step: Step) -> None:
        verb = "ack" if step.verb == "through" and self.type != Exclusive else step.verb
        if verb == "hold":
            self.stand.store.holding = True
        elif verb == "release" or (verb in ("plain", "kill", "rejoin") and self.stand.store.holding):
            self.release(step)
        else:
            getattr(self, verb)(step)

    def what(self, entry: int, step: Step) -> tuple[frozenset[int], bool]:
        """Return the batch indexes that a step acknowledges, and whether the ACK names the whole entry."""
        size = SIZES[entry]
        whole = size == 1 or step.number == 0
        indexes = frozenset(index for index in range(size) if whole or step.bits >> index & 1) or frozenset({0})
        return indexes, whole

    def acked(self, entry: int, indexes: frozenset[int], *, whole: bool, says_size: bool = True) -> PendingEntry:
        left = [index for index in range(SIZES[entry]) if index not in indexes]
        bits = sum(1 << index for index in left)
        size = SIZES[entry] if says_size else 0
        return (
            PendingEntry(self.sent[entry]) if whole else PendingEntry(self.sent[entry], bits, size, len(words_of(bits)))
        )

    # the steps

    def ack(self, step: Step) -> None:
        said = {entry: self.what(entry, step) for entry in step.entries}
        conflict = any(self.model.conflicts(entry, *what[:1], whole=what[1]) for entry, what in said.items())
        acks = [self.acked(entry, indexes, whole=whole) for entry, (indexes, whole) in said.items()]
        made = Ack(step.least, {entry: indexes for entry, (indexes, _) in said.items()})
        self.tries(conflict, made, lambda: self.stand.acks(txn(step.least), self.consumer, *acks))

    def through(self, step: Step) -> None:
        entry = step.entries[0]
        count = 1 + step.number % SIZES[entry]
        conflict = self.model.conflicts_through(step.least, (entry, count))
        indexes, whole = frozenset(range(count)), count == SIZES[entry]
        made = Ack(step.least, {}, (entry, count))
        acked = self.acked(entry, indexes, whole=whole)
        self.tries(conflict, made, lambda: self.stand.acks_through(txn(step.least), acked))

    def tries(self, conflict: bool, made: Ack, act: Callable[[], None]) -> None:
        if conflict:
            self.does(lambda: self.refused(act), lambda: None, lambda: None)
            return
        self.model.acks.append(made)
        self.does(act, lambda: None, lambda: self.model.acks.remove(made))

    def refused(self, act: Callable[[], None]) -> None:
        """Assert that an ACK is refused. The store keeps only that the subscription has used transactions."""
        with pytest.raises(TransactionConflictError):
            act()
        self.stand.end_turn()

    def plain(self, step: Step) -> None:
        entry = step.entries[0]
        indexes, whole = self.what(entry, step)
        left = self.acked(entry, indexes, whole=False).ack_set
        if whole:
            self.stand.subscription.acknowledge(self.consumer, [self.sent[entry]], save_now=True)
        else:
            self.stand.subscription.acknowledge(self.consumer, (), [(self.sent[entry], left)], save_now=True)
        self.stand.end_turn()
        self.model.plain(entry, indexes)

    def commit(self, step: Step) -> None:
        self.ends(step, commit=True)

    def abort(self, step: Step) -> None:
        self.ends(step, commit=False)

    def ends(self, step: Step, *, commit: bool) -> None:
        """End a transaction. With a low watermark, transactions of lower numbers are aborted too."""
        self.low_watermark = max(self.low_watermark, step.least - 1 if step.other else -1)
        over = [(self.model.begin_end(step.least), commit)]
        over += [(self.model.begin_end(least), False) for least in range(1, self.low_watermark + 1)]

        def kept() -> None:
            for acks, was_commit in over:
                self.model.end(acks, commit=was_commit)

        def failed() -> None:
            for acks, _ in over:
                for each in acks:
                    each.ending = False

        act = self.stand.commit if commit else self.stand.abort
        self.does(lambda: act(txn(step.least), self.low_watermark), kept, failed)

    def does(self, act: Callable[[], None], kept: Callable[[], None], failed: Callable[[], None]) -> None:
        waiting = self.stand.store.waiting
        before = len(waiting)
        act()
        if len(waiting) > before:
            self.on_their_way.append((kept, failed))
        else:
            kept()

    def release(self, step: Step) -> None:
        """Let the first held commits of the store succeed, and let the others fail or succeed."""
        store, on_their_way = self.stand.store, self.on_their_way
        self.on_their_way = []
        count = min(step.number, len(on_their_way))
        store.release(count)
        for kept, _ in on_their_way[:count]:
            kept()
        if step.other and store.waiting:
            store.fail()
            for _, failed in reversed(on_their_way[count:]):
                failed()
        else:
            for kept, _ in on_their_way[count:]:
                kept()
        store.release()

    def kill(self, step: Step) -> None:
        self.stand = self.stand.killed()
        self.low_watermark = -1
        self.join()

    def rejoin(self, step: Step) -> None:
        """Reconnect the consumer, perhaps to a topic that was unloaded meanwhile."""
        stand = self.stand
        stand.client.leave(self.consumer)
        if step.other:
            topic = stand.topic
            topic.close()
            topic.log.reopen()
            stand.topic = type(topic)(topic.name, stand.cluster, topic.policies, topic.log)
            stand.subscription = stand.topic.subscriptions["sub"]
        stand.end_turn()
        self.join()

    # checks after each step

    def check(self) -> None:
        if self.stand.store.waiting:
            return
        cursor, model = self.stand.subscription.cursor, self.model
        for entry, position in enumerate(self.sent):
            assert cursor.is_acked(position) == model.is_acked(entry)
            if not model.is_acked(entry):
                bits = cursor.left_of(position)
                left = (
                    set(range(SIZES[entry])) if bits is None else {at for at in range(SIZES[entry]) if bits >> at & 1}
                )
                assert left == model.left(entry)
        if self.type == Exclusive:
            return
        owed = {position: len(model.left(entry)) for entry, position in enumerate(self.sent) if model.left(entry)}
        pending = {position: count for position, count in self.consumer.pending.items() if position in self.sent}
        assert pending == owed  # all remaining messages are delivered, and no others
        assert self.consumer.unacked == sum(self.consumer.pending.values())


@pytest.mark.parametrize("type", [Shared, KeyShared, Exclusive])
@settings(max_examples=20, deadline=None)
@given(steps=STEPS)
def test_pending_acks_behave_as_sets_whatever_happens(type: int, steps: list[Step]) -> None:
    async def play() -> None:
        driver = Driver(type)
        for step in steps:
            driver.take(step)
            driver.check()
        driver.release(Step("release", 1, [0], 1, 0, False))
        driver.check()
        driver.kill(Step("kill", 1, [0], 1, 0, False))
        driver.check()
        for least in range(1, 4):
            driver.stand.abort(txn(least))
            driver.model.end(driver.model.begin_end(least), commit=False)
        driver.check()
        assert not driver.stand.pending
        assert driver.stand.kept in ([], ["used"])

    trio.run(play)
