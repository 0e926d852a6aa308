"""Messages packed into batches and chunks."""

from __future__ import annotations

import random
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.client import CompressionType, MessageId, Receipt, errors
from pulsarium.client.entry.encoding import Encoder
from pulsarium.client.entry.encryption import MessageDecryptor
from pulsarium.client.errors import InvalidConfiguration, TopicTerminated
from pulsarium.client.producer.draft import Draft
from pulsarium.client.producer.options import PartitionsRoutingMode, ProducerOptions
from pulsarium.client.producer.packing import KeyBatch, MessageBatch, Splitter
from pulsarium.proto import entry
from pulsarium.proto.compression import decompress
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.entry.encrypted import Keys
from tests.client.hostile.clocks import on_both
from tests.client.peer import Type
from tests.client.producer.stage import UNASKED, answer_producer, producing


def draft_of(size: int, number: int, **fields: Any) -> Draft:
    metadata = pb.SingleMessageMetadata(payload_size=size, sequence_id=number, **fields)
    return Draft(metadata, bytes(size), None, Receipt())


@given(st.lists(st.integers(0, 30)), st.integers(1, 5), st.integers(1, 40))
def test_batches_keep_order_and_limits(sizes: list[int], most: int, most_bytes: int) -> None:
    batch, batches = MessageBatch(most, most_bytes), list[list[Draft]]()
    for number, size in enumerate(sizes):
        message = draft_of(size, number)
        if not batch.fits(message):
            batches += batch.take()
        batch.add(message)
        if batch.is_full:
            batches += batch.take()
    batches += batch.take()
    assert [message.sequence_id for one in batches for message in one] == list(range(len(sizes)))
    for one in batches:
        assert len(one) <= most
        assert len(one) <= 1 or sum(len(message.content) for message in one) <= most_bytes
    assert batch.take() == []


@given(st.lists(st.sampled_from([None, "", "a", "b"]), max_size=9))
def test_batches_by_key_hold_one_key_each(keys: list[str | None]) -> None:
    """Messages with the same key keep their order. The batch with the oldest last message goes first."""
    batch = KeyBatch(1000, 1000)
    for number, key in enumerate(keys):
        batch.add(draft_of(1, number, partition_key=key))
    batches = batch.take()
    found = [[message.sequence_id for message in one] for one in batches]
    assert found == sorted(
        ([n for n, key in enumerate(keys) if key == own] for own in set(keys)), key=lambda numbers: numbers[-1]
    )
    assert batch.take() == []


def test_ordering_keys_come_before_partition_keys() -> None:
    batch = KeyBatch(1000, 1000)
    for number, (key, ordering) in enumerate([("a", b"1"), ("b", b"1"), ("a", b"2"), ("1", None)]):
        batch.add(draft_of(1, number, partition_key=key, ordering_key=ordering))
    assert [[message.sequence_id for message in one] for one in batch.take()] == [[0, 1], [2], [3]]


@on_both
async def test_a_receipt_has_many_readers() -> None:
    receipt, failing = Receipt(), Receipt()
    found: list[MessageId] = []

    async def wait() -> None:
        found.append(await receipt.wait())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        tasks.start_soon(wait)
        await anyio.lowlevel.checkpoint()
        assert not receipt.is_done()
        receipt._settle(MessageId(1, 2))
    assert found == [await receipt.wait()] * 2
    failing._fail(TopicTerminated("over"))
    assert failing.is_done()
    with pytest.raises(TopicTerminated, match="over"):
        await failing.wait()


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_pending_messages": 0},
        {"max_pending_messages_across_partitions": 0},
        {"chunking_enabled": True},
        {"chunking_enabled": True, "batching_enabled": False, "chunk_max_message_size": -1},
        {"initial_sequence_id": -2},
        {"batching_max_messages": 0},
        {"batching_max_allowed_size_in_bytes": 0},
        {"batching_max_publish_delay": -1.0},
        {"auto_update_partitions_interval": 0.0},
        {"message_routing_mode": PartitionsRoutingMode.CustomPartition},
        {"message_router": lambda message, count: 0},
    ],
)
def test_options_of_batches_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidConfiguration):
        ProducerOptions("t", **wrong)  # type: ignore[arg-type]


