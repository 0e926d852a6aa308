"""A producer against a broker that the test plays: order, batches, receipts, refusals, reconnects."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest
from trio.testing import MockClock

from pulsarium.client import MessageId, Receipt, errors
from pulsarium.proto import batch
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.hostile.clocks import on_both
from tests.client.hostile.played import playing, saying
from tests.client.peer import Type
from tests.client.producer.stage import TOPIC, UNASKED, answer_producer, producing


@on_both
async def test_opening_tells_the_broker_name_and_properties() -> None:
    async with playing() as (played, client):
        played.on[Type.PRODUCER] = saying(Type.PRODUCER_SUCCESS, producer_name="mine", last_sequence_id=41)
        async with client.create_producer("t", producer_name="mine", properties={"a": "b"}) as producer:
            assert (producer.topic(), producer.producer_name(), producer.last_sequence_id()) == (TOPIC, "mine", 41)
            assert producer.is_connected()
        asked = await played.sent(Type.PRODUCER)
        assert (asked.topic, asked.producer_name, asked.user_provided_producer_name) == (TOPIC, "mine", True)
        assert [(pair.key, pair.value) for pair in asked.metadata] == [("a", "b")]
        assert played.count(Type.CLOSE_PRODUCER) == 1


@on_both
async def test_a_message_is_sent_with_all_it_has() -> None:
    async with producing({"last_sequence_id": 6}, batching_enabled=False) as stage:
        receipt = stage.producer.send_nowait(
            b"content",
            partition_key="k",
            ordering_key="o",
            properties={"a": "b"},
            event_timestamp=77,
        )
        send, metadata, payload = await stage.sent()
        assert (send.sequence_id, send.num_messages, payload) == (7, 1, b"content")
        assert not metadata.HasField("num_messages_in_batch")
        assert (metadata.producer_name, metadata.sequence_id) == ("named", 7)
        assert (metadata.partition_key, metadata.ordering_key, metadata.event_time) == ("k", b"o", 77)
        assert [(pair.key, pair.value) for pair in metadata.properties] == [("a", "b")]
        assert abs(metadata.publish_time / 1000 - datetime.now(UTC).timestamp()) < 60
        assert not receipt.is_done()
        await stage.receipt(7, 3)
        assert await receipt.wait() == MessageId(9, 3)
        assert await receipt.wait() == MessageId(9, 3)
        assert stage.producer.last_sequence_id() == 7


@on_both
async def test_a_batch_is_sent_when_it_is_full() -> None:
    async with producing(batching_max_messages=3, batching_max_publish_delay=1000) as stage:
        receipts = [stage.producer.send_nowait(b"%d" % n, partition_key=f"k{n}") for n in range(4)]
        send, metadata, payload = await stage.sent()
        assert (send.sequence_id, send.highest_sequence_id, send.num_messages) == (0, 2, 3)
        assert (metadata.sequence_id, metadata.highest_sequence_id, metadata.num_messages_in_batch) == (0, 2, 3)
        messages = batch.unpack(payload, 3)
        assert [(single.sequence_id, single.partition_key, content) for single, content in messages] == [
            (n, f"k{n}", b"%d" % n) for n in range(3)
        ]
        await stage.receipt(0, 5)
        assert [await receipt.wait() for receipt in receipts[:3]] == [MessageId(9, 5, -1, n) for n in range(3)]
        assert stage.producer.last_sequence_id() == 2
        assert not receipts[3].is_done()


@on_both
async def test_a_batch_has_a_most_of_bytes() -> None:
    async with producing(batching_max_allowed_size_in_bytes=10, batching_max_publish_delay=1000) as stage:
        for content in (b"1234", b"123456", b"1234", b"1234567", b"a" * 50):
            stage.producer.send_nowait(content)
        sizes = [(await stage.sent())[0].num_messages for _ in range(4)]
        assert sizes == [2, 1, 1, 1]


async def test_a_batch_is_sent_when_its_first_message_has_waited(autojump_clock: MockClock) -> None:
    async with producing(batching_max_publish_delay=0.5) as stage:
        for _ in range(2):
            await anyio.sleep(1)
            begun = anyio.current_time()
            stage.producer.send_nowait(b"1")
            await anyio.sleep(0.3)
            stage.producer.send_nowait(b"2")
            send, _, _ = await stage.sent()
            assert send.num_messages == 2
            assert anyio.current_time() - begun == pytest.approx(0.5)


@on_both
async def test_a_send_that_waits_for_its_receipt_skips_the_batching_delay() -> None:
    """Messages that are sent at the same time share a batch."""
    async with producing(batching_max_publish_delay=1000) as stage, anyio.create_task_group() as tasks:
        stage.producer.send_nowait(b"1")
        for content in (b"2", b"3"):
            tasks.start_soon(stage.producer.send, content)
        send, _, _ = await stage.sent()
        assert send.num_messages == 3
        await stage.receipt(0)


@on_both
async def test_a_batch_of_one_is_no_batch() -> None:
    async with producing() as stage:
        stage.producer.send_nowait(b"alone", partition_key="k")
        _, metadata, payload = await stage.sent()
        assert (metadata.HasField("num_messages_in_batch"), metadata.partition_key, payload) == (False, "k", b"alone")


@on_both
async def test_flush_waits_for_what_was_sent() -> None:
    async with producing(batching_max_publish_delay=1000) as stage, anyio.create_task_group() as tasks:
        stage.producer.send_nowait(b"1")
        flushed = anyio.Event()

        async def flush() -> None:
            await stage.producer.flush()
            flushed.set()

        tasks.start_soon(flush)
        await stage.sent()
        stage.producer.send_nowait(b"2")  # sent after the flush began, which does not wait for it
        assert not flushed.is_set()
        await stage.receipt(0)
        await flushed.wait()


@on_both
async def test_delayed_messages_go_alone_and_in_order() -> None:
    async with producing(batching_max_publish_delay=1000) as stage:
        stage.producer.send_nowait(b"before")
        stage.producer.send_nowait(b"later", deliver_after=3600.0)
        stage.producer.send_nowait(b"later", deliver_after=timedelta(hours=1))
        stage.producer.send_nowait(b"at", deliver_at=123456)
        stage.producer.send_nowait(b"at", deliver_at=datetime(2030, 1, 1, tzinfo=UTC))
        found = [await stage.sent() for _ in range(5)]
        assert [payload for _, _, payload in found] == [b"before", b"later", b"later", b"at", b"at"]
        assert not found[0][1].HasField("deliver_at_time")
        for _, later, _ in found[1:3]:
            assert later.deliver_at_time == pytest.approx(later.publish_time + 3_600_000, abs=60_000)
        assert found[3][1].deliver_at_time == 123456
        assert found[4][1].deliver_at_time == 1893456000000


@on_both
async def test_only_so_many_may_be_pending() -> None:
    async with producing(max_pending_messages=2, batching_enabled=False) as stage:
        async with anyio.create_task_group() as tasks:
            for content in (b"1", b"2"):
                stage.producer.send_nowait(content)
            tasks.start_soon(stage.producer.send, b"3")
            assert await stage.payloads(2) == [b"1", b"2"]
            with pytest.raises(errors.ProducerQueueIsFull):
                stage.producer.send_nowait(b"refused")
            await stage.receipt(0)
            assert await stage.payloads(1) == [b"3"]
            await stage.receipt(1)
            await stage.receipt(2)
        stage.producer.send_nowait(b"4")


@on_both
async def test_a_batch_does_not_wait_when_no_more_can_come() -> None:
    async with producing(max_pending_messages=2, batching_max_publish_delay=1000) as stage:
        for content in (b"1", b"2"):
            stage.producer.send_nowait(content)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stage.producer.send, b"3")
            send, _, _ = await stage.sent()
            assert send.num_messages == 2
            tasks.cancel_scope.cancel()


@on_both
async def test_a_cancelled_wait_for_room_sends_nothing() -> None:
    async with producing(max_pending_messages=1, batching_enabled=False) as stage:
        stage.producer.send_nowait(b"1")
        with anyio.move_on_after(0):
            await stage.producer.send(b"never")
        await stage.receipt(0)
        await stage.producer.flush()
        stage.producer.send_nowait(b"2")
        assert await stage.payloads(2) == [b"1", b"2"]


@on_both
async def test_sequence_ids_may_be_the_applications() -> None:
    async with producing(batching_enabled=False, initial_sequence_id=9) as stage:
        stage.producer.send_nowait(b"a")
        receipt = stage.producer.send_nowait(b"b", sequence_id=500)
        assert [(await stage.sent())[0].sequence_id for _ in range(2)] == [10, 500]
        await stage.receipt(10)
        await stage.receipt(500)
        await receipt.wait()
        assert stage.producer.last_sequence_id() == 500


@pytest.mark.parametrize(
    "arguments",
    [
        {"content": "text"},
        {"content": b"", "deliver_at": 1, "deliver_after": 1},
        {"content": b"", "deliver_after": float("nan")},
        {"content": b"", "deliver_at": 2**63},
        {"content": b"", "sequence_id": -1},
        {"content": b"", "event_timestamp": 2**64},
        {"content": b"", "partition_key": "\ud800"},
        {"content": b"", "properties": [("a", "b")]},
    ],
)
@on_both
async def test_messages_that_make_no_sense(arguments: dict[str, Any]) -> None:
    async with producing() as stage:
        with pytest.raises(errors.InvalidMessage):
            stage.producer.send_nowait(**arguments)


@on_both
async def test_an_option_that_no_message_has() -> None:
    async with producing() as stage:
        with pytest.raises(TypeError, match="unknown options of a message: partitionkey"):
            stage.producer.send_nowait(b"", partitionkey="k")  # type: ignore[call-arg]


@on_both
async def test_memory_is_shared_by_all_producers() -> None:
    async with producing(batching_enabled=False, max_pending_messages=3) as stage:
        stage.client._core.memory.limit = 10
        producer = stage.producer
        receipts = [producer.send_nowait(b"0123456789")]
        with pytest.raises(errors.MemoryBufferIsFull):
            producer.send_nowait(b"x")
        assert stage.client._core.memory.used == 10
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(producer.send, b"waits")
            await stage.payloads(1)
            with anyio.move_on_after(0):
                await producer.submit(b"never")
            await stage.receipt(0)
            assert await stage.payloads(1) == [b"waits"]
            await stage.receipt(1)
        assert stage.client._core.memory.used == 0
        receipts.append(producer.send_nowait(b"refused"))
        await stage.refuse(2, pb.NotAllowedError)
        with pytest.raises(errors.NotAllowedError):
            await receipts[1].wait()
        for _ in range(3):  # the canceled call holds no place any more
            producer.send_nowait(b"pend")
    assert stage.client._core.memory.used == 0


@on_both
async def test_a_message_too_big_fails_alone() -> None:
    async with producing(batching_enabled=False) as stage:
        with pytest.raises(errors.MessageTooBig):
            await stage.producer.send(bytes(6 * 1024 * 1024))
        stage.producer.send_nowait(b"small")
        assert await stage.payloads(1) == [b"small"]


@on_both
async def test_a_refused_message_fails_alone() -> None:
    async with producing(batching_enabled=False) as stage:
        receipts = [stage.producer.send_nowait(b"%d" % n) for n in range(3)]
        await stage.refuse(1, pb.NotAllowedError)
        with pytest.raises(errors.NotAllowedError, match="no"):
            await receipts[1].wait()
        await stage.receipt(0)
        await stage.receipt(2)
        await receipts[0].wait()
        await receipts[2].wait()


@on_both
async def test_a_damaged_message_is_sent_again() -> None:
    """The client sends also all messages behind it again, so that their order stays."""
    async with producing(batching_enabled=False) as stage:
        receipts = [stage.producer.send_nowait(b"%d" % n) for n in range(3)]
        assert await stage.payloads(3) == [b"0", b"1", b"2"]
        await stage.receipt(0)
        await stage.refuse(1, pb.ChecksumError)
        assert await stage.payloads(2) == [b"1", b"2"]
        await stage.receipt(1)
        await stage.receipt(1)  # the receipt of the first sending is ignored
        await stage.receipt(2)
        for receipt in receipts:
            await receipt.wait()


@on_both
async def test_after_an_unload_everything_is_sent_again_in_order() -> None:
    async with producing(batching_enabled=False) as stage:
        receipts = [stage.producer.send_nowait(b"%d" % n) for n in range(3)]
        assert await stage.payloads(3) == [b"0", b"1", b"2"]
        await stage.receipt(0, 1)
        await receipts[0].wait()
        await stage.peer.say(Type.CLOSE_PRODUCER, producer_id=0, request_id=UNASKED)
        await stage.peer.lead_here_again()
        receipts.append(stage.producer.send_nowait(b"3"))  # while no connection is open
        assert not stage.producer.is_connected()
        asked = await answer_producer(stage.peer, last_sequence_id=0)
        assert (asked.producer_name, asked.epoch, asked.user_provided_producer_name) == ("named", 1, False)
        assert await stage.payloads(3) == [b"1", b"2", b"3"]
        for n in (1, 2, 3):
            await stage.receipt(n, n + 1)
        assert [(await receipt.wait()).entry_id for receipt in receipts] == [1, 2, 3, 4]


@on_both
async def test_a_receipt_out_of_order_costs_the_connection() -> None:
    async with producing(batching_enabled=False) as stage:
        for content in (b"0", b"1"):
            stage.producer.send_nowait(content)
        await stage.payloads(2)
        await stage.receipt(1)
        old, stage.peer = stage.peer, await stage.peers.next()
        await stage.peer.take_in()
        await stage.peer.lead_here_again()
        await answer_producer(stage.peer)
        assert await stage.payloads(2) == [b"0", b"1"]
        await old.close()


@on_both
async def test_when_it_cannot_be_opened_again_everything_fails() -> None:
    async with producing(batching_max_publish_delay=1000) as stage:
        receipts: list[Receipt] = []
        receipts.append(stage.producer.send_nowait(b"sent", deliver_after=1))
        receipts.append(stage.producer.send_nowait(b"in a batch"))
        await stage.sent()
        await stage.peer.say(Type.CLOSE_PRODUCER, producer_id=0, request_id=UNASKED)
        await stage.peer.lead_here_again()
        asked = await stage.peer.expect(Type.PRODUCER)
        await stage.peer.say(
            Type.ERROR, request_id=asked.request_id, error=pb.TopicTerminatedError, message="terminated"
        )
        for receipt in receipts:
            with pytest.raises(errors.TopicTerminated):
                await receipt.wait()
        with pytest.raises(errors.TopicTerminated):
            await stage.producer.send(b"too late")


@on_both
async def test_leaving_the_block_flushes_and_closes() -> None:
    async with playing() as (played, client):
        async with client.create_producer("t", batching_max_publish_delay=1000) as producer:
            receipt = producer.send_nowait(b"1")
        assert (await receipt.wait()).entry_id == 1
        assert [base.type for base in played.seen[-2:]] == [Type.SEND, Type.CLOSE_PRODUCER]
        with pytest.raises(errors.AlreadyClosed):
            producer.send_nowait(b"2")
        with pytest.raises(errors.AlreadyClosed):
            await producer.send(b"2")


@on_both
async def test_an_error_in_the_block_comes_out_as_it_is_and_abandons() -> None:
    receipts: list[Receipt] = []

    async def fail() -> None:
        async with client.create_producer("t", batching_max_publish_delay=1000) as producer:
            receipts.append(producer.send_nowait(b"1"))
            raise KeyError("mine")

    async with playing() as (played, client):
        with pytest.raises(KeyError, match="mine"):
            await fail()
        with pytest.raises(errors.AlreadyClosed):
            await receipts[0].wait()
        await played.sent(Type.CLOSE_PRODUCER)
        assert played.count(Type.SEND) == 0
