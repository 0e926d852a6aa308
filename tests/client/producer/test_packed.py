"""Batches that a program packs itself."""

from __future__ import annotations

import pytest
from trio.testing import MockClock

from pulsarium.broker.config import Config
from pulsarium.client import CompressionType, InitialPosition
from pulsarium.client.bulk import BatchProducer, PackedBatch
from pulsarium.client.errors import AlreadyClosed, MessageTooBig, ProducerFenced
from pulsarium.proto import batch
from pulsarium.proto.generated.PulsarApi_pb2 import SingleMessageMetadata
from tests.client.hostile.clocks import on_both
from tests.client.in_process import in_process
from tests.client.peer import Type
from tests.client.producer.stage import UNASKED, answer_producer, producing

TOPIC = "persistent://public/default/t"


def packed(first: int, *contents: bytes) -> PackedBatch:
    """Return a batch of these messages, whose sequence ids start at `first`."""
    messages = [
        (SingleMessageMetadata(payload_size=len(each), sequence_id=first + number, partition_key="k"), each)
        for number, each in enumerate(contents)
    ]
    size = sum(map(len, contents))
    return PackedBatch(batch.pack(messages), len(contents), size, first, first + len(contents) - 1, messages[0][0])


@pytest.mark.parametrize("compression", [CompressionType.NONE, CompressionType.ZSTD])
async def test_packed_batches_are_messages_in_their_order(
    autojump_clock: MockClock, compression: CompressionType
) -> None:
    async with in_process(Config(brokerDeduplicationEnabled=True)) as inside, inside.client() as client:
        consumer = client.subscribe(TOPIC, "s", initial_position=InitialPosition.Earliest)
        made = client.create_producer(TOPIC, producer_name="p", compression_type=compression)
        async with consumer, made as producer:
            packing = BatchProducer(producer)
            await packing.send(0, b"alone", sequence_id=0)
            await packing.send_batch(0, packed(1, b"a", b"bc"))
            receipt = await packing.send_batch(0, packed(3, b"d", b"e"))
            found = await receipt.wait()
            assert packing.highest_sequence_id(0) == packing.last_sequence_id() == 4
            received = [await consumer.receive() for _ in range(5)]
        assert [each.data() for each in received] == [b"alone", b"a", b"bc", b"d", b"e"]
        assert [each.partition_key() for each in received] == ["", *"kkkk"]
        assert received[-1].message_id().entry == found.entry
        async with client.create_producer(TOPIC, producer_name="p") as again:
            packing = BatchProducer(again)
            assert packing.highest_sequence_id(0) == 4
            dropped = await (await packing.send(0, b"alone", sequence_id=0)).wait()
            assert dropped.ledger_id == -1


@on_both
@pytest.mark.parametrize("last", [8, 9])
async def test_omitted_messages_that_the_broker_lost_end_the_producer(last: int) -> None:
    """The broker would store the message behind them, and drop the omitted ones when the program sends them again."""
    async with producing({"last_sequence_id": 9}, batching_enabled=False) as stage:
        packing = BatchProducer(stage.producer)
        packing.omit_through(0, 9)
        receipt = await packing.send(0, b"last", sequence_id=9)
        await stage.sent()
        await stage.peer.say(Type.CLOSE_PRODUCER, producer_id=0, request_id=UNASKED)
        await stage.peer.lead_here_again()
        await answer_producer(stage.peer, last_sequence_id=last)
        if last == 9:
            assert (await stage.sent())[0].sequence_id == 9
        else:
            with pytest.raises(ProducerFenced, match="the broker lost messages of an earlier producer named after 8"):
                await receipt.wait()


async def test_a_packed_batch_occupies_its_room_until_its_receipt(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        async with client.create_producer(TOPIC, max_pending_messages=10) as producer:
            packing = BatchProducer(producer)
            receipt = await packing.send_batch(0, packed(0, b"abc", b"de"))
            assert (packing.partitions, packing.most_messages) == (1, 10)
            assert (producer.statistics().pending_messages, producer.statistics().pending_bytes) == (2, 5)
            await receipt.wait()
            assert producer.statistics().pending_messages == 0
            too_big = await packing.send_batch(0, packed(2, bytes(6 << 20), b""))
            with pytest.raises(MessageTooBig):
                await too_big.wait()
            assert producer.statistics().pending_bytes == 0
        with pytest.raises(AlreadyClosed):
            await packing.send_batch(0, packed(4, b"f", b"g"))
