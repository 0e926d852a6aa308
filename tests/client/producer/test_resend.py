"""What is sent again, after the broker closed the producer, the connection broke or an entry was damaged."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from pulsarium.client import MessageId, errors
from pulsarium.client.opening import open_client
from pulsarium.client.producer.outbox import Messages, Outbox
from pulsarium.client.producer.receipt import Receipt
from pulsarium.client.statistics import Sent
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.hostile.clocks import on_both
from tests.client.peer import Peer, Peers, Type, bytes_of
from tests.client.producer.test_producer import UNASKED, Stage, answer_producer, producing

CHUNKED: dict[str, Any] = {"batching_enabled": False, "chunking_enabled": True, "chunk_max_message_size": 4}


async def reconnected(stage: Stage, **connected: Any) -> Peer:
    """The old end of a connection that is lost; the producer is open on a new one."""
    old, stage.peer = stage.peer, await stage.peers.next()
    await stage.peer.take_in(**connected)
    await stage.peer.lead_here_again()
    await answer_producer(stage.peer)
    return old


@on_both
async def test_a_late_receipt_is_not_taken_for_another_chunk() -> None:
    """All chunks have one number: those of the producer that was closed are known by its id."""
    async with producing(**CHUNKED) as stage:
        receipt = stage.producer.send_nowait(b"01234567")
        await stage.payloads(2)
        await stage.peer.say(Type.CLOSE_PRODUCER, producer_id=0, request_id=UNASKED)
        await stage.peer.lead_here_again()
        asked = await answer_producer(stage.peer)
        assert asked.producer_id != 0
        assert [send.producer_id for send, _, _ in [await stage.sent(), await stage.sent()]] == [asked.producer_id] * 2
        await stage.receipt(0, 5)
        await stage.receipt(0, 6)
        await anyio.wait_all_tasks_blocked()
        assert not receipt.is_done()
        stage.producer_id = asked.producer_id
        for entry_id in (7, 8):
            await stage.receipt(0, entry_id)
        assert await receipt.wait() == MessageId(9, 8)


def test_who_was_opened_again_is_given_time() -> None:
    """Its receipts may come as late as those of one that has just begun."""

    class Connection:
        is_lost = False

        def send_nowait(self, *_: object, at_once: bool = False) -> None:
            pass

    outbox = Outbox(-1, lambda messages, size: None, Sent())
    outbox.add(Messages(0, 0, [Receipt()], 1), b"entry")
    assert not outbox.is_stuck()
    connection: Any = Connection()
    outbox.send_all_on(connection)
    assert not outbox.is_stuck()
    assert outbox.is_stuck()


@on_both
async def test_each_connection_may_damage_something_once() -> None:
    async with producing(batching_enabled=False) as stage:
        stage.producer.send_nowait(b"0")
        await stage.payloads(1)
        await stage.refuse(0, pb.ChecksumError)
        assert await stage.payloads(1) == [b"0"]
        await stage.peer.close()
        await reconnected(stage)
        assert await stage.payloads(1) == [b"0"]
        await stage.refuse(0, pb.ChecksumError)
        assert await stage.payloads(1) == [b"0"]


@on_both
async def test_what_another_broker_does_not_take_fails() -> None:
    """Else it would close the connection, time and again. What it takes goes on."""
    async with producing(batching_enabled=False, max_pending_messages=2) as stage:
        receipts = [stage.producer.send_nowait(bytes(500)), stage.producer.send_nowait(b"small")]
        await stage.payloads(2)
        await stage.peer.close()
        await reconnected(stage, max_message_size=400)
        assert await stage.payloads(1) == [b"small"]
        with pytest.raises(errors.MessageTooBig):
            await receipts[0].wait()
        stage.producer.send_nowait(b"has its place")
        await stage.receipt(1)
        await receipts[1].wait()


@on_both
async def test_chunks_that_another_broker_does_not_take_fail_once() -> None:
    options = {**CHUNKED, "chunk_max_message_size": 500}
    async with producing(max_pending_messages=1, **options) as stage:
        receipt = stage.producer.send_nowait(bytes(1001))
        await stage.payloads(3)
        await stage.peer.close()
        await reconnected(stage, max_message_size=400)
        with pytest.raises(errors.MessageTooBig):
            await receipt.wait()
        stage.producer.send_nowait(b"small")
        with pytest.raises(errors.ProducerQueueIsFull):
            stage.producer.send_nowait(b"one place, not two")
        assert await stage.payloads(1) == [b"small"]


@on_both
async def test_an_answer_to_the_last_words_of_a_broken_connection_is_dropped() -> None:
    async with producing(batching_enabled=False) as stage:
        stage.producer.send_nowait(b"0")
        await stage.payloads(1)
        refusal = bytes_of(Type.SEND_ERROR, producer_id=0, sequence_id=0, error=pb.ChecksumError, message="no")
        await stage.peer.stream.send(refusal + b"\xff" * 16)
        old = await reconnected(stage)
        assert await stage.payloads(1) == [b"0"]
        await old.close()


@on_both
async def test_when_the_client_is_closed_everything_fails() -> None:
    """Also where it lost its connection before."""
    peers = Peers()
    receipts = []
    async with anyio.create_task_group() as tasks:
        found = []

        async def accept() -> None:
            found.append(peer := await peers.next())
            await peer.take_in()
            await peer.lead_here()
            await answer_producer(peer)

        tasks.start_soon(accept)
        async with open_client("pulsar://a", peers.settings) as client:
            producer = await client.create_producer("t", batching_max_publish_delay=1000).__aenter__()
            receipts += [producer.send_nowait(b"0", deliver_after=1), producer.send_nowait(b"in a batch")]
    for receipt in receipts:
        with pytest.raises(errors.AlreadyClosed):
            await receipt.wait()
    with pytest.raises(errors.AlreadyClosed):
        producer.send_nowait(b"late")
    await found[0].close()
    peers.close()


@on_both
async def test_a_full_backlog_fails_what_waits() -> None:
    """As in Java, where the policy is producer_exception; the producer goes on trying."""
    async with producing(batching_max_publish_delay=1000) as stage:
        receipts = [stage.producer.send_nowait(b"0", deliver_after=1)]
        await stage.sent()
        await stage.peer.say(Type.CLOSE_PRODUCER, producer_id=0, request_id=UNASKED)
        receipts.append(stage.producer.send_nowait(b"in a batch"))
        await stage.peer.lead_here_again()
        asked = await stage.peer.expect(Type.PRODUCER)
        await stage.peer.say(
            Type.ERROR, request_id=asked.request_id, error=pb.ProducerBlockedQuotaExceededException, message="full"
        )
        for receipt in receipts:
            with pytest.raises(errors.ProducerBlockedQuotaExceededException):
                await receipt.wait()
        stage.producer.send_nowait(b"1", deliver_after=1)
        assert (await stage.peer.expect(Type.CLOSE_PRODUCER)).producer_id == 0
        await stage.peer.lead_here_again()
        await answer_producer(stage.peer)
        assert await stage.payloads(1) == [b"1"]
