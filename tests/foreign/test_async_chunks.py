"""Messages in chunks (PIP-37) from the official Python client to our client, and back."""

from __future__ import annotations

import random
from typing import Any

import anyio
import pulsar
import pytest

from pulsarium.client import CompressionType, InitialPosition, MessageId, connect
from tests.client.both import on_both
from tests.client.key_files import KeyFiles, key_files

from .admin import Admin
from .broker_process import Address

pytestmark = pytest.mark.req("B-28")
SIZES = (11_000_000, 10, 6_000_000)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> KeyFiles:
    return key_files(tmp_path_factory.mktemp("keys"), "rsa")


def content(size: int) -> bytes:
    """Return content of which one half can be compressed."""
    return random.Random(size).randbytes(size // 2) + bytes(size - size // 2)


def triple(message_id: Any) -> tuple[int, int, int]:
    return message_id.ledger_id(), message_id.entry_id(), message_id.batch_index()


async def settled(admin: Admin, topic: str) -> None:
    """Wait until every chunk is acknowledged."""
    with anyio.fail_after(30):
        while admin.backlog(topic, "s"):  # noqa: ASYNC110 (the broker is another process)
            await anyio.sleep(0.05)


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "encrypted"])
@pytest.mark.parametrize("compression", [CompressionType.NONE, CompressionType.LZ4])
@on_both
async def test_our_client_reads_chunks_of_the_official_client(
    broker: Address,
    official: pulsar.Client,
    admin: Admin,
    topic: str,
    keys: KeyFiles,
    compression: CompressionType,
    encrypted: bool,
) -> None:
    options: dict[str, Any] = {}
    if encrypted:
        options = {"encryption_key": "rsa", "crypto_key_reader": pulsar.CryptoKeyReader(keys.public, keys.private)}
    producer = official.create_producer(
        topic,
        chunking_enabled=True,
        batching_enabled=False,
        compression_type=getattr(pulsar.CompressionType, compression.name),
        **options,
    )
    ids = [producer.send(content(size)) for size in SIZES]
    producer.close()
    async with connect(broker.service_url) as client:
        async with client.subscribe(
            topic, "s", initial_position=InitialPosition.Earliest, crypto_key_reader=keys.reader
        ) as consumer:
            messages = [await consumer.receive() for _ in SIZES]
            assert [message.data() == content(size) for message, size in zip(messages, SIZES, strict=True)] == [
                True
            ] * 3
            found = [message.message_id() for message in messages]
            assert [(*one.entry, one.batch_index) for one in found] == [triple(one) for one in ids]
            assert len(found[0].entries) > 1
            for message in messages:
                await consumer.acknowledge(message)
            await settled(admin, topic)
        async with client.create_reader(
            topic, found[2], start_message_id_inclusive=True, crypto_key_reader=keys.reader
        ) as reader:
            assert (await reader.read_next()).data() == content(SIZES[2])
            await reader.seek(MessageId.deserialize(found[0].serialize()))
            assert (await reader.read_next()).data() == content(SIZES[0])


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "encrypted"])
@on_both
async def test_the_official_client_receives_our_chunks(
    broker: Address, official: pulsar.Client, topic: str, keys: KeyFiles, encrypted: bool
) -> None:
    options: dict[str, Any] = {"encryption_keys": ["rsa"], "crypto_key_reader": keys.reader} if encrypted else {}
    async with (
        connect(broker.service_url) as client,
        client.create_producer(topic, chunking_enabled=True, batching_enabled=False, **options) as producer,
    ):
        ids = [await producer.send(content(size)) for size in SIZES]
    consumer = official.subscribe(
        topic,
        "s",
        initial_position=pulsar.InitialPosition.Earliest,
        crypto_key_reader=pulsar.CryptoKeyReader(keys.public, keys.private),
    )
    messages = [consumer.receive(30_000) for _ in SIZES]
    assert all(message.data() == content(size) for message, size in zip(messages, SIZES, strict=True))
    assert [triple(message.message_id()) for message in messages] == [(*one.entry, one.batch_index) for one in ids]
    consumer.close()
