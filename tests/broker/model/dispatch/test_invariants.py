"""Random histories of Shared and Key_Shared: each read entry is in one place, and no entry waits without a reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsarium.broker.model.dispatch.delays import DelayedMessages, _unpacked
from pulsarium.broker.model.dispatch.key_shared import KeySharedDispatcher
from pulsarium.broker.model.dispatch.sharing import SharingDispatcher
from pulsarium.broker.model.errors import BrokerServiceError
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.base import Consumer
from pulsarium.broker.model.subscription.options import HashRanges, KeySharedOptions
from pulsarium.broker.model.subscription.skip import Skip, SkipEntry, skip_through
from pulsarium.broker.storage.interface import ReadDone, StorageError
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.conftest import run_without_waiting
from tests.broker.held import HeldStorage
from tests.broker.model.dispatch.clients import PLENTY, FakeClient, Loud, Stand
from tests.broker.wire import KeyShared, Shared, batch_of, plain

KEYS = [f"key-{number}" for number in range(8)]
CONFIG: dict[str, Any] = {
    "dispatcherMaxReadBatchSize": 4,
    "dispatcherMaxRoundRobinBatchSize": 3,
    "maxUnackedMessagesPerConsumer": 0,
    "maxUnackedMessagesPerSubscription": 0,
    "keySharedLookAheadMsgInReplayThresholdPerConsumer": 3,
    "managedLedgerMaxEntriesPerLedger": 9,
    "managedLedgerMinLedgerRolloverTimeMinutes": 0,
    "managedLedgerCacheSizeMB": 0,  # so that entries of earlier turns are read from the store
}
STICKY = 65536 // 4


class Store(HeldStorage):
    """A store whose ledgers may be deleted while they are read."""

    def read(self, ledger_id: int, first: int, last: int, done: ReadDone) -> None:
        if self.holding_reads or ledger_id in self.entries:
            super().read(ledger_id, first, last, done)
        else:
            done(StorageError("no such ledger"))


class Life:
    """A subscription with a random history."""

    def __init__(self, type: int, seed: int, options: KeySharedOptions, *, durable: bool) -> None:
        self.type = type
        self.options = options
        self.random = Random(seed)
        self.storage = Store()
        self.stand = Stand(self.storage, durable=durable, **CONFIG)
        self.clients = [FakeClient() for _ in range(3)]
        self.granted: Counter[Consumer] = Counter()
        self.positions: list[Position] = []
        self.joined = False
        self.join()

    @property
    def dispatcher(self) -> SharingDispatcher:
        found = self.stand.subscription.dispatcher
        assert isinstance(found, SharingDispatcher)
        return found

    def consumer(self) -> Consumer | None:
        consumers = [*self.stand.subscription.consumers]
        return self.random.choice(consumers) if consumers else None

    # the steps

    def entry(self) -> bytes:
        random = self.random
        fields: dict[str, Any] = {"partition_key": random.choice(KEYS)}
        kind = random.randrange(8)
        if kind == 0:
            return batch_of(b"a", b"b", b"c", **fields)
        if kind == 1:
            return plain(b"later", deliver_at_time=self.stand.topic.now_ms() + random.randrange(6000), **fields)
        if kind == 2:
            return plain(b"marker", marker_type=10)
        if kind == 3:
            uuid, chunk_id = random.choice("xy"), random.randrange(3)
            return plain(b"chunk", uuid=uuid, chunk_id=chunk_id, num_chunks_from_msg=3, **fields)
        return plain(b"x", **fields)

    def publish(self) -> None:
        self.positions += self.stand.publish(*[self.entry() for _ in range(self.random.randrange(1, 7))])

    def flow(self) -> None:
        if (consumer := self.consumer()) is not None:
            permits = self.random.choice([1, 2, 5, 30])
            self.granted[consumer] += permits
            self.stand.flow(consumer, permits)

    def some(self, consumer: Consumer) -> list[Position]:
        """Choose some positions, mostly of the consumer's unacknowledged messages."""
        every = list(consumer.pending) if self.random.randrange(4) else self.positions
        return self.random.sample(every, min(len(every), self.random.randrange(1, 5)))

    def ack(self) -> None:
        if (consumer := self.consumer()) is not None:
            self.stand.ack(consumer, *self.some(consumer))

    def ack_partly(self) -> None:
        if (consumer := self.consumer()) is not None:
            parts = [(position, [self.random.randrange(8)]) for position in self.some(consumer)]
            self.stand.subscription.acknowledge(consumer, (), parts, save_now=False)

    def nack(self) -> None:
        if (consumer := self.consumer()) is not None:
            self.stand.redeliver(consumer, *self.some(consumer))

    def join(self) -> None:
        options = self.options
        if options.mode == pb.STICKY:
            start = self.random.randrange(4) * STICKY
            options = replace(options, ranges=HashRanges([(start, start + STICKY - 1)]))
        index = self.random.randrange(len(self.clients))
        if self.clients[index].closed:
            self.clients[index] = FakeClient()
        if self.stand.subscription.durable or self.stand.subscription.consumers or not self.joined:
            self.joined = True
            try:
                level = self.random.randrange(2)
                self.stand.join(self.clients[index], self.type, options=options, priority_level=level)
            except BrokerServiceError:
                assert options.mode == pb.STICKY

    def leave(self) -> None:
        if (consumer := self.consumer()) is not None:
            assert isinstance(consumer.client, FakeClient)
            consumer.client.leave(consumer)

    def close_at_delivery(self) -> None:
        self.random.choice(self.clients).closes = True

    def fill(self) -> None:
        client = self.random.choice(self.clients)
        client.drained(self.random.choice([0, 80, 200]))

    def drain(self) -> None:
        self.random.choice(self.clients).drained()

    def change_policies(self) -> None:
        topic, random = self.stand.topic, self.random
        delays = topic.policies.delayed_delivery
        topic.set_policies(
            replace(
                topic.policies,
                max_unacked_per_consumer=random.choice([0, 3, 6]),
                max_unacked_per_subscription=random.choice([0, 4, 9]),
                delayed_delivery=replace(delays, active=random.random() < 0.9, tick_ms=random.choice([300, 1000])),
            )
        )

    def skip(self) -> None:
        if self.positions:
            skip_through(self.stand.subscription, self.random.choice(self.positions))

    def skip_entries(self) -> None:
        some = self.random.sample(self.positions, min(len(self.positions), 4))
        parts = [(), (), (0,), (1, 2), (0, 1, 2)]
        skip = Skip(self.stand.subscription, [SkipEntry(*each, self.random.choice(parts)) for each in some])
        skip.check(dict.fromkeys(skip.partial, 3))
        skip.apply()

    def seek(self) -> None:
        if self.positions and not self.random.randrange(4):
            target = self.random.choice(self.positions)
            self.stand.subscription.reset_now(lambda: self.stand.subscription.cursor.reset(target))

    def hold_reads(self) -> None:
        self.storage.holding_reads = True

    def release_reads(self) -> None:
        self.storage.release_reads()

    async def step(self, number: int) -> None:
        if number >= len(STEPS):
            await trio.sleep(self.random.randrange(4000) / 1000)
        else:
            STEPS[number](self)
        self.stand.end_turn()
        self.check()

    # checks after each step

    def places(self) -> Iterator[tuple[str, Position]]:
        """Yield the place of each entry that was read and is not acknowledged."""
        dispatcher = self.dispatcher
        for consumer in dispatcher.consumers:
            yield from (("pending", position) for position in consumer.pending)
        yield from (("replay", position) for position in dispatcher.replay)
        for positions in dispatcher._waiting.values():
            yield from (("waiting", position) for position in positions)
        yield from (("delayed", position) for position in of_delayed(dispatcher.delayed._messages))
        if isinstance(dispatcher, KeySharedDispatcher):
            for positions in dispatcher.key_owners.held.values():
                yield from (("held", position) for position in positions)
            yield from (("unowned", position) for position in dispatcher._unowned)

    def check(self) -> None:
        subscription, dispatcher = self.stand.subscription, self.dispatcher
        consumers, cursor = dispatcher.consumers, subscription.cursor
        for consumer in consumers:
            assert isinstance(consumer.client, FakeClient)
            assert consumer.unacked == sum(consumer.pending.values()) >= 0
            assert not any(cursor.is_acked(position) for position in consumer.pending)
            got = consumer.client.messages_of.get(consumer.consumer_id, 0)
            assert consumer.permits + consumer.blocked_permits == self.granted[consumer] - got
        assert dispatcher.unacked == sum(consumer.unacked for consumer in consumers)
        places = list(self.places())
        if not consumers:
            assert places == []
            return
        assert max(Counter(places).values(), default=1) == 1, places
        here = Counter(position for _, position in places if not cursor.is_acked(position))
        assert here == Counter(
            position for position in self.positions if position < cursor.read_position and not cursor.is_acked(position)
        )
        assert dispatcher.waiting_count == sum(place in {"replay", "waiting", "held", "unowned"} for place, _ in places)
        if isinstance(dispatcher, KeySharedDispatcher):
            self.check_keys(dispatcher)
        if not self.storage._waiting_reads:
            self.check_nothing_waits_needlessly()

    def check_keys(self, dispatcher: KeySharedDispatcher) -> None:
        assert dispatcher.key_owners._owners.keys() == {
            p for consumer in dispatcher.consumers for p in consumer.pending
        }
        owed = Counter(dispatcher.key_owners._owners.values())
        assert all(owner is dispatcher.key_owners.owner_of(owner.consumer, owner.key_hash) for owner in owed)
        assert owed == {
            owner: owner.entries
            for each in dispatcher.consumers
            for owner in dispatcher.key_owners.keys_of(each).values()
        }
        for key_hash, draining in dispatcher.key_owners.draining.items():
            assert dispatcher.drains
            assert key_hash in dispatcher.key_owners.keys_of(draining.consumer)
            assert dispatcher.selector.select(key_hash) is not draining.consumer
        assert dispatcher.key_owners.held.keys() <= dispatcher.key_owners.draining.keys()
        if dispatcher.drains:
            assert len({owner.key_hash for owner in owed}) == len(owed), "two consumers have messages of one hash"

    def check_nothing_waits_needlessly(self) -> None:
        dispatcher, cursor = self.dispatcher, self.stand.subscription.cursor
        ready = [consumer for consumer in dispatcher.consumers if is_ready(consumer)]
        assert not dispatcher._waiting.keys() & ready
        if not ready:
            return
        assert not dispatcher.replay
        assert not dispatcher.delayed or dispatcher.delayed._alarm is not None
        assert dispatcher.delayed._alarm_for == dispatcher.delayed._messages.first_ms
        if cursor.has_more() and not dispatcher.blocked:
            assert isinstance(dispatcher, KeySharedDispatcher)
            assert 0 < dispatcher._look_ahead() <= dispatcher.waiting_count

    async def end_well(self) -> None:
        """Let all consumers read and acknowledge, and assert that all messages are delivered."""
        topic, subscription = self.stand.topic, self.stand.subscription
        self.storage.release_reads()
        for client in self.clients:
            client.closes = False
            client.drained()
        topic.set_policies(replace(topic.policies, max_unacked_per_consumer=0, max_unacked_per_subscription=0))
        if not subscription.durable and not subscription.consumers:
            return
        last = FakeClient()
        for number in range(4 if self.options.mode == pb.STICKY else 1):
            start = number * STICKY
            options = replace(self.options, ranges=HashRanges([(start, start + STICKY - 1)]))
            try:
                self.stand.join(last, self.type, options=options)
            except BrokerServiceError:
                continue
        for consumer in subscription.consumers:
            self.granted[consumer] += PLENTY
            self.stand.flow(consumer, PLENTY)
        for _ in range(20):
            await trio.sleep(10)
            self.stand.end_turn()
            for consumer in list(subscription.consumers):
                self.stand.ack(consumer, *list(consumer.pending))
            self.check()
        left = [place for place, position in self.places() if not subscription.cursor.is_acked(position)]
        assert set(left) <= {"orphan"}
        assert not subscription.cursor.has_more()
        assert subscription.cursor.backlog() == len(left)


