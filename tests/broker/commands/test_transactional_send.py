"""SEND in a transaction, and what consumers of each subscription type receive.

Entries whose transaction only their SEND names, as the Go client sends them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from pulsarium.broker.config import PIP, PULSAR_4_2, Config, Profile
from pulsarium.broker.lab.why.answer import Why
from pulsarium.broker.lab.why.explain import explain
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.transaction.buffer import TransactionBuffer
from pulsarium.proto.entry import parse_metadata
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import TxnId
from tests.broker.commands.coordinators import begin, ended, using
from tests.broker.model.transaction.buffered import in_txn, txn
from tests.broker.wire import (
    TOPIC,
    Earliest,
    Exclusive,
    Failover,
    KeyShared,
    Shared,
    Type,
    Wire,
    batch_of,
    frame_of,
    plain,
    position_of,
    serving,
)
from tests.broker.wire import Bed as Broker

TYPES = [Exclusive, Failover, Shared, KeyShared]
NOTHING = Position(-1, -1)


@pytest.fixture
async def bed(autojump_clock: object) -> AsyncIterator[Broker]:
    """Serve a broker with transactions."""
    async with serving(Config(transactionCoordinatorEnabled=True)) as bed:
        yield bed


def buffer_of(bed: Broker) -> TransactionBuffer:
    buffer = bed.topic().transactions
    assert buffer is not None
    return buffer


async def send(wire: Wire, of: TxnId, entry: bytes, **fields: Any) -> Position:
    await wire.send(Type.SEND, entry, producer_id=0, sequence_id=7, **in_txn(of), **fields)
    receipt = await wire.expect(Type.SEND_RECEIPT)
    assert (receipt.sequence_id, receipt.highest_sequence_id) == (7, 0)
    return position_of(receipt.message_id)


def end(bed: Broker, of: TxnId, *, commit: bool) -> None:
    buffer_of(bed).end(of, commit=commit, low_watermark=-1)


async def last_message_id(wire: Wire) -> Position:
    response = await wire.ask(Type.GET_LAST_MESSAGE_ID, consumer_id=0)
    return position_of(response.last_message_id)


def why(bed: Broker, position: Position) -> Why:
    return explain(bed.broker.cluster, TOPIC, "sub", str(position))


def message(payload: bytes, of: TxnId | None = None) -> bytes:
    return plain(payload, partition_key="k", **(in_txn(of) if of is not None else {}))


async def opened(bed: Broker, type: int) -> tuple[Wire, Wire]:
    """Return the connections of a producer and of a consumer with permits."""
    producer, consumer = await bed.connect(), await bed.connect()
    await producer.producer()
    await consumer.subscribe(type=type, initialPosition=Earliest)
    await consumer.flow()
    if type == Failover:
        await consumer.expect(Type.ACTIVE_CONSUMER_CHANGE)
    return producer, consumer


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("commit", [True, False])
async def test_consumers_wait_for_the_end(bed: Broker, type: int, commit: bool) -> None:
    producer, consumer = await opened(bed, type)
    (before,) = await producer.publish(message(b"before"))
    assert await consumer.payloads(1) == [b"before"]
    first = await send(producer, txn(5), message(b"in 1", txn(5)))
    second = await send(producer, txn(5), message(b"in 2", txn(5)))
    (behind,) = await producer.publish(message(b"behind"))
    await consumer.quiet()
    assert await last_message_id(consumer) == before
    assert why(bed, first).text == "it was published in transaction (0,5), which is open"
    assert why(bed, second).reason == why(bed, behind).reason == "open-transaction"
    assert why(bed, behind).details["transactionBegins"] == str(first)
    end(bed, txn(5), commit=commit)
    found = await consumer.messages(3 if commit else 1)
    assert [each.payload for each in found] == ([b"in 1", b"in 2", b"behind"] if commit else [b"behind"])
    await consumer.quiet()
    assert await last_message_id(consumer) == behind
    if not commit:
        assert why(bed, first).reason == "aborted"
        assert why(bed, first).details["transaction"] == "(0,5)"
    await consumer.ack(before, *[each.position for each in found])
    cursor = bed.subscription().cursor
    assert cursor.mark_delete == bed.topic().ledger.last_confirmed  # beyond markers and aborted entries too
    assert cursor.backlog() == 0


async def test_a_negative_low_watermark_ends_no_other_transaction(bed: Broker) -> None:
    producer, consumer = await opened(bed, Exclusive)
    for number in (1, 2):
        await send(producer, txn(number), message(b"%d" % number, txn(number)))
    committing = {"topic": TOPIC, "txn_action": pb.COMMIT, "txnid_least_bits_of_low_watermark": 2**64 - 1}  # -1 in Java
    for number in (2, 1):
        assert not (await producer.ask(Type.END_TXN_ON_PARTITION, **in_txn(txn(number)), **committing)).HasField(
            "error"
        )
    assert await consumer.payloads(2) == [b"1", b"2"]


@pytest.mark.parametrize("type", [Shared, KeyShared])
async def test_redelivery_includes_a_late_message_only_once(bed: Broker, type: int) -> None:
    producer, consumer = await opened(bed, type)
    await send(producer, txn(1), message(b"in", txn(1)))
    end(bed, txn(1), commit=True)
    (found,) = await consumer.messages(1)
    await send(producer, txn(1), message(b"late", txn(1)))
    await consumer.redeliver([found.position])
    (again,) = await consumer.messages(1)
    assert (again.payload, again.redelivery_count) == (b"in", 1)
    await consumer.quiet()


async def test_batches_of_an_aborted_transaction_are_not_delivered(bed: Broker) -> None:
    producer, consumer = await opened(bed, Shared)
    of = txn(3)
    await send(producer, of, batch_of(b"a", b"b", **in_txn(of)), num_messages=2)
    await send(producer, txn(4), batch_of(b"c", b"d", **in_txn(txn(4))), num_messages=2)
    end(bed, txn(4), commit=False)
    end(bed, of, commit=True)
    (found,) = await consumer.messages(1)
    assert found.command.HasField("message_id")
    await consumer.quiet()
    (only,) = bed.subscription().consumers
    assert only.permits == 998  # aborted messages take no permits


async def test_a_delayed_message_is_delayed_from_its_commit_on(bed: Broker) -> None:
    producer, consumer = await opened(bed, Shared)
    due = bed.topic().now_ms() + 9_000
    await send(producer, txn(1), plain(b"delayed", deliver_at_time=due, **in_txn(txn(1))))
    end(bed, txn(1), commit=True)
    await producer.publish(message(b"at once"))
    assert await consumer.payloads(1) == [b"at once"]
    assert (await consumer.message(within=20)).payload == b"delayed"


async def test_a_nameless_transaction_holds_the_topic(bed: Broker) -> None:
    """Recording 042 shows the same in Pulsar."""
    producer, consumer = await opened(bed, Exclusive)
    await send(producer, TxnId(0, 987654), message(b"m0", TxnId(0, 987654)))
    await send(producer, TxnId(99, 1), message(b"m1", TxnId(99, 1)))
    await producer.publish(message(b"plain"))
    await consumer.quiet()
    assert await last_message_id(consumer) == NOTHING


async def test_a_send_in_a_transaction_below_the_low_watermark_is_refused(bed: Broker) -> None:
    producer, _ = await opened(bed, Exclusive)
    buffer_of(bed).end(txn(9), commit=True, low_watermark=8)
    await producer.send(Type.SEND, message(b"x"), producer_id=0, sequence_id=3, **in_txn(txn(8)))
    refused = await producer.expect(Type.SEND_ERROR)
    assert (refused.sequence_id, refused.error) == (3, pb.NotAllowedError)
    assert refused.message.startswith("Transaction [(0,8)] has been ended.")


async def test_a_reader_passes_over_what_was_aborted(bed: Broker) -> None:
    producer, _ = await opened(bed, Shared)
    await send(producer, txn(1), message(b"aborted", txn(1)))
    end(bed, txn(1), commit=False)
    await producer.publish(message(b"plain"))
    reader = await bed.connect()
    await reader.subscribe(name="reader", durable=False, start_message_id={"ledgerId": 2**64 - 1, "entryId": 2**64 - 1})
    await reader.flow()
    assert await reader.payloads(1) == [b"plain"]


async def test_a_non_persistent_topic_takes_none(bed: Broker) -> None:
    wire = await bed.connect()
    await wire.producer("non-persistent://public/default/t")
    await wire.send(Type.SEND, message(b"x"), producer_id=0, sequence_id=0, **in_txn(txn(1)))
    assert (await wire.expect(Type.SEND_ERROR)).message == "Transaction buffer disable!"


async def test_in_pulsar_4_2_a_transactional_send_to_a_non_persistent_topic_closes_the_connection(
    autojump_clock: object,
) -> None:
    async with serving(Config(transactionCoordinatorEnabled=True), profile=PULSAR_4_2) as bed:
        wire = await bed.connect()
        await wire.producer("non-persistent://public/default/t")
        await wire.send(Type.SEND, message(b"x"), producer_id=0, sequence_id=0, **in_txn(txn(1)))
        assert await wire.closed() == []


async def test_reading_stops_at_the_open_transaction_after_a_trim(bed: Broker) -> None:
    """The transaction has no entry before it any more, and the cursor is in a ledger that was deleted."""
    producer, consumer = await opened(bed, Shared)
    (before,) = await producer.publish(message(b"before"))
    await consumer.message()
    topic = bed.topic()
    topic.ledger._roll_over()
    await send(producer, txn(1), message(b"in", txn(1)))
    await consumer.ack(before)
    await consumer.quiet()
    assert before.ledger_id not in topic.ledger.ledgers
    assert await last_message_id(consumer) == NOTHING
    end(bed, txn(1), commit=True)
    assert await consumer.payloads(1) == [b"in"]


async def test_the_last_message_while_ledgers_go(bed: Broker) -> None:
    """The broker remembers the last message only until that message is trimmed."""
    producer, consumer = await opened(bed, Exclusive)
    first = await send(producer, txn(1), message(b"in", txn(1)))
    end(bed, txn(1), commit=True)
    assert await consumer.payloads(1) == [b"in"]
    assert await last_message_id(consumer) == first
    for least in (2, 3):
        await send(producer, txn(least), message(b"aborted", txn(least)))
        end(bed, txn(least), commit=False)
        await consumer.quiet()
        assert await last_message_id(consumer) == first
    ledger = bed.topic().ledger
    ledger._roll_over()
    ledger.truncate(list(ledger.ledgers.values())[:1], bed.topic().ledgers_going)
    await consumer.quiet()
    assert await last_message_id(consumer) == NOTHING
    (plainly,) = await producer.publish(message(b"plain"))
    assert await last_message_id(consumer) == plainly


ON = Config(transactionCoordinatorEnabled=True)


async def send_in(wire: Wire, txn: dict[str, int], payload: bytes) -> None:
    await wire.write(frame_of(Type.SEND, plain(payload), producer_id=0, sequence_id=0, **txn))
    await wire.expect(Type.SEND_RECEIPT)


@pytest.mark.req("B-29")
@pytest.mark.parametrize(("profile", "shown"), [(PIP, [b"kept"]), (PULSAR_4_2, [b"dropped", b"kept"])])
async def test_consumers_see_messages_after_an_abort_as_the_profile_says(
    profile: Profile, shown: list[bytes], autojump_clock: object
) -> None:
    async with serving(ON, profile=profile) as bed:
        wire = await using(bed)
        await wire.producer()
        for payload in (b"dropped", b"kept"):
            txn = await begin(wire)
            await wire.ask(Type.ADD_PARTITION_TO_TXN, **txn, partitions=[TOPIC])
            await send_in(wire, txn, payload)
            await ended(wire, txn, txn_action=pb.COMMIT if payload == b"kept" else pb.ABORT)
        await wire.subscribe(initialPosition=Earliest)
        await wire.flow()
        messages = await wire.messages(len(shown))
        assert [message.payload for message in messages] == shown
        assert parse_metadata(messages[0].entry).HasField("txnid_least_bits") == (profile is PIP)
        await wire.quiet()
