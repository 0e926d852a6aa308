"""Crashes after each commit of a transaction that consumes from one topic and publishes to two."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from pulsarium.proto.entry import payload_of
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.commands.coordinators import MINUTE, ON, using
from tests.broker.held import HeldStorage
from tests.broker.wire import TOPIC, Bed, Earliest, Shared, Type, Wire, message_id, plain, serving

OUTPUTS = (f"{TOPIC}-a", f"{TOPIC}-b")
TXN: dict[str, Any] = {"txnid_most_bits": 0, "txnid_least_bits": 0}
SUB = {"topic": TOPIC, "subscription": "sub"}

pytestmark = [pytest.mark.usefixtures("autojump_clock"), pytest.mark.req("B-29")]


class Seen(NamedTuple):
    """The messages that clients receive in the end, from the input topic and from each output topic."""

    input: list[bytes]
    outputs: list[list[bytes]]


NOTHING = Seen([b"in"], [[], []])
EVERYTHING = Seen([], [[b"out"], [b"out"]])


async def in_flight(bed: Bed, store: HeldStorage, *, action: int) -> Wire:
    """Send all requests of the transaction, and hold back the commit of each. END_TXN is request 105."""
    wire = await using(bed)
    await wire.producer(TOPIC, 9)
    await wire.publish(plain(b"in"), producer_id=9)
    await wire.subscribe(TOPIC, type=Shared, initialPosition=Earliest)
    await wire.flow()
    consumed = (await wire.message()).position
    for number, topic in enumerate(OUTPUTS):
        await wire.producer(topic, number)
        await wire.subscribe(topic, consumer_id=number + 1, initialPosition=Earliest)
    store.holding = True
    send = {"sequence_id": 0, **TXN}
    for request, trailing, fields in (
        (Type.NEW_TXN, b"", {"request_id": 100, "tc_id": 0, "txn_ttl_millis": MINUTE}),
        (Type.ADD_PARTITION_TO_TXN, b"", {"request_id": 101, **TXN, "partitions": [OUTPUTS[0]]}),
        (Type.SEND, plain(b"out", **TXN), {"producer_id": 0, **send}),
        (Type.ADD_PARTITION_TO_TXN, b"", {"request_id": 102, **TXN, "partitions": [OUTPUTS[1]]}),
        (Type.SEND, plain(b"out", **TXN), {"producer_id": 1, **send}),
        (Type.ADD_SUBSCRIPTION_TO_TXN, b"", {"request_id": 103, **TXN, "subscription": [SUB]}),
        (
            Type.ACK,
            b"",
            {"request_id": 104, "consumer_id": 0, "ack_type": 0, "message_id": [message_id(consumed)], **TXN},
        ),
        (Type.END_TXN, b"", {"request_id": 105, **TXN, "txn_action": action}),
    ):
        await wire.send(request, trailing, **fields)
        await wire.quiet()
    return wire


async def found(store: HeldStorage, *, then: int) -> tuple[bool, Seen]:
    """Serve a broker with this store. Return whether the transaction has ended, and what clients see after it is ended
    by `then`."""
    async with serving(ON, storage=store) as bed:
        wire = await using(bed)
        reply = await wire.ask(Type.END_TXN, **TXN, txn_action=then)
        over = reply.error == pb.TransactionNotFound
        assert over or not reply.HasField("error")
        return over, await see(wire)


async def see(wire: Wire) -> Seen:
    return Seen(await _delivered(wire, TOPIC, 0), [await _delivered(wire, topic, 1) for topic in OUTPUTS])


async def _delivered(wire: Wire, topic: str, consumer_id: int) -> list[bytes]:
    await wire.subscribe(topic, consumer_id=consumer_id, initialPosition=Earliest, type=Shared)
    await wire.flow(consumer_id=consumer_id)
    received = await wire.rest()
    await wire.ask(Type.CLOSE_CONSUMER, consumer_id=consumer_id)
    return [payload_of(each.trailing) for each in received if each.command.type == Type.MESSAGE]


@pytest.mark.parametrize("then", [pb.COMMIT, pb.ABORT])
@pytest.mark.parametrize("action", [pb.COMMIT, pb.ABORT])
async def test_a_crash_between_any_two_commits_loses_no_transaction(action: int, then: int) -> None:
    """The transaction is complete everywhere or nowhere. An open one can be committed or aborted."""
    seen: list[Seen] = []
    over = False
    store = HeldStorage()
    async with serving(ON, storage=store) as bed:
        await in_flight(bed, store, action=action)
        commits = len(store.waiting)
        assert commits >= 8
        for _ in range(commits + 1):
            over, found_here = await found(store.left_behind(), then=then)
            seen.append(found_here)
            if store.waiting:
                store.release(1)
        assert over
        store.release()
    assert seen[-1] == (EVERYTHING if action == pb.COMMIT else NOTHING)
    assert seen[0] == NOTHING
    for state in seen[1:]:
        if then == pb.ABORT:
            assert state in (NOTHING, EVERYTHING)
        else:  # commits what the crash left
            assert [b"in"] not in state.outputs
            assert state.outputs in ([[], []], [[b"out"], []], [[b"out"], [b"out"]])
            assert state.input == [b"in"] or state.outputs == [[b"out"]] * 2


@pytest.mark.parametrize("action", [pb.COMMIT, pb.ABORT])
@pytest.mark.serving(ON)
async def test_an_end_that_could_not_be_kept(store: HeldStorage, bed: Bed, action: int) -> None:
    """A failed end changes nothing, and a second END_TXN ends the whole transaction."""
    wire = await in_flight(bed, store, action=action)
    store.release(len(store.waiting) - 1)
    store.fail()
    store.release()
    assert (await wire.reply(105)).endTxnResponse.error == pb.TransactionCoordinatorNotFound
    await wire.aclose()
    again = await using(bed)
    assert await see(again) == Seen([], [[], []])  # the transaction is open, and still holds its acknowledgements
    reply = await again.ask(Type.END_TXN, **TXN, txn_action=action)
    assert not reply.HasField("error")
    assert await see(again) == (EVERYTHING if action == pb.COMMIT else NOTHING)