# ---- Messages in several entries (PIP-37): what they look like, and their receipts


CHUNKED: dict[str, Any] = {"batching_enabled": False, "chunking_enabled": True, "chunk_max_message_size": 4}


def metadata() -> pb.MessageMetadata:
    return pb.MessageMetadata(producer_name="p", sequence_id=7, publish_time=1, partition_key="k")


def content(size: int) -> bytes:
    return random.Random(size).randbytes(size)


@pytest.mark.parametrize("compression", CompressionType)
@pytest.mark.parametrize("encrypted", [False, True])
def test_chunks_fit_and_make_up_the_message(compression: CompressionType, encrypted: bool) -> None:
    encoder = Encoder(compression.value, ["rsa"] if encrypted else [], Keys())
    splitter = Splitter(encoder, 0)
    for size in (1, 990, 5000):
        entries = splitter.entries(metadata(), content(size), 1000)
        assert all(len(one) <= 1000 for one in entries)
        decryptor = MessageDecryptor(Keys().get_private_key)
        parts = []
        for number, one in enumerate(entries):
            found, part = entry.parse_metadata(one), entry.payload_of(one)
            parts.append(decryptor.decrypt(found, part) if encrypted else part)
            assert (found.sequence_id, found.partition_key) == (7, "k")
            if len(entries) > 1:
                assert (found.uuid, found.chunk_id, found.num_chunks_from_msg) == ("p-7", number, len(entries))
        whole = b"".join(parts)
        found = entry.parse_metadata(entries[0])
        assert found.total_chunk_msg_size == (len(whole) if len(entries) > 1 else 0)
        assert decompress(found.compression, whole, found.uncompressed_size) == content(size)
        if size == 1:
            assert len(entries) == 1
            assert not found.HasField("uuid")
        if size == 5000:
            assert len(entries) > 5


def test_the_last_byte_that_fits() -> None:
    """A payload that fills an entry exactly needs one entry, and one more byte needs two."""
    splitter = Splitter(Encoder(), 0)
    around = len(Encoder().single(metadata(), b""))
    assert len(splitter.entries(metadata(), bytes(1000 - around), 1000)) == 1
    assert len(splitter.entries(metadata(), bytes(1001 - around), 1000)) == 2
    assert len(Splitter(Encoder(), 10).entries(metadata(), bytes(10), 1000)) == 1
    assert len(Splitter(Encoder(), 10).entries(metadata(), bytes(21), 1000)) == 3
    assert len(Splitter(Encoder(), 10).entries(metadata(), b"", 1000)) == 1


def test_metadata_that_leaves_no_room() -> None:
    with pytest.raises(errors.MessageTooBig, match="the metadata of the message exceeds"):
        Splitter(Encoder(), 0).entries(metadata(), bytes(100), 40)


@on_both
async def test_the_receipt_has_the_first_and_the_last_chunk() -> None:
    async with producing(**CHUNKED) as stage:
        receipts = [stage.producer.send_nowait(b"0123456789"), stage.producer.send_nowait(b"ab")]
        found = [await stage.sent() for _ in range(4)]
        assert [payload for _, _, payload in found] == [b"0123", b"4567", b"89", b"ab"]
        assert [send.is_chunk for send, _, _ in found] == [True, True, True, False]
        assert [send.sequence_id for send, _, _ in found] == [0, 0, 0, 1]
        assert [send.num_messages for send, _, _ in found] == [1, 1, 1, 1]
        assert found[0][1].uuid == "named-0"
        await stage.receipt(0, 5)
        await stage.receipt(0, 7)
        await anyio.wait_all_tasks_blocked()
        assert not receipts[0].is_done()
        assert stage.producer.last_sequence_id() == -1
        await stage.receipt(0, 8)
        await stage.receipt(1, 9)
        where = await receipts[0].wait()
        assert (where, where.first_chunk) == (MessageId(9, 8), MessageId(9, 5))
        assert (await receipts[1].wait()).first_chunk is None
        assert stage.producer.last_sequence_id() == 1


