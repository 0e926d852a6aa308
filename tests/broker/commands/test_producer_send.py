"""SEND, its receipts, and its errors when a commit fails."""

from __future__ import annotations

import pytest

from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.held import HeldStorage
from tests.broker.wire import TOPIC, Bed, Earliest, Type, Wire, batch_of, frame_of, plain

NO_SEQUENCE = 2**64 - 1


async def test_receipts_come_in_order_with_their_positions(wire: Wire) -> None:
    await wire.producer()
    await wire.write(wire.sends(*[plain(b"%d" % i) for i in range(100)]))
    receipts = [await wire.expect(Type.SEND_RECEIPT) for _ in range(100)]
    assert [receipt.sequence_id for receipt in receipts] == list(range(100))
    assert [receipt.message_id.entryId for receipt in receipts] == list(range(100))
    assert len({receipt.message_id.ledgerId for receipt in receipts}) == 1


async def test_sequence_ids_are_the_clients_business(wire: Wire) -> None:
    await wire.producer()
    for sequence_id in (5, 3, 3, 2**63):
        await wire.send(Type.SEND, plain(b"x"), producer_id=0, sequence_id=sequence_id)
        assert (await wire.expect(Type.SEND_RECEIPT)).sequence_id == sequence_id


@pytest.mark.parametrize(
    ("highest", "answered"), [(12, 12), (10, 10), (9, NO_SEQUENCE), (None, NO_SEQUENCE), (2**63 + 12, NO_SEQUENCE)]
)
async def test_the_highest_sequence_id_comes_back(wire: Wire, highest: int | None, answered: int) -> None:
    await wire.producer()
    fields = {} if highest is None else {"highest_sequence_id": highest}
    entry = batch_of(b"a", b"b", b"c")
    await wire.send(Type.SEND, entry, producer_id=0, sequence_id=10, num_messages=3, **fields)
    receipt = await wire.expect(Type.SEND_RECEIPT)
    assert (receipt.sequence_id, receipt.highest_sequence_id) == (10, answered)


@pytest.mark.parametrize("num_messages", [2, 5, 0, -1, 3])
async def test_nobody_counts_the_messages_of_a_batch(wire: Wire, num_messages: int) -> None:
    await wire.producer()
    await wire.subscribe()
    await wire.flow()
    await wire.publish(batch_of(b"a", b"b", b"c"), num_messages=num_messages)
    await wire.expect(Type.MESSAGE)


@pytest.mark.req("W-02")
async def test_a_bad_checksum_is_refused_and_the_producer_stays(wire: Wire) -> None:
    await wire.producer()
    broken = plain(b"abc")[:-1] + b"x"
    await wire.write(wire.sends(plain(b"1"), broken, plain(b"2")))
    error = await wire.expect(Type.SEND_ERROR)
    assert (error.producer_id, error.sequence_id, error.error) == (0, 1, pb.ChecksumError)
    assert [position.entry_id for position in await wire.receipts(2)] == [0, 1]


@pytest.mark.req("W-02")
async def test_a_bad_checksum_is_refused_where_messages_are_checked_one_by_one(wire: Wire) -> None:
    """A chunk is published by itself, and not together with its neighbors."""
    await wire.producer()
    await wire.send(Type.SEND, plain(b"abc")[:-1] + b"x", producer_id=0, sequence_id=1, is_chunk=True)
    error = await wire.expect(Type.SEND_ERROR)
    assert (error.sequence_id, error.error) == (1, pb.ChecksumError)
    assert await wire.publish(plain(b"1"))


@pytest.mark.req("W-02")
@pytest.mark.parametrize(
    "entry", [plain(b"no checksum", checksum=False), b"\0\0\0\0empty metadata", b"\0\0\0\3xyzgarbage", b"ab"]
)
async def test_entries_are_opaque(wire: Wire, entry: bytes) -> None:
    """The broker checks only the checksum, where an entry has one."""
    await wire.producer()
    await wire.publish(entry)


