"""Message indexes (PIP-415), table views and raw entries with our client, over sockets."""

from __future__ import annotations

import anyio
import pulsar
import pytest

from pulsarium.client import Client, Consumer, ConsumerType, InitialPosition, Message, MessageId, StringSchema, connect
from pulsarium.client.admin.errors import NotFound
from pulsarium.proto import entry
from tests.client.both import on_both
from tests.foreign.async_compaction import compact
from tests.foreign.python.message_index import INTERCEPTORS

from .admin import Admin
from .broker_process import Address, BrokerProcess
from .conftest import Launch

TOPIC = "persistent://public/default/indexed"
SENT = [b"%d" % index for index in range(5)]


@pytest.fixture
def stamping(launch: Launch) -> BrokerProcess:
    """Start a broker that gives each message an index, and shows the index to clients."""
    return launch(
        *("--set", f"brokerEntryMetadataInterceptors={INTERCEPTORS}"),
        *("--set", "exposingBrokerEntryMetadataToClientEnabled=true"),
        *("--set", "acknowledgmentAtBatchIndexLevelEnabled=true"),
    )


async def publish(client: Client) -> None:
    """Publish batches of 3 and 2 messages."""
    async with client.create_producer(TOPIC, batching_enabled=True) as producer:
        for batch in (SENT[:3], SENT[3:]):
            for content in batch:
                producer.send_nowait(content)
            await producer.flush()


async def received(consumer: Consumer[bytes], count: int) -> list[Message[bytes]]:
    messages = [await consumer.receive() for _ in range(count)]
    with anyio.move_on_after(0.2):
        raise AssertionError(await consumer.receive())
    return messages


@pytest.mark.req("S415-28", "S415-29", "S415-30", "S415-41")
@on_both
async def test_the_index_recipe_starts_inside_a_batch(stamping: BrokerProcess) -> None:
    """Index 1 is inside the first batch, of three messages. The application sees the messages 1, 2, 3 and 4."""
    address = stamping.address
    async with connect(address.service_url, admin_url=address.admin_url) as client:
        await publish(client)
        async with client.subscribe(TOPIC, "s", initial_position=InitialPosition.Earliest) as consumer:
            messages = await received(consumer, 5)
            assert [message.index() for message in messages] == [0, 1, 2, 3, 4]
            assert {message.broker_publish_time() is not None for message in messages} == {True}
            for index in range(5):
                await consumer.seek_to_index(index)
                messages = await received(consumer, 5 - index)
                assert [message.data() for message in messages] == SENT[index:]
                assert [message.index() for message in messages] == list(range(index, 5))
            with pytest.raises(NotFound):
                await consumer.seek_to_index(5)
        async with client.create_reader(TOPIC, MessageId.latest) as reader:
            await reader.seek_to_index(1)
            assert [(await reader.read_next()).data() for _ in range(4)] == SENT[1:]
        async with client.subscribe(
            TOPIC, "shared", consumer_type=ConsumerType.Shared, initial_position=InitialPosition.Earliest
        ) as consumer:
            for index in (1, 3):
                await consumer.acknowledge_index(index)
        async with client.subscribe(TOPIC, "shared", consumer_type=ConsumerType.Shared) as consumer:
            assert [message.data() for message in await received(consumer, 3)] == [b"0", b"2", b"4"]


@on_both
async def test_a_table_that_the_official_client_fills(broker: Address, admin: Admin, topic: str) -> None:
    official = pulsar.Client(broker.service_url, operation_timeout_seconds=30)
    producer = official.create_producer(topic, schema=pulsar.schema.StringSchema())
    for key, value in (("a", "1"), ("b", "2"), ("a", "3")):
        producer.send(value, partition_key=key)
    compact(admin, topic)
    async with connect(broker.service_url) as client, client.create_table_view(topic, schema=StringSchema()) as view:
        assert dict(view) == {"a": "3", "b": "2"}
        seen: list[tuple[str, str | None]] = []
        view.listen(lambda key, value: seen.append((key, value)))
        producer.send("4", partition_key="c")
        producer.send("", partition_key="b")
        await view.refresh()
        assert dict(view) == {"a": "3", "c": "4"}
        assert seen == [("c", "4"), ("b", None)]
    official.close()


@on_both
async def test_a_raw_reader_gets_entries_of_the_official_client(broker: Address, topic: str) -> None:
    official = pulsar.Client(broker.service_url, operation_timeout_seconds=30)
    producer = official.create_producer(
        topic,
        batching_enabled=True,
        batching_max_messages=3,
        batching_max_publish_delay_ms=60_000,
        compression_type=pulsar.CompressionType.ZSTD,
    )
    for content in SENT[:3]:
        producer.send_async(content, None)
    producer.flush()
    official.close()
    async with connect(broker.service_url) as client, client.create_raw_reader(topic, MessageId.earliest) as reader:
        raw = await reader.read_next()
        assert (raw.metadata.num_messages_in_batch, raw.metadata.compression) == (3, 3)
        assert entry.checksum_matches(raw.headers_and_payload)
        assert entry.parse_metadata(raw.headers_and_payload) == raw.metadata
        assert not await reader.has_message_available()
