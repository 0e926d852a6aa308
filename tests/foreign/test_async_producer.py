"""Our own producer over sockets, under both event loops, next to the official Python client."""

from __future__ import annotations

import random
from typing import Any

import anyio
import anyio.to_thread
import pulsar
import pytest

from pulsarium.client import BatchingType, Client, CompressionType, ProducerAccessMode, connect, errors
from tests.client.both import on_both
from tests.client.key_files import KeyFiles, key_files

from .admin import Admin
from .broker_process import Address

CHUNKED: dict[str, Any] = {"batching_enabled": False, "chunking_enabled": True}
LARGE = 12_000_000


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> KeyFiles:
    return key_files(tmp_path_factory.mktemp("keys"), "rsa")


def content(size: int) -> bytes:
    """Return content of which one half can be compressed."""
    return random.Random(size).randbytes(size - size // 2) + bytes(size // 2)


def read(official: pulsar.Client, topic: str, count: int, **options: Any) -> list[Any]:
    consumer = official.subscribe(topic, "s", initial_position=pulsar.InitialPosition.Earliest, **options)
    messages = [consumer.receive(30_000) for _ in range(count)]
    with pytest.raises(pulsar.Timeout):
        consumer.receive(100)
    return messages


@pytest.mark.req("B-28")
@on_both
async def test_the_official_client_reads_large_messages(broker: Address, official: pulsar.Client, topic: str) -> None:
    """Messages above the broker's `maxMessageSize` become several entries, whose ids are in the receipt."""
    sizes = [LARGE, 10, LARGE // 2]
    async with connect(broker.service_url) as client, client.create_producer(topic, **CHUNKED) as producer:
        receipts = [producer.send_nowait(content(size), partition_key="k") for size in sizes]
        ids = [await receipt.wait() for receipt in receipts]
        with pytest.raises(errors.MessageTooBig):
            async with client.create_producer(topic, batching_enabled=False) as plain:
                await plain.send(content(LARGE))
    messages = read(official, topic, len(sizes))
    assert [message.data() == content(size) for message, size in zip(messages, sizes, strict=True)] == [True] * 3
    assert [message.partition_key() for message in messages] == ["k"] * 3
    found = [message.message_id() for message in messages]
    assert [(one.ledger_id(), one.entry_id()) for one in found] == [one.entry for one in ids]
    assert [one.first_chunk and one.entry_id - one.first_chunk.entry_id for one in ids] == [2, None, 1]


@pytest.mark.req("B-28")
@pytest.mark.parametrize("compression", CompressionType)
@on_both
async def test_the_official_client_reads_compressed_and_encrypted_chunks(
    broker: Address, official: pulsar.Client, topic: str, compression: CompressionType, keys: KeyFiles
) -> None:
    sizes = [1, 5_000, 50_000, 4_999]
    async with (
        connect(broker.service_url) as client,
        client.create_producer(
            topic,
            chunk_max_message_size=2_000,
            compression_type=compression,
            encryption_keys=["key"],
            crypto_key_reader=keys.reader,
            **CHUNKED,
        ) as producer,
    ):
        for size in sizes:
            await producer.send(content(size), properties={"size": str(size)})
    messages = read(official, topic, len(sizes), crypto_key_reader=pulsar.CryptoKeyReader(*keys))
    assert [message.data() for message in messages] == [content(size) for size in sizes]
    assert [message.properties()["size"] for message in messages] == [str(size) for size in sizes]


@on_both
async def test_batches_by_key_for_key_shared_consumers(broker: Address, official: pulsar.Client, topic: str) -> None:
    consumers = [official.subscribe(topic, "s", pulsar.ConsumerType.KeyShared) for _ in range(3)]
    keys = [f"k{n % 10}" for n in range(100)]
    async with (
        connect(broker.service_url) as client,
        client.create_producer(
            topic, batching_type=BatchingType.KeyBased, batching_max_publish_delay=10, batching_max_messages=50
        ) as producer,
    ):
        receipts = [producer.send_nowait(b"%d" % n, partition_key=key) for n, key in enumerate(keys)]
        ids = [await receipt.wait() for receipt in receipts]
    assert len({one.entry for one in ids}) == 20
    found: dict[str, list[int]] = {}
    owners: dict[str, set[int]] = {}
    left = len(keys)
    for _ in range(1000):
        for number, consumer in enumerate(consumers):
            try:
                message = consumer.receive(20)
            except pulsar.Timeout:
                continue
            left -= 1
            found.setdefault(message.partition_key(), []).append(int(message.data()))
            owners.setdefault(message.partition_key(), set()).add(number)
        if not left:
            break
    assert found == {f"k{n}": list(range(n, 100, 10)) for n in range(10)}
    assert {len(each) for each in owners.values()} == {1}


@pytest.mark.req("B-27")
@pytest.mark.parametrize("batched", [False, True], ids=["plain", "batched"])
@on_both
async def test_a_name_goes_on_where_the_official_client_left_off(
    broker: Address, official: pulsar.Client, admin: Admin, own_namespace: str, batched: bool
) -> None:
    """Deduplication keeps the last sequence id of a producer's name, whichever client uses the name."""
    admin.call("POST", f"/admin/v2/namespaces/{own_namespace}/deduplication", True)
    topic = f"persistent://{own_namespace}/t"
    admin.call("PUT", f"/admin/v2/persistent/{own_namespace}/t")
    theirs = await anyio.to_thread.run_sync(lambda: official.create_producer(topic, producer_name="p"))
    for n in range(5):
        theirs.send(b"%d" % n)
    theirs.close()
    async with (
        connect(broker.service_url) as client,
        client.create_producer(topic, producer_name="p", batching_enabled=batched) as producer,
    ):
        assert producer.last_sequence_id() == 4
        again = await producer.send(b"again", sequence_id=3)
        assert again.entry == (-1, -1)
        receipts = [producer.send_nowait(b"%d" % n) for n in range(5, 10)]
        assert all([(await receipt.wait()).ledger_id >= 0 for receipt in receipts])
        assert producer.last_sequence_id() == 9
    theirs = await anyio.to_thread.run_sync(lambda: official.create_producer(topic, producer_name="p"))
    assert theirs.last_sequence_id() == 9
    theirs.close()
    assert [message.data() for message in read(official, topic, 10)] == [b"%d" % n for n in range(10)]


@pytest.mark.req("P-04")
@on_both
async def test_the_topic_for_oneself(broker: Address, official: pulsar.Client, topic: str) -> None:
    async with connect(broker.service_url) as client, connect(broker.service_url) as other:
        opened: list[int | None] = []

        async def wait(of: Client) -> None:
            mode = ProducerAccessMode.WaitForExclusive
            async with of.create_producer(topic, access_mode=mode, batching_enabled=False) as producer:
                opened.append(producer.topic_epoch())
                await producer.send(b"waited")

        async with (
            anyio.create_task_group() as tasks,
            client.create_producer(topic, access_mode=ProducerAccessMode.Exclusive) as owner,
        ):
            tasks.start_soon(wait, other)
            with pytest.raises(errors.ProducerFenced):
                await client.create_producer(topic, access_mode=ProducerAccessMode.Exclusive).__aenter__()
            with pytest.raises(errors.ProducerBusy):
                await client.create_producer(topic).__aenter__()
            await anyio.to_thread.run_sync(refused, official, topic)
            await owner.send(b"owner")
            first = owner.topic_epoch() or 0
            assert opened == []
        assert opened == [first + 1]


def refused(official: pulsar.Client, topic: str) -> None:
    with pytest.raises(pulsar.PulsarException, match="ProducerFenced"):
        official.create_producer(topic, access_mode=pulsar.ProducerAccessMode.Exclusive)


@pytest.mark.req("P-04")
@pytest.mark.req("P-05")
@on_both
async def test_thrown_out_by_the_official_client(broker: Address, official: pulsar.Client, topic: str) -> None:
    exclusive = {"access_mode": pulsar.ProducerAccessMode.ExclusiveWithFencing}
    async with connect(broker.service_url) as client, connect(broker.service_url) as other:
        async with client.create_producer(topic, access_mode=ProducerAccessMode.Exclusive) as ours:
            await ours.send(b"ours")
            theirs = await anyio.to_thread.run_sync(lambda: official.create_producer(topic, **exclusive))
            theirs.send(b"theirs")
            with pytest.raises(errors.ProducerFenced):
                await ours.send(b"too late")
            with pytest.raises(errors.ProducerFenced):
                ours.send_nowait(b"for good")
        async with other.create_producer(topic, access_mode=ProducerAccessMode.ExclusiveWithFencing) as last:
            await last.send(b"last")
            with pytest.raises(pulsar.PulsarException):
                await anyio.to_thread.run_sync(theirs.send, b"too late")
    assert [message.data() for message in read(official, topic, 3)] == [b"ours", b"theirs", b"last"]


@pytest.mark.req("B-27")
@pytest.mark.req("B-28")
@on_both
async def test_batches_by_key_and_chunks_where_the_broker_deduplicates(
    broker: Address, official: pulsar.Client, admin: Admin, own_namespace: str
) -> None:
    admin.call("POST", f"/admin/v2/namespaces/{own_namespace}/deduplication", True)
    topic = f"persistent://{own_namespace}/t"
    admin.call("PUT", f"/admin/v2/persistent/{own_namespace}/t")
    async with connect(broker.service_url) as client:
        async with client.create_producer(
            topic, batching_type=BatchingType.KeyBased, batching_max_publish_delay=10
        ) as producer:
            receipts = [producer.send_nowait(b"%d" % n, partition_key=key) for n, key in enumerate("abbaac")]
            await producer.flush()
            assert all([(await receipt.wait()).ledger_id >= 0 for receipt in receipts])
        async with client.create_producer(topic, chunk_max_message_size=100, **CHUNKED) as producer:
            first = await producer.send(content(250), sequence_id=7)
            assert first.first_chunk is not None
            assert (await producer.send(content(250), sequence_id=7)).entry == (-1, -1)
            assert (await producer.send(content(150), sequence_id=8)).ledger_id >= 0
    found = [message.data() for message in read(official, topic, 8)]
    assert found == [b"1", b"2", b"0", b"3", b"4", b"5", content(250), content(150)]