@on_both
async def test_chunks_without_a_receipt_are_sent_again() -> None:
    async with producing(**CHUNKED) as stage:
        receipt = stage.producer.send_nowait(b"0123456789")
        stage.producer.send_nowait(b"ab")
        await stage.payloads(4)
        await stage.receipt(0, 5)
        await anyio.wait_all_tasks_blocked()
        await stage.peer.say(Type.CLOSE_PRODUCER, producer_id=0, request_id=UNASKED)
        await stage.peer.lead_here_again()
        stage.producer_id = (await answer_producer(stage.peer)).producer_id
        found = [await stage.sent() for _ in range(3)]
        assert [payload for _, _, payload in found] == [b"4567", b"89", b"ab"]
        assert [send.is_chunk for send, _, _ in found] == [True, True, False]
        await stage.receipt(0, 6)
        await stage.receipt(0, 7)
        where = await receipt.wait()
        assert (where, where.first_chunk) == (MessageId(9, 7), MessageId(9, 5))


@on_both
async def test_a_canceled_send_of_chunks_still_completes_the_message() -> None:
    """The client sends the message all the same, and counts its memory until the receipt. Messages do not mix."""
    async with producing(max_pending_messages=2, **CHUNKED) as stage:
        async with anyio.create_task_group() as tasks:
            for content in (b"0123456789", b"abcdefghij"):
                tasks.start_soon(stage.producer.send, content)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        assert await stage.payloads(6) in (
            [b"0123", b"4567", b"89", b"abcd", b"efgh", b"ij"],
            [b"abcd", b"efgh", b"ij", b"0123", b"4567", b"89"],
        )
        with pytest.raises(errors.ProducerQueueIsFull):
            stage.producer.send_nowait(b"")
        for number in range(6):
            await stage.receipt(number // 3, number)
        await stage.producer.flush()
        assert stage.producer.last_sequence_id() == 1
        for _ in range(2):
            stage.producer.send_nowait(b"")


@on_both
async def test_one_chunk_that_is_refused_ends_its_message() -> None:
    async with producing(max_pending_messages=2, **CHUNKED) as stage:
        receipts = [stage.producer.send_nowait(b"0123456789"), stage.producer.send_nowait(b"ab")]
        await stage.payloads(4)
        await stage.receipt(0, 5)
        await stage.refuse(0, pb.NotAllowedError)
        with pytest.raises(errors.NotAllowedError):
            await receipts[0].wait()
        stage.producer.send_nowait(b"one place is free")
        await stage.receipt(0, 6)  # the receipt of the last chunk, for which no caller waits any more
        await stage.receipt(1, 7)
        assert await receipts[1].wait() == MessageId(9, 7)


@on_both
async def test_flush_waits_for_the_last_chunk_and_closing_fails_a_message_once() -> None:
    async with producing(max_pending_messages=1, **CHUNKED) as stage:
        async with anyio.create_task_group() as tasks:
            receipt = stage.producer.send_nowait(b"0123456789")
            await stage.payloads(3)
            tasks.start_soon(stage.producer.flush)
            await stage.receipt(0, 5)
            await stage.receipt(0, 6)
            await anyio.wait_all_tasks_blocked()
            assert not receipt.is_done()
            await stage.receipt(0, 7)
        receipt = stage.producer.send_nowait(b"0123456789")
        await stage.payloads(3)
        await stage.receipt(1, 8)
        await anyio.wait_all_tasks_blocked()
        stage.producer.abandon()
        with pytest.raises(errors.AlreadyClosed):
            await receipt.wait()
        with pytest.raises(errors.AlreadyClosed):
            stage.producer.send_nowait(b"late")