@pytest.mark.req("W-02")
@pytest.mark.parametrize("entry", [b"", b"\x0e", b"\x0e\x01\0\0"])
async def test_a_send_without_a_payload_closes(wire: Wire, entry: bytes) -> None:
    await wire.producer()
    await wire.write(wire.sends(entry))
    assert await wire.closed() == []


async def test_what_came_before_a_send_without_a_payload_is_stored(bed: Bed, wire: Wire) -> None:
    await wire.producer()
    await wire.write(wire.sends(plain(b"1"), plain(b"2"), b"\x0e\x01\0\0", plain(b"3")))
    await wire.closed()
    other = await bed.connect()
    await other.subscribe(initialPosition=Earliest)
    await other.flow()
    assert await other.payloads(2) == [b"1", b"2"]
    await other.quiet()


async def test_sends_of_two_producers_in_one_read_keep_their_order(wire: Wire) -> None:
    await wire.producer(producer_id=1)
    await wire.producer(producer_id=300)
    sends = [wire.sends(plain(b"x"), producer_id=number) for number in (1, 1, 300, 1, 300, 300)]
    await wire.write(b"".join(sends))
    receipts = [await wire.expect(Type.SEND_RECEIPT) for _ in sends]
    assert [(each.producer_id, each.message_id.entryId) for each in receipts] == [
        (1, 0), (1, 1), (300, 2), (1, 3), (300, 4), (300, 5)
    ]  # fmt: skip


async def test_a_producer_closed_behind_its_sends_in_one_read_has_published_them(wire: Wire) -> None:
    await wire.producer()
    sends = wire.sends(plain(b"1"), plain(b"2"))
    await wire.write(sends + wire.numbered(Type.CLOSE_PRODUCER, producer_id=0))
    assert [position.entry_id for position in await wire.receipts(2)] == [0, 1]
    await wire.expect(Type.SUCCESS)


