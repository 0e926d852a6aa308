"""Key_Shared: a key stays with its consumer, and moves only when all its delivered messages are acknowledged."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.model.dispatch.key_shared import KeySharedDispatcher
from pulsarium.broker.model.subscription.options import HashRanges, KeySharedOptions
from pulsarium.broker.model.subscription.reasons import Reason
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.model.dispatch.clients import FakeClient, Stand
from tests.broker.model.dispatch.sharing import dispatcher, got, joined, keyed, payloads, reason, sticky, why
from tests.broker.steps import steps_of
from tests.broker.wire import Bed, KeyShared, Message, Type, Wire, frame_of, message_id, serving

KEYS = [f"key-{number}" for number in range(10)]
MOVED = {"key-3", "key-4", "key-9"}  # keys that move from c0 to c1 when c1 joins


def keys_of(messages: list[Message]) -> set[str]:
    return {message.payload.decode().split()[0] for message in messages}


@pytest.mark.req("B-07", "B-08", "B-09")
async def test_each_key_has_one_consumer_and_its_order(bed: Bed, sender: Wire) -> None:
    wires = [await joined(bed, f"c{number}") for number in range(3)]
    await sender.publish(*keyed(KEYS * 10))
    received = [await got(wire) for wire in wires]
    assert [sorted(keys_of(each)) for each in received] == [  # as in transcript 069
        ["key-0", "key-2", "key-5", "key-6", "key-7", "key-8"],
        ["key-4"],
        ["key-1", "key-3", "key-9"],
    ]
    for each in received:
        for earlier, later in pairwise(each):
            assert earlier.position < later.position


@pytest.mark.req("B-11")
async def test_a_key_moves_when_its_old_owner_owes_nothing_of_it(bed: Bed, sender: Wire) -> None:
    old = await joined(bed, "c0")
    await sender.publish(*keyed(KEYS))
    owed = {message.payload.decode().split()[0]: message.position for message in await got(old)}
    new = await joined(bed, "c1")
    again = await sender.publish(*keyed(KEYS))
    at_once = keys_of(await got(old)) | keys_of(await got(new))
    moved = set(KEYS) - at_once
    assert moved == MOVED
    assert {why(bed, again[KEYS.index(key)]) for key in moved} == {Reason.DRAINING}
    for key in sorted(moved):
        await old.ack(owed[key])
        assert keys_of(await got(new)) == {key}
    assert dispatcher(bed).key_owners.draining == {}


@pytest.mark.req("B-11", "B-18")
async def test_unacknowledged_messages_go_to_the_new_owners_of_their_keys_in_order(bed: Bed, sender: Wire) -> None:
    stays, leaves = await joined(bed, "c0"), await joined(bed, "c1")
    await sender.publish(*keyed(KEYS * 3))
    its_own = await got(stays)
    owed = await got(leaves)
    await leaves.aclose()
    taken_over = await got(stays)
    assert [message.position for message in taken_over] == [message.position for message in owed]
    assert {message.redelivery_count for message in taken_over} == {0}
    assert len(its_own) + len(owed) == 30


@pytest.mark.req("B-11")
async def test_a_hash_that_comes_back_does_not_drain(bed: Bed, sender: Wire) -> None:
    old = await joined(bed, "c0")
    await sender.publish(*keyed(KEYS))
    await got(old)
    new = await joined(bed, "c1")
    await sender.publish(*keyed(["key-3", "key-4"]))
    assert await payloads(old) == await payloads(new) == []
    await new.aclose()
    assert await payloads(old) == [b"key-3 0", b"key-4 1"]
    assert dispatcher(bed).key_owners.draining == {}


@pytest.mark.req("B-11")
async def test_out_of_order_keys_move_at_once(bed: Bed, sender: Wire) -> None:
    loose: dict[str, Any] = {
        "keySharedMeta": {"keySharedMode": pb.KeySharedMode.AUTO_SPLIT, "allowOutOfOrderDelivery": True}
    }
    old = await joined(bed, "c0", **loose)
    await sender.publish(*keyed(KEYS))
    await got(old)
    new = await joined(bed, "c1", **loose)
    await sender.publish(*keyed(KEYS))
    assert keys_of(await got(new)) == MOVED


@pytest.mark.req("B-11")
async def test_a_consumer_without_permits_holds_up_its_own_keys_only(bed: Bed, sender: Wire) -> None:
    idle, busy = await joined(bed, "c0", permits=1), await joined(bed, "c1")
    positions = await sender.publish(*keyed(KEYS * 2))
    first, others = await got(idle), await got(busy)
    assert len(first) == 1
    waits = next(position for position in positions if position not in {m.position for m in [*first, *others]})
    assert why(bed, waits) is Reason.WAITING
    assert why(bed, first[0].position) is Reason.DELIVERED
    await idle.flow(100)
    rest = await got(idle)
    assert [message.position for message in rest] == sorted(message.position for message in rest)
    assert {m.position for m in [*first, *rest, *others]} == set(positions)
    assert not keys_of([*first, *rest]) & keys_of(others)


@pytest.mark.req("B-11")
async def test_reading_ahead_has_an_end(autojump_clock: object) -> None:
    config = Config(keySharedLookAheadMsgInReplayThresholdPerConsumer=50, dispatcherMaxReadBatchSize=10)
    async with serving(config) as bed:
        sender = await bed.connect()
        await sender.producer()
        idle, busy = await joined(bed, "c0", permits=1), await joined(bed, "c1")
        await sender.publish(*keyed(["key-0"] * 200 + ["key-4"]))
        assert (len(await got(idle)), await got(busy)) == (1, [])
        assert reason(bed) is Reason.LOOK_AHEAD
        assert dispatcher(bed).waiting_count < 130
        await idle.flow(1000)
        assert (len(await got(idle)), await payloads(busy)) == (199, [b"key-4 200"])


@pytest.mark.req("B-10")
async def test_sticky_ranges_with_a_gap(bed: Bed, sender: Wire) -> None:
    low = await joined(bed, "low", keySharedMeta=sticky((0, 20000)))
    positions = await sender.publish(*keyed(KEYS))
    first = await got(low)
    missing = [position for position in positions if position not in {message.position for message in first}]
    assert missing
    assert {why(bed, position) for position in missing} == {Reason.NO_OWNER}
    high = await joined(bed, "high", keySharedMeta=sticky((20001, 65535)))
    assert [message.position for message in await got(high)] == missing


@pytest.mark.req("B-18", "B-11")
async def test_nacked_messages_come_before_messages_that_wait_for_permits(bed: Bed, sender: Wire) -> None:
    wire = await joined(bed, "c0", permits=2)
    await joined(bed, "c1")
    positions = await sender.publish(*keyed(["key-0"] * 4))
    first = await got(wire)
    assert [message.position for message in first] == positions[:2]
    await wire.redeliver(positions[:2])
    await wire.flow(100)
    assert [message.position for message in await got(wire)] == positions


@pytest.mark.req("B-18", "B-19")
async def test_nacked_messages_come_before_new_messages_of_their_key(bed: Bed, sender: Wire) -> None:
    wire = await joined(bed, "c0", permits=4)
    await sender.publish(*keyed("aaaa"))
    positions = [message.position for message in await got(wire)]
    await wire.redeliver(positions[1:3])
    await sender.publish(*keyed("aa"))
    await wire.flow(100)
    again = await got(wire)
    assert [message.redelivery_count for message in again] == [1, 1, 0, 0]
    assert [message.position.entry_id for message in again] == [1, 2, 4, 5]


@pytest.mark.req("B-11", "B-18")
async def test_no_message_overtakes_one_of_its_key_that_waits_for_permits(bed: Bed, sender: Wire) -> None:
    wire = await joined(bed, "c0", permits=3)
    await joined(bed, "c1")
    positions = await sender.publish(*keyed(["key-0"] * 5))
    await got(wire)
    await wire.redeliver(positions[:2])  # these two and the last two wait from here on
    await wire.alive()
    last = frame_of(Type.REDELIVER_UNACKNOWLEDGED_MESSAGES, consumer_id=0, message_ids=[message_id(positions[2])])
    await wire.write(last + frame_of(Type.FLOW, consumer_id=0, messagePermits=100))  # in the same turn
    assert [message.position for message in await got(wire)] == positions


@pytest.mark.parametrize(
    ("mode", "on_ring"),
    [(pb.AUTO_SPLIT, True), (pb.AUTO_SPLIT, False), (pb.STICKY, False)],
    ids=["ring", "halves", "sticky"],
)
async def test_consumers_that_leave_together_give_their_hashes_away_together(mode: int, on_ring: bool) -> None:
    """The hashes of all others would otherwise cost each of them steps."""
    stand = Stand(
        subscriptionKeySharedUseConsistentHashing=on_ring, subscriptionKeySharedConsistentHashingReplicaPoints=5
    )
    client, other = FakeClient(), FakeClient()
    leaving = [
        stand.join(client, KeyShared, options=KeySharedOptions(mode, HashRanges([(i, i)]))) for i in range(1, 301)
    ]
    stays = stand.join(other, KeyShared, 10, options=KeySharedOptions(mode, HashRanges([(301, 65535)])))
    stand.end_turn()

    def leave() -> None:
        for consumer in leaving:
            client.leave(consumer)

    assert steps_of(leave) < 150 * len(leaving)
    stand.end_turn()
    found = stand.subscription.dispatcher
    assert isinstance(found, KeySharedDispatcher)
    assert [*found.selector.ranges()] == [stays]


@pytest.mark.parametrize("options", [KeySharedOptions(), KeySharedOptions(pb.STICKY, HashRanges([(0, 65535)]))])
async def test_hashes_are_given_anew_after_all_consumers_were_disconnected(options: KeySharedOptions) -> None:
    stand, client = Stand(), FakeClient()
    for _ in range(1 if options.ranges.pairs else 3):
        stand.join(client, KeyShared, options=options)
    stand.subscription.disconnect_consumers()
    stand.end_turn()
    found = stand.subscription.dispatcher
    assert isinstance(found, KeySharedDispatcher)
    assert found.selector.ranges() == {}
    again = stand.join(client, KeyShared, options=options)
    stand.end_turn()
    assert [*stand.subscription.dispatcher.selector.ranges()] == [again]  # type: ignore[union-attr]


async def test_consumers_are_disconnected_without_a_step_for_each_hash_of_others() -> None:
    stand, client = Stand(subscriptionKeySharedConsistentHashingReplicaPoints=100), FakeClient()
    for _ in range(100):
        stand.join(client, KeyShared)
    stand.end_turn()
    assert steps_of(stand.subscription.disconnect_consumers) < 100 * 100