def is_ready(consumer: Consumer) -> bool:
    """Return `can_receive` of a consumer, without the promise of its connection to resume the consumer later."""
    assert isinstance(consumer.client, FakeClient)
    return consumer.permits > 0 and not consumer.blocked and consumer.client.has_room


def of_delayed(delayed: DelayedMessages) -> Iterator[Position]:
    for bucket in delayed._buckets.values():
        yield from _unpacked(bucket) if isinstance(bucket, bytes) else bucket


STEPS: list[Callable[[Life], None]] = [
    *[Life.publish] * 4,
    *[Life.flow] * 4,
    *[Life.ack] * 3,
    *[Life.nack] * 2,
    *[Life.join] * 2,
    Life.ack_partly,
    Life.leave,
    Life.close_at_delivery,
    Life.fill,
    *[Life.drain] * 2,
    Life.change_policies,
    Life.skip,
    Life.skip_entries,
    Life.seek,
    Life.hold_reads,
    *[Life.release_reads] * 2,
]
AUTO = KeySharedOptions()
KINDS = [(Shared, AUTO), (KeyShared, AUTO), (KeyShared, AUTO), (KeyShared, KeySharedOptions(mode=pb.STICKY))]
LOOSE = KeySharedOptions(out_of_order=True)


async def live(kind: tuple[int, KeySharedOptions], durable: bool, steps: list[tuple[int, int]]) -> None:
    life = Life(kind[0], steps[0][1], kind[1], durable=durable)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(life.stand.cluster.clock.run)
        for number, seed in steps:
            life.random.seed(seed)
            await life.step(number)
        await life.end_well()
        nursery.cancel_scope.cancel()


@pytest.mark.req("B-04", "B-06", "B-11", "B-18", "B-21", "B-28")
@settings(max_examples=150)
@given(
    st.sampled_from([*KINDS, (KeyShared, LOOSE)]),
    st.sampled_from([True, True, True, False]),
    st.lists(st.tuples(st.integers(0, len(STEPS) + 1), st.integers(0, 2**16)), min_size=1, max_size=80),
)
def test_everything_is_somewhere_and_nothing_waits_needlessly(
    kind: tuple[int, KeySharedOptions], durable: bool, steps: list[tuple[int, int]]
) -> None:
    with patch("pulsarium.broker.turn.log", Loud):
        run_without_waiting(live, kind, durable, steps)
