"""ACK in a transaction, in frames (B-29, cmd 10)."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.model.ledger.position import Position
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.held import HeldStorage
from tests.broker.wire import (
    TOPIC,
    Bed,
    Cumulative,
    Earliest,
    Exclusive,
    Shared,
    Type,
    Wire,
    batch_of,
    message_id,
    plain,
)

ASSIGN = "persistent://pulsar/system/transaction_coordinator_assign-partition-0"
NON_PERSISTENT = "non-persistent://public/default/t"


pytestmark = pytest.mark.serving(Config(transactionCoordinatorEnabled=True))


async def published(bed: Bed, *entries: bytes, type: int = Shared) -> tuple[Wire, list[Position]]:
    wire = await bed.connect()
    await wire.producer()
    await wire.subscribe(type=type, initialPosition=Earliest)
    sent = await wire.publish(*entries)
    await wire.flow()
    await wire.messages(len(entries))
    return wire, sent


def acks(least: int, *positions: Position, **fields: Any) -> dict[str, Any]:
    ids = [message_id(position) for position in positions]
    txn = {"txnid_most_bits": 0, "txnid_least_bits": least}
    return {"consumer_id": 0, "ack_type": pb.CommandAck.Individual, "message_id": ids, **txn, **fields}


async def refused(wire: Wire, least: int, *positions: Position, **fields: Any) -> tuple[int, str]:
    reply = await wire.ask(Type.ACK, **acks(least, *positions, **fields))
    assert reply.HasField("error")
    return reply.error, reply.message


@pytest.mark.req("B-29", "S54-25")
async def test_an_ack_of_another_transactions_message_is_a_conflict(bed: Bed) -> None:
    wire, sent = await published(bed, plain(b"0"), batch_of(b"x", b"y"))
    reply = await wire.ask(Type.ACK, **acks(8, sent[0]))
    assert not reply.HasField("error")
    text = (
        "org.apache.pulsar.transaction.common.exception.TransactionConflictException: [persistent://public/default/t]"
        f"[sub] Transaction:(0,8) try to ack message:{sent[0]} (ackSet is null) in pending ack status."
    )
    assert await refused(wire, 8, sent[0]) == (pb.TransactionConflict, text)
    part = [message_id(sent[1], ack_set=[0b10], batch_size=2)]
    assert not (await wire.ask(Type.ACK, **acks(8, message_id=part))).HasField("error")
    code, text = await refused(wire, 9, message_id=part)
    assert code == pb.TransactionConflict
    assert f"Transaction:(0,9) try to ack batch message:{sent[1]} (ackSet with long[] size of 1) in pending" in text
    await wire.send(Type.ACK, **acks(9, sent[0]))  # without a request id there is no error
    await wire.ack(sent[0])  # an ACK without a transaction is allowed
    await wire.quiet()


@pytest.mark.req("B-29")
async def test_two_transactions_cannot_acknowledge_the_same_range_cumulatively(bed: Bed) -> None:
    wire, sent = await published(bed, plain(b"0"), plain(b"1"), type=Exclusive)
    await wire.ack(sent[0], type=Cumulative, txnid_most_bits=0, txnid_least_bits=1)
    code, text = await refused(wire, 2, sent[1], ack_type=Cumulative)
    assert code == pb.TransactionConflict
    assert text.endswith(f"position: {sent[1]} within range of current currentPosition: {sent[0]}")


async def test_cumulative_ones_that_mean_nothing(bed: Bed) -> None:
    """The broker answers success, as without a transaction."""
    wire, sent = await published(bed, plain(b"0"), plain(b"1"))
    await wire.ack(sent[0], type=Cumulative, txnid_most_bits=0, txnid_least_bits=1)
    await wire.ack(sent[1], type=Cumulative, txnid_most_bits=0, txnid_least_bits=2)


async def test_a_topic_that_keeps_nothing(bed: Bed) -> None:
    wire = await bed.connect()
    await wire.subscribe(NON_PERSISTENT)
    for more in ({}, {"ack_type": Cumulative}):
        answer = await refused(wire, 1, Position(0, 0), **more)
        assert answer == (pb.NotAllowedError, "Server don't support transaction ack!")


@pytest.mark.serving
async def test_a_broker_without_transactions_refuses_the_ack(bed: Bed) -> None:
    wire, sent = await published(bed, plain(b"0"))
    assert await refused(wire, 1, *sent) == (pb.NotAllowedError, "Server don't support transaction ack!")


async def test_the_answer_waits_for_the_commit(store: HeldStorage, bed: Bed) -> None:
    wire, sent = await published(bed, plain(b"0"), plain(b"1"))
    store.holding = True
    await wire.write(wire.numbered(Type.ACK, **acks(1, sent[0])))
    await wire.quiet()
    store.release()
    assert not (await wire.expect(Type.ACK_RESPONSE)).HasField("error")
    store.holding = True
    await wire.write(wire.numbered(Type.ACK, **acks(1, sent[1])))
    await wire.quiet()
    store.fail()
    store.release()
    again = await wire.message()
    assert (again.position, again.redelivery_count) == (sent[1], 1)
    assert (await wire.expect(Type.ACK_RESPONSE)).error == pb.PersistenceError


async def begun(wire: Wire) -> dict[str, int]:
    """Begin a transaction that acknowledges on the subscription, and return the fields of its id."""
    await wire.ask(Type.LOOKUP, topic=ASSIGN, authoritative=True)
    await wire.ask(Type.TC_CLIENT_CONNECT_REQUEST, tc_id=0)
    made = await wire.ask(Type.NEW_TXN, tc_id=0, txn_ttl_millis=10_000)
    txn = {"txnid_most_bits": made.txnid_most_bits, "txnid_least_bits": made.txnid_least_bits}
    subscription = {"topic": TOPIC, "subscription": "sub"}
    await wire.ask(Type.ADD_SUBSCRIPTION_TO_TXN, **txn, subscription=[subscription])
    return txn


@pytest.mark.req("B-29")
async def test_an_abort_delivers_before_it_is_answered(bed: Bed) -> None:
    wire, sent = await published(bed, plain(b"0"))
    txn = await begun(wire)
    await wire.ack(*sent, **txn)
    await wire.write(wire.numbered(Type.END_TXN, **txn, txn_action=pb.ABORT))
    again = await wire.message()
    assert (again.position, again.redelivery_count) == (sent[0], 1)
    await wire.expect(Type.END_TXN_RESPONSE)


@pytest.mark.req("B-29")
async def test_messages_of_aborted_acknowledgements_count_once_as_unacknowledged(bed: Bed) -> None:
    wire, sent = await published(bed, batch_of(b"a", b"b", b"c"))
    consumer = next(iter(bed.subscription().consumers))
    transactions = [await begun(wire), await begun(wire)]
    for txn, ack_set in zip(transactions, (0b110, 0b101), strict=True):
        part = message_id(sent[0], ack_set=[ack_set], batch_size=3)
        await wire.ask(Type.ACK, consumer_id=0, ack_type=pb.CommandAck.Individual, message_id=[part], **txn)
    assert consumer.unacked == 1
    for txn in transactions:
        await wire.write(wire.numbered(Type.END_TXN, **txn, txn_action=pb.ABORT))
        await wire.message()
        await wire.expect(Type.END_TXN_RESPONSE)
    assert consumer.unacked == 3
