"""Messages that wait for one consumer while other consumers go on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pulsarium.broker.model.dispatch.key_shared import KeySharedDispatcher
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.options import HashRanges, KeySharedOptions
from pulsarium.broker.model.subscription.reasons import Reason
from pulsarium.broker.model.subscription.skip import skip_through
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.model.dispatch.clients import FakeClient, Stand
from tests.broker.wire import Exclusive, Failover, KeyShared, Shared, batch_of, plain


def of(key: str, count: int) -> list[bytes]:
    return [plain(b"x" * 100, partition_key=key)] * count


def got(client: FakeClient) -> list[Position]:
    return [delivery.position for delivery in client.got]


def reason(stand: Stand) -> Reason:
    """Return why the subscription delivers no more messages."""
    return stand.subscription.reason


class Two:
    """Two consumers of a Key_Shared subscription, each with a key of its own."""

    def __init__(self, stand: Stand, permits: tuple[int, int] = (100, 100)) -> None:
        self.clients = [FakeClient(), FakeClient()]
        consumers = [stand.join(client, KeyShared) for client in self.clients]
        dispatcher = stand.subscription.dispatcher
        assert isinstance(dispatcher, KeySharedDispatcher)
        selector = dispatcher.selector
        owners = {selector.select(selector.hash_of_key(key.encode())): key for key in map(str, range(20))}
        self.keys = [owners[consumer] for consumer in consumers]
        for consumer, count in zip(consumers, permits, strict=True):
            if count:
                stand.flow(consumer, count)


@pytest.mark.parametrize("which", [0, 1])
async def test_a_connection_that_was_filled_goes_on_when_it_has_room(which: int) -> None:
    stand = Stand()
    two = Two(stand)
    client = two.clients[which]
    client.drained(250)
    positions = stand.publish(*of(two.keys[which], 6))
    assert 0 < len(client.got) < 6
    client.drained()
    stand.end_turn()
    assert got(client) == positions


@pytest.mark.req("B-28", "B-18")
async def test_chunks_that_come_again_before_their_first_one_are_not_lost() -> None:
    stand, client = Stand(), FakeClient()
    consumer = stand.join(client, Shared, 100)
    first, second = [plain(b"", uuid="u", chunk_id=i, num_chunks_from_msg=2) for i in range(2)]
    positions = stand.publish(second, first)
    assert sorted(got(client)) == positions
    client.got.clear()
    stand.redeliver(consumer)
    assert sorted(got(client)) == positions


@pytest.mark.req("B-11")
@pytest.mark.parametrize(
    ("key", "limit"),
    [
        ("keySharedLookAheadMsgInReplayThresholdPerConsumer", 5),
        ("keySharedLookAheadMsgInReplayThresholdPerSubscription", 10),
    ],
)
async def test_skipped_messages_do_not_hold_up_other_consumers(key: str, limit: int) -> None:
    config: dict[str, Any] = {key: limit}
    stand = Stand(**config)
    two = Two(stand, permits=(0, 100))
    waiting = stand.publish(*of(two.keys[0], 9))
    stand.publish(*of(two.keys[1], 12))
    stand.publish(*of(two.keys[0], 1))
    stand.publish(*of(two.keys[1], 1))
    assert reason(stand) is Reason.LOOK_AHEAD
    assert len(two.clients[1].got) == 12
    skip_through(stand.subscription, waiting[-1])
    stand.end_turn()
    assert len(two.clients[1].got) == 13


@pytest.mark.req("B-11")
async def test_another_consumer_lets_more_wait() -> None:
    """The limit is keySharedLookAheadMsgInReplayThresholdPerConsumer times the number of consumers."""
    stand = Stand(keySharedLookAheadMsgInReplayThresholdPerConsumer=5, dispatcherMaxReadBatchSize=4)
    two = Two(stand, permits=(0, 100))
    stand.publish(*of(two.keys[0], 13))
    assert reason(stand) is Reason.LOOK_AHEAD
    stand.join(FakeClient(), KeyShared)
    stand.end_turn()
    assert reason(stand) is Reason.CAUGHT_UP


@pytest.mark.req("B-06")
async def test_all_may_leave_one_who_owes_as_much_as_all_may() -> None:
    """Half of the limit of 1 is 0, so that an acknowledgement does not lift the block, but leaving does."""
    stand, client = Stand(maxUnackedMessagesPerSubscription=1), FakeClient()
    consumer = stand.join(client, Shared, 1)
    stand.publish(plain(b"x"))
    assert stand.subscription.dispatcher.blocked  # type: ignore[union-attr]
    client.leave(consumer)
    stand.join(client, Shared, 1)
    assert len(client.got) == 2


@pytest.mark.parametrize("type", [Shared, KeyShared])
async def test_only_who_owes_an_entry_pays_for_what_others_acknowledge(type: int) -> None:
    stand, client = Stand(), FakeClient()
    both = [stand.join(client, type, 100) for _ in range(2)]
    (position,) = stand.publish(batch_of(b"a", b"b", b"c"))
    owner, other = both if both[0].pending else reversed(both)
    stand.subscription.acknowledge(other, (), [(position, [0b011])], save_now=False)
    assert (owner.unacked, other.unacked) == (2, 0)
    for _ in range(2):
        stand.ack(other, position)
        assert (owner.unacked, other.unacked) == (0, 0)
    for consumer in both:
        stand.redeliver(consumer, position)
    assert len(client.got) == 1


@pytest.mark.req("B-11")
async def test_an_ack_of_another_lets_a_key_move() -> None:
    stand, client = Stand(), FakeClient()
    stand.join(client, KeyShared, 100)
    entries = [entry for number in range(10) for entry in of(f"key-{number}", 1)]
    before = stand.publish(*entries)
    joined = stand.join(FakeClient(), KeyShared, 100)
    later = stand.publish(*entries)
    dispatcher = stand.subscription.dispatcher
    assert isinstance(dispatcher, KeySharedDispatcher)
    assert dispatcher.key_owners.draining
    held = [position for position in later if stand.subscription.why(position) is Reason.DRAINING]
    stand.ack(joined, *before)
    assert (list(joined.pending), dispatcher.key_owners.draining) == (held, {})


@pytest.mark.parametrize("type", [Shared, KeyShared])
async def test_readers_that_share_owe_without_limits(type: int) -> None:
    stand = Stand(durable=False, maxUnackedMessagesPerConsumer=2, maxUnackedMessagesPerSubscription=2)
    client = FakeClient()
    consumer = stand.join(client, type, 100)
    positions = stand.publish(*of("k", 5))
    stand.redeliver(consumer)
    assert (got(client), consumer.unacked) == (positions * 2, 5)
    client.leave(consumer)
    assert stand.topic.subscriptions == {}


@pytest.mark.parametrize("type", [Exclusive, Failover])
async def test_why_looks_only_at_the_active_consumer(type: int) -> None:
    stand, active, standby = Stand(activeConsumerFailoverDelayTimeMillis=0), FakeClient(), FakeClient()
    consumer = stand.join(active, type)
    if type == Failover:
        stand.join(standby, type, 100, priority_level=1)
    (position,) = stand.publish(plain(b"x"))
    assert (stand.subscription.why(position), reason(stand)) == (Reason.NO_PERMITS, Reason.NO_PERMITS)
    active.drained(0)
    stand.flow(consumer, 1)
    assert (stand.subscription.why(position), reason(stand)) == (Reason.NOT_WRITABLE, Reason.NOT_WRITABLE)
    assert standby.got == []


@pytest.mark.req("B-10")
async def test_sticky_ranges_change_hands_without_draining() -> None:
    stand, client = Stand(), FakeClient()
    whole = KeySharedOptions(mode=pb.STICKY, ranges=HashRanges([(0, 65535)]))
    consumer = stand.join(client, KeyShared, 100, whole)
    positions = stand.publish(*of("key-0", 2), *of("key-4", 2))
    client.leave(consumer)
    client.got.clear()
    stand.join(client, KeyShared, 100, replace(whole, ranges=HashRanges([(0, 30000)])))
    stand.join(client, KeyShared, 100, replace(whole, ranges=HashRanges([(30001, 65535)])))
    assert sorted(got(client)) == positions
    assert stand.subscription.dispatcher.waiting_count == 0  # type: ignore[union-attr]
