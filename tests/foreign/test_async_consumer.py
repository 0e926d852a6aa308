"""Our consumers and readers, over sockets and under both event loops, on topics of the official Python client."""

from __future__ import annotations

import pulsar
import pytest

from pulsarium.client import InitialPosition, MessageId, Reader, connect
from tests.client.both import on_both

from .broker_process import Address

CONTENTS = [b"%d " % n * 300 for n in range(25)]
Earliest = InitialPosition.Earliest
COMPRESSIONS = [
    pulsar.CompressionType.NONE,
    pulsar.CompressionType.LZ4,
    pulsar.CompressionType.ZLib,
    pulsar.CompressionType.ZSTD,
    pulsar.CompressionType.SNAPPY,
]


def write(
    official: pulsar.Client,
    topic: str,
    contents: list[bytes] = CONTENTS,
    compression: pulsar.CompressionType = pulsar.CompressionType.NONE,
    batched: bool = True,
) -> None:
    producer = official.create_producer(
        topic, compression_type=compression, batching_enabled=batched, batching_max_publish_delay_ms=50
    )
    for number, content in enumerate(contents):
        producer.send_async(
            content, None, partition_key=f"k{number}", properties={"a": "ä"}, event_timestamp=number, ordering_key="o"
        )
    producer.flush()
    producer.close()


async def all_of(reader: Reader) -> list[bytes]:
    data = []
    while await reader.has_message_available():
        data.append((await reader.read_next()).data())
    return data


@pytest.mark.parametrize("batched", [False, True], ids=["plain", "batched"])
@pytest.mark.parametrize("compression", COMPRESSIONS, ids=str)
@on_both
async def test_our_client_reads_what_the_official_client_sends(
    broker: Address, official: pulsar.Client, topic: str, compression: pulsar.CompressionType, batched: bool
) -> None:
    write(official, topic, compression=compression, batched=batched)
    theirs = official.create_reader(topic, pulsar.MessageId.earliest)
    expected = [theirs.read_next(30_000) for _ in CONTENTS]
    async with (
        connect(broker.service_url) as client,
        client.subscribe(topic, "s", initial_position=Earliest) as consumer,
    ):
        messages = [await consumer.receive() for _ in CONTENTS]
        assert [message.data() for message in messages] == CONTENTS
        for message, other in zip(messages, expected, strict=True):
            their_id = other.message_id()
            assert message.message_id() == MessageId.deserialize(their_id.serialize())
            assert str(message.message_id()) == str(their_id)
            for say in ("partition_key", "ordering_key", "properties", "event_timestamp", "publish_timestamp"):
                assert getattr(message, say)() == getattr(other, say)()
            for say in ("topic_name", "producer_name", "redelivery_count", "has_null_value", "data"):
                assert getattr(message, say)() == getattr(other, say)()
        (last,) = await consumer.get_last_message_ids()
        assert last == messages[-1].message_id()
        async with client.create_reader(topic, MessageId.earliest) as reader:
            assert await all_of(reader) == CONTENTS


@on_both
async def test_messages_acknowledged_by_one_client_are_not_delivered_to_another(
    broker: Address, official: pulsar.Client, topic: str
) -> None:
    write(official, topic)
    async with connect(broker.service_url) as client:
        async with client.subscribe(
            topic, "s", initial_position=Earliest, batch_index_ack_enabled=True, ack_receipt_enabled=True
        ) as consumer:
            for number in range(len(CONTENTS)):
                message = await consumer.receive()
                if number % 5:
                    await consumer.acknowledge(message)
        theirs = official.subscribe(topic, "s", batch_index_ack_enabled=True)
        left = [theirs.receive(30_000) for _ in CONTENTS[::5]]
        assert [message.data() for message in left] == CONTENTS[::5]
        for message in left[:3]:
            theirs.acknowledge(message)
        theirs.close()
        async with client.subscribe(topic, "s") as consumer:
            assert [(await consumer.receive()).data() for _ in range(2)] == CONTENTS[15::5]


@on_both
async def test_reading_on_from_a_kept_id(broker: Address, official: pulsar.Client, topic: str) -> None:
    """Our client resumes at an id of the official client, in the middle of a batch. Then the roles change."""
    write(official, topic)
    theirs = official.create_reader(topic, pulsar.MessageId.earliest)
    kept = [theirs.read_next(30_000) for _ in range(10)][-1].message_id().serialize()
    async with (
        connect(broker.service_url) as client,
        client.create_reader(topic, MessageId.deserialize(kept)) as reader,
    ):
        ours = (await reader.read_next()).message_id()
        assert [CONTENTS[10], *await all_of(reader)] == CONTENTS[10:]
        await reader.seek(ours)
        assert await all_of(reader) == CONTENTS[11:]
    theirs = official.create_reader(topic, pulsar.MessageId.deserialize(ours.serialize()))
    assert theirs.read_next(30_000).data() == CONTENTS[11]
