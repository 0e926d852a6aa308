"""The client's producer and our broker, in one process."""

from __future__ import annotations

import anyio
import pytest
from trio.testing import MockClock

from pulsarium.client.client import Client
from pulsarium.client.consumer.consumer import Consumer
from pulsarium.client.consumer.options import InitialPosition
from pulsarium.client.producer.options import CompressionType
from pulsarium.client.producer.receipt import Receipt
from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import TOPIC
from tests.client.in_process import InProcess, in_process

NAME = TopicName.parse(TOPIC)


def reading(client: Client) -> Consumer:
    return client.subscribe("t", "s", initial_position=InitialPosition.Earliest)


def unload(inside: InProcess) -> None:
    inside.bed.broker.topics.unload(NAME)
    inside.bed.broker.turn.finish()


@pytest.mark.parametrize("batching", [False, True], ids=["plain", "batched"])
@pytest.mark.parametrize("compression", CompressionType)
async def test_what_is_sent_is_received(
    autojump_clock: MockClock, compression: CompressionType, batching: bool
) -> None:
    contents = [b"%d " % n * 500 for n in range(10)]
    async with in_process() as inside, inside.client() as client:
        async with client.create_producer("t", compression_type=compression, batching_enabled=batching) as producer:
            receipts = [producer.send_nowait(content, partition_key="k", properties={"a": "b"}) for content in contents]
            ids = [await receipt.wait() for receipt in receipts]
        async with reading(client) as consumer:
            messages = [await consumer.receive() for _ in contents]
            assert [message.data() for message in messages] == contents
            assert [message.message_id() for message in messages] == ids
            assert {(m.partition_key(), m.properties()["a"], m.producer_name()) for m in messages} == {
                ("k", "b", producer.producer_name())
            }
            assert len({message_id.entry for message_id in ids}) == (1 if batching else 10)
            assert [message.sequence_id() for message in messages] == list(range(10))


@pytest.mark.parametrize("batching", [False, True], ids=["plain", "batched"])
async def test_nothing_is_lost_when_topics_move_and_connections_break(
    autojump_clock: MockClock, batching: bool
) -> None:
    """Every message arrives, the first time in order; what has a receipt stands where it says."""
    count = 300
    async with in_process() as inside, inside.client() as client:
        receipts: list[Receipt] = []
        async with client.create_producer("t", batching_enabled=batching, batching_max_messages=7) as producer:
            for n in range(count):
                receipts.append(producer.send_nowait(b"%d" % n))
                if n % 90 == 50:
                    unload(inside)
                if n % 90 == 80:
                    await inside.cut()
                if n % 10 == 0:
                    await anyio.sleep(0.02)
            await producer.flush()
            ids = [await receipt.wait() for receipt in receipts]
            assert ids == sorted(ids)
        async with reading(client) as consumer:
            first: dict[bytes, None] = {}
            with anyio.move_on_after(1):
                while True:
                    first.setdefault((await consumer.receive()).data())
            assert list(first) == [b"%d" % n for n in range(count)]


async def test_nothing_stays_behind(autojump_clock: MockClock) -> None:
    """Neither tasks, which would keep the block from being left, nor anything at the broker."""
    async with in_process() as inside:
        sessions = inside.bed.broker.sessions

        async def use(client: Client) -> None:
            async with client.create_producer("t") as producer, reading(client) as consumer:
                await producer.send(b"1")
                await consumer.receive()
                assert len(sessions) == 2  # to ask where the topic is, and through a proxy to its broker

        async with inside.client() as client:
            await use(client)
        await anyio.sleep(0.1)
        assert len(sessions) == 0


async def test_a_client_that_is_left_while_it_reconnects(autojump_clock: MockClock) -> None:
    async with in_process() as inside:

        async def fail() -> None:
            async with inside.client() as client, client.create_producer("t") as producer:
                producer.send_nowait(b"1")
                unload(inside)
                await inside.cut()
                raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            await fail()


async def test_a_cancelled_block_ends_at_once(autojump_clock: MockClock) -> None:
    async with in_process() as inside:
        start = anyio.current_time()
        with anyio.move_on_after(5):
            async with inside.client() as client, client.create_producer("t") as producer:
                await producer.send(b"1")
                await anyio.sleep_forever()
        assert anyio.current_time() - start == pytest.approx(5, abs=0.1)
        await anyio.sleep(0.1)
        assert len(inside.bed.broker.sessions) == 0
