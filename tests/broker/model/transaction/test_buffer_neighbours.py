"""Transactions as compaction, deduplication, chunks, seeks and assertions of tests see them."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.lab.expectations import StoredExpectation
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.proto.message_id import TxnId
from tests.broker.model.compaction.topics import compact, compacted_entries, messages_in
from tests.broker.model.transaction.buffered import in_txn, txn
from tests.broker.model.upkeep.policed import set_policies
from tests.broker.wire import Bed, Earliest, Shared, Type, Wire, message_id, plain

pytestmark = pytest.mark.serving(Config(transactionCoordinatorEnabled=True))


def end(bed: Bed, of: TxnId, *, commit: bool) -> None:
    buffer = bed.topic().transactions
    assert buffer is not None
    buffer.end(of, commit=commit, low_watermark=-1)


async def send(
    wire: Wire, of: TxnId, payload: bytes, *, sequence_id: int = 0, is_chunk: bool = False, **more: Any
) -> Any:
    entry = plain(payload, sequence_id=sequence_id, **in_txn(of), **more)
    await wire.send(Type.SEND, entry, producer_id=0, sequence_id=sequence_id, is_chunk=is_chunk, **in_txn(of))
    return (await wire.next()).command


def view(topic: PersistentTopic) -> dict[str | None, bytes]:
    return {key: value for _, _, key, value in messages_in(compacted_entries(topic))}


async def test_compaction_ends_before_an_open_one_and_leaves_out_aborted_ones(bed: Bed, sender: Wire) -> None:
    first, _ = await sender.publish(plain(b"1", partition_key="a"), plain(b"1", partition_key="b"))
    await send(sender, txn(1), b"aborted", partition_key="a")
    end(bed, txn(1), commit=False)
    await send(sender, txn(2), b"committed", partition_key="b")
    end(bed, txn(2), commit=True)
    await send(sender, txn(3), b"open", partition_key="a")
    await sender.publish(plain(b"behind", partition_key="b"))
    topic = bed.topic()
    assert (await compact(topic)).status == "SUCCESS"
    assert view(topic) == {"a": b"1", "b": b"committed"}
    end(bed, txn(3), commit=True)
    await sender.alive()
    assert (await compact(topic)).status == "SUCCESS"
    assert view(topic) == {"a": b"open", "b": b"behind"}
    assert topic.ledger.is_valid(first)


async def test_a_topic_of_aborted_messages_only_compacts_to_nothing(bed: Bed, sender: Wire) -> None:
    for number in range(250):  # more messages than one read takes
        await send(sender, txn(1), b"%d" % number, partition_key="a")
    end(bed, txn(1), commit=False)
    await sender.publish(plain(b"plain", partition_key="b"))
    topic = bed.topic()
    assert (await compact(topic)).status == "SUCCESS"
    assert view(topic) == {"b": b"plain"}


async def test_a_duplicate_in_a_transaction_is_dropped(bed: Bed, sender: Wire) -> None:
    set_policies(bed.broker, deduplicationEnabled=True)
    wire = await bed.connect()
    await wire.producer(producer_name="p")
    assert (await send(wire, txn(1), b"in", sequence_id=4)).type == Type.SEND_RECEIPT
    again = await send(wire, txn(1), b"in", sequence_id=4)
    assert again.send_receipt.message_id.ledgerId == 2**64 - 1
    end(bed, txn(1), commit=True)
    await wire.alive()
    assert bed.topic().ledger.count == 2  # the message and the marker
    assert bed.topic().last_sequence_id("p") == 4


async def test_chunks_in_a_transaction_come_with_its_commit(bed: Bed, sender: Wire) -> None:
    consumer = await bed.connect()
    await consumer.subscribe(type=Shared, initialPosition=Earliest)
    await consumer.flow()
    fields: dict[str, Any] = {"uuid": "u", "num_chunks_from_msg": 2, "total_chunk_msg_size": 2}
    await send(sender, txn(1), b"a", is_chunk=True, chunk_id=0, **fields)
    await send(sender, txn(1), b"b", is_chunk=True, chunk_id=1, **fields)
    await consumer.quiet()
    end(bed, txn(1), commit=True)
    assert await consumer.payloads(2) == [b"a", b"b"]


async def test_a_seek_to_an_open_transaction_waits_for_it(bed: Bed, sender: Wire) -> None:
    consumer = await bed.connect()
    await consumer.subscribe()
    opened = (await send(sender, txn(1), b"in")).send_receipt.message_id
    await sender.publish(plain(b"behind"))
    found = bed.topic().ledger.last_confirmed._replace(entry_id=opened.entryId)
    await consumer.request(Type.SEEK, consumer_id=0, message_id=message_id(found))
    await consumer.rest()
    await consumer.subscribe(consumer_id=1)
    await consumer.flow(consumer_id=1)
    await consumer.quiet()
    end(bed, txn(1), commit=True)
    assert await consumer.payloads(2) == [b"in", b"behind"]


async def test_a_consumer_from_latest_begins_behind_open_transactions(bed: Bed, sender: Wire) -> None:
    await send(sender, txn(1), b"in")
    consumer = await bed.connect()
    await consumer.subscribe()
    await consumer.flow()
    await sender.publish(plain(b"later"))
    await consumer.quiet()
    end(bed, txn(1), commit=True)
    assert await consumer.payloads(1) == [b"later"]


async def test_the_end_of_a_terminated_topic_is_told_after_the_transaction(bed: Bed, sender: Wire) -> None:
    consumer = await bed.connect()
    await consumer.subscribe(initialPosition=Earliest)
    await consumer.flow()
    await send(sender, txn(1), b"in")
    bed.topic().terminate()
    await consumer.quiet()
    end(bed, txn(1), commit=True)
    found = await consumer.message()
    await consumer.quiet()
    await consumer.ack(found.position)
    await consumer.expect(Type.REACHED_END_OF_TOPIC)


async def test_assertions_see_what_consumers_see(bed: Bed, sender: Wire) -> None:
    await send(sender, txn(1), b"aborted")
    await send(sender, txn(2), b"open")
    await sender.publish(plain(b"behind"))
    end(bed, txn(1), commit=False)
    await sender.alive()
    stored = StoredExpectation()
    stored.read(bed.topic())
    assert list(stored.values()) == []
    end(bed, txn(2), commit=True)
    await sender.alive()
    stored.read(bed.topic())
    assert list(stored.values()) == [b"open", b"behind"]
