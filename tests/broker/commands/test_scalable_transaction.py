"""Transactions over scalable topics: coordinators with ids of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from pulsarium.broker.config import Config
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import Bed, Earliest, Exclusive, Individual, Shared, Type, Wire, message_id, plain, serving

MINUTE = 60_000
UNKNOWN = {"txnid_most_bits": 3, "txnid_least_bits": 987654}


async def begin(wire: Wire, number: int = 0) -> dict[str, int]:
    reply = await wire.ask(Type.NEW_TXN, tc_id=number, txn_ttl_millis=MINUTE, scalable=True)
    assert not reply.HasField("error"), reply
    return {"txnid_most_bits": reply.txnid_most_bits, "txnid_least_bits": reply.txnid_least_bits}


async def end(wire: Wire, txn: dict[str, int], action: Any) -> Any:
    return await wire.ask(Type.END_TXN, **txn, txn_action=action, scalable=True)


async def test_every_number_has_a_coordinator_with_ids_of_its_own(wire: Wire) -> None:
    assert [(await begin(wire, number))["txnid_least_bits"] for number in (0, 0, 99, 3)] == [0, 1, 0, 0]


@pytest.mark.parametrize(("number", "error"), [(0, None), (15, None), (16, pb.ServiceNotReady)])
async def test_a_client_connects_to_the_coordinators_that_have_a_leader(wire: Wire, number: int, error: Any) -> None:
    answer = await wire.ask(Type.TC_CLIENT_CONNECT_REQUEST, tc_id=number, scalable=True)
    assert (answer.error if answer.HasField("error") else None) == error


async def test_an_ended_transaction_accepts_the_same_end_again_and_not_the_other(wire: Wire) -> None:
    txn = await begin(wire)
    for _ in range(2):
        assert not (await end(wire, txn, pb.COMMIT)).HasField("error")
    refused = await end(wire, txn, pb.ABORT)
    assert refused.error == pb.InvalidTxnStatus
    assert refused.message == "Transaction (0,0) is COMMITTED, cannot transition to ABORTED"
    added = await wire.ask(Type.ADD_PARTITION_TO_TXN, **txn, partitions=["segment://a/b/t/0000-ffff-0"], scalable=True)
    assert not added.HasField("error")


async def test_an_unknown_transaction_belongs_to_nobody(wire: Wire) -> None:
    refused = await end(wire, UNKNOWN, pb.COMMIT)
    assert refused.error == pb.TransactionNotFound
    assert refused.message == "Client (null) is neither the owner of the transaction (3,987654) nor a super user"


async def test_a_transaction_and_its_end_survive_a_restart(tmp_path: Path) -> None:
    async with serving(data=tmp_path) as bed:
        wire = await bed.connect()
        over, opened = await begin(wire), await begin(wire)
        await end(wire, over, pb.ABORT)
    async with serving(data=tmp_path) as bed:
        wire = await bed.connect()
        assert not (await end(wire, over, pb.ABORT)).HasField("error")
        assert not (await end(wire, opened, pb.COMMIT)).HasField("error")
        assert (await begin(wire))["txnid_least_bits"] == 2


def create(bed: Bed) -> str:
    """Create a scalable topic; return its only segment."""
    topic = bed.broker.cluster.scalable.create(TopicName.parse("topic://public/default/t"))
    return str(topic.segment_topic(topic.layout.segments[0]))


async def send(wire: Wire, payload: bytes, txn: dict[str, int] | None = None, producer: int = 0, seq: int = 0) -> Any:
    """Send a message, in a transaction if one is given; return the receipt or the refusal."""
    fields: dict[str, Any] = {"sequence_id": seq, **(txn or {})}
    await wire.send(Type.SEND, plain(payload, **fields), producer_id=producer, **fields)
    answer = (await wire.next()).command
    return answer.send_receipt if answer.type == Type.SEND_RECEIPT else answer.send_error


async def test_a_commit_shows_the_messages_of_a_segment_that_no_request_named(bed: Bed, wire: Wire) -> None:
    segment = create(bed)
    await wire.subscribe(segment, type=Exclusive, initialPosition=Earliest)
    await wire.producer(segment)
    txn = await begin(wire)
    await send(wire, b"in", txn)
    await send(wire, b"behind", seq=1)
    await wire.flow()
    await wire.quiet()
    await end(wire, txn, pb.COMMIT)
    assert await wire.payloads(2) == [b"in", b"behind"]


async def test_an_abort_hides_the_messages_of_a_segment_and_gives_its_acknowledgements_back(
    bed: Bed, wire: Wire
) -> None:
    segment = create(bed)
    await wire.producer(segment)
    await send(wire, b"input")
    await wire.subscribe(segment, type=Shared, initialPosition=Earliest)
    await wire.flow()
    position = (await wire.message()).position
    txn = await begin(wire)
    answer = await wire.ask(Type.ACK, consumer_id=0, ack_type=Individual, message_id=[message_id(position)], **txn)
    assert not answer.HasField("error")
    await send(wire, b"output", txn, seq=1)
    await end(wire, txn, pb.ABORT)
    assert (await wire.message()).position == position
    await wire.quiet()


@pytest.mark.parametrize("action", [pb.COMMIT, pb.ABORT])
async def test_a_transaction_ends_on_a_segment_that_was_split_and_on_its_child(
    bed: Bed, wire: Wire, action: Any
) -> None:
    segment = create(bed)
    await wire.producer(segment)
    txn = await begin(wire)
    await send(wire, b"before", txn)
    topic = bed.broker.cluster.scalable.get(TopicName.parse("topic://public/default/t"))
    topic.split(0)
    await wire.expect(Type.CLOSE_PRODUCER)
    child = str(topic.segment_topic(topic.layout.segments[1]))
    await wire.producer(child, 1)
    await send(wire, b"after", txn, producer=1)
    await send(wire, b"plain", producer=1, seq=1)
    await end(wire, txn, action)
    seen = []
    for consumer_id, name in enumerate((segment, child)):
        await wire.subscribe(name, consumer_id=consumer_id, type=Exclusive, initialPosition=Earliest)
        await wire.flow(consumer_id=consumer_id)
        seen += [frame.command.type for frame in await wire.rest()]
    assert seen.count(Type.MESSAGE) == (3 if action == pb.COMMIT else 1)


async def test_a_segment_refuses_messages_and_acknowledgements_of_transactions_that_are_not_open(
    bed: Bed, wire: Wire
) -> None:
    segment = create(bed)
    await wire.producer(segment)
    await send(wire, b"input")
    await wire.subscribe(segment, type=Shared, initialPosition=Earliest)
    await wire.flow()
    position = (await wire.message()).position
    over = await begin(wire)
    await end(wire, over, pb.COMMIT)
    for txn, status in ((over, "COMMITTED"), (UNKNOWN, "ABORTED")):
        refused = await send(wire, b"late", txn, seq=1)
        who = f"({txn['txnid_most_bits']},{txn['txnid_least_bits']})"
        assert (refused.error, refused.message) == (
            pb.NotAllowedError,
            f"Transaction {who} is already {status} — TxnConflict",
        )
        answer = await wire.ask(Type.ACK, consumer_id=0, ack_type=Individual, message_id=[message_id(position)], **txn)
        assert answer.error == pb.TransactionConflict


@pytest.mark.serving(Config(transactionCoordinatorScalableTopicsEnabled=False))
async def test_a_broker_without_these_coordinators_refuses_their_transactions(wire: Wire) -> None:
    answer = await wire.ask(Type.NEW_TXN, tc_id=0, txn_ttl_millis=MINUTE, scalable=True)
    assert (answer.error, answer.message) == (
        pb.NotAllowedError,
        "Scalable-topics transaction coordinator is not enabled on this broker",
    )


async def test_the_keys_say_how_many_coordinators_have_leaders_and_when_transactions_end_and_are_forgotten(
    autojump_clock: object,
) -> None:
    config = Config(
        keepAliveIntervalSeconds=10_000,
        transactionCoordinatorScalableTopicsParallelism=2,
        transactionCoordinatorScalableTopicsTimeoutSweepIntervalSeconds=200,
        transactionCoordinatorScalableTopicsGcIntervalSeconds=500,
        transactionCoordinatorScalableTopicsGcRetentionSeconds=250,
    )
    async with serving(config) as bed:
        wire = await bed.connect()
        answer = await wire.ask(Type.TC_CLIENT_CONNECT_REQUEST, tc_id=2, scalable=True)
        assert answer.error == pb.ServiceNotReady
        txn = await begin(wire)  # lasts a minute, so the sweep at 200 s aborts the transaction
        await trio.sleep(190)
        assert not (await wire.ask(Type.ADD_PARTITION_TO_TXN, **txn, partitions=[], scalable=True)).HasField("error")
        await trio.sleep(20)
        assert "ABORTED" in (await end(wire, txn, pb.COMMIT)).message
        await trio.sleep(240)  # the retention is over at 450 s, and the next collection is at 500 s
        assert "ABORTED" in (await end(wire, txn, pb.COMMIT)).message
        await trio.sleep(60)
        assert (await end(wire, txn, pb.COMMIT)).error == pb.TransactionNotFound