async def test_a_producer_that_was_never_there_closes(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    await wire.producer(producer_id=1)
    await wire.write(wire.sends(plain(b"x"), producer_id=7))
    assert await wire.closed() == []
    assert "unknown producer 7" in caplog.text


async def test_a_producer_its_client_closed_closes(wire: Wire) -> None:
    await wire.producer()
    await wire.ask(Type.CLOSE_PRODUCER, producer_id=0)
    await wire.write(wire.sends(plain(b"x")))
    assert await wire.closed() == []


@pytest.mark.req("B-50")
async def test_sends_to_a_producer_that_the_broker_closed_are_dropped(bed: Bed, wire: Wire) -> None:
    """The client has not read the CLOSE_PRODUCER yet, and will send the messages again."""
    await wire.producer(producer_name="p")
    bed.broker.topics.unload(TopicName.parse(TOPIC))
    closed = await wire.expect(Type.CLOSE_PRODUCER)
    assert (closed.producer_id, closed.request_id) == (0, 2**64 - 1)
    assert not closed.HasField("assignedBrokerServiceUrl")
    await wire.write(wire.sends(plain(b"x"), plain(b"y")))
    await wire.alive()
    await wire.producer(producer_name="p")
    assert [position.entry_id for position in await wire.publish(plain(b"x"), plain(b"y"))] == [0, 1]


@pytest.mark.req("B-50")
async def test_sends_are_dropped_for_as_long_as_a_keep_alive(bed: Bed, wire: Wire) -> None:
    await wire.producer()
    bed.broker.topics.unload(TopicName.parse(TOPIC))
    await wire.expect(Type.CLOSE_PRODUCER)
    await wire.quiet(29)
    await wire.write(wire.sends(plain(b"x")))
    await wire.alive()
    await wire.expect(Type.PING, within=2)
    await wire.send(Type.PONG)
    await wire.quiet(2)
    await wire.write(wire.sends(plain(b"x")))
    assert await wire.closed() == []


async def test_messages_for_a_shadow_topic_or_a_transaction_are_refused(wire: Wire) -> None:
    await wire.producer()
    await wire.send(Type.SEND, plain(b"x"), producer_id=0, sequence_id=1, message_id={"ledgerId": 1, "entryId": 1})
    error = await wire.expect(Type.SEND_ERROR)
    assert (error.sequence_id, error.error) == (1, pb.NotAllowedError)
    await wire.send(Type.SEND, plain(b"x"), producer_id=0, sequence_id=2, txnid_most_bits=0, txnid_least_bits=1)
    error = await wire.expect(Type.SEND_ERROR)
    assert (error.sequence_id, error.error, error.message) == (
        2,
        pb.NotAllowedError,
        "Transaction buffer disable!",
    )
    assert await wire.publish(plain(b"x"))


async def test_receipts_wait_for_their_commit(store: HeldStorage, wire: Wire) -> None:
    await wire.producer()
    store.holding = True
    await wire.write(wire.sends(plain(b"a"), plain(b"b")))
    await wire.quiet()
    await wire.write(wire.sends(plain(b"c")))
    await wire.quiet()
    store.release(1)
    assert [position.entry_id for position in await wire.receipts(2)] == [0, 1]
    await wire.quiet()
    store.release()
    assert [position.entry_id for position in await wire.receipts(1)] == [2]


async def test_pongs_overtake_receipts(store: HeldStorage, wire: Wire) -> None:
    await wire.producer()
    store.holding = True
    await wire.write(wire.sends(plain(b"a")) + frame_of(Type.PING))
    await wire.expect(Type.PONG)
    store.release()
    await wire.receipts(1)


async def test_a_failed_commit_is_told_and_its_entries_are_nowhere(store: HeldStorage, wire: Wire) -> None:
    await wire.producer()
    await wire.subscribe()
    await wire.flow()
    store.holding = True
    await wire.write(wire.sends(plain(b"lost")))
    await wire.quiet()
    await wire.write(wire.sends(plain(b"behind it")))  # its commit has begun, and fails with the first
    await wire.quiet()
    store.fail()
    errors = [await wire.expect(Type.SEND_ERROR) for _ in range(2)]
    assert [error.sequence_id for error in errors] == [0, 1]
    assert {error.error for error in errors} == {pb.PersistenceError}
    closed = {(await wire.next()).command.type for _ in range(2)}
    assert closed == {Type.CLOSE_PRODUCER, Type.CLOSE_CONSUMER}  # the client sends messages without a receipt again
    store.release()
    await wire.write(wire.sends(plain(b"too late")))
    await wire.alive()
    await wire.producer()
    await wire.subscribe()
    await wire.flow()
    last = await wire.ask(Type.GET_LAST_MESSAGE_ID, consumer_id=0)
    assert last.last_message_id.entryId == 2**64 - 1
    await wire.publish(plain(b"again"))
    assert await wire.payloads(1) == [b"again"]
    await wire.quiet()


async def test_a_topic_whose_commit_failed_goes_on_when_it_is_loaded_again(store: HeldStorage, wire: Wire) -> None:
    await wire.producer()
    await wire.publish(plain(b"kept"))
    store.holding = True
    await wire.write(wire.sends(plain(b"lost")))
    await wire.quiet()
    store.fail()
    await wire.expect(Type.SEND_ERROR)
    await wire.expect(Type.CLOSE_PRODUCER)
    store.release()
    await wire.producer()
    await wire.subscribe(initialPosition=Earliest)
    await wire.flow()
    assert await wire.payloads(1) == [b"kept"]
    await wire.publish(plain(b"next"))
    assert await wire.payloads(1) == [b"next"]
    await wire.quiet()


async def test_a_producer_is_there_when_its_topic_is_kept(store: HeldStorage, wire: Wire) -> None:
    store.holding = True
    await wire.write(wire.numbered(Type.PRODUCER, topic=TOPIC, producer_id=0))
    await wire.quiet()
    store.release()
    await wire.expect(Type.PRODUCER_SUCCESS)
