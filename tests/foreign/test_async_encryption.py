"""Encrypted messages (PIP-4) between our own client, under both event loops, and the official Python one."""

from __future__ import annotations

import pulsar
import pytest

from pulsarium.client import Client, CompressionType, ConsumerCryptoFailureAction, InitialPosition, MessageId, connect
from pulsarium.client.errors import CryptoError
from tests.client.both import on_both
from tests.client.key_files import KeyFiles, key_files
from tests.foreign.async_compaction import Counting, all_of, compact
from tests.foreign.encryption import batched

from .admin import Admin
from .broker_process import Address, is_pulsarium

CONTENTS = [b"%d " % n * 300 for n in range(3)]
EXAMPLE = [("k0", b"v0"), ("k0", b"v1"), ("k1", b"v0"), ("k1", None)]
KEYS = [f"k{number}" for number in range(len(CONTENTS))]

compressions = pytest.mark.parametrize("compression", CompressionType)
versions = pytest.mark.parametrize("version", [21, 22])


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> KeyFiles:
    """Create RSA keys, because the official client knows no other kind."""
    return key_files(tmp_path_factory.mktemp("keys"), "rsa")


async def assert_encrypted(client: Client, topic: str, batched: bool) -> None:
    """Assert that a reader without a key receives the stored entries, and a batch as one message."""
    async with client.create_reader(
        topic, MessageId.earliest, crypto_failure_action=ConsumerCryptoFailureAction.CONSUME
    ) as reader:
        stored = [content for _, content in await all_of(reader)]
    assert len(stored) == (1 if batched else len(CONTENTS))
    assert not any(content in entry for content in CONTENTS for entry in stored)


@pytest.mark.req("S429-27")
@batched
@compressions
@on_both
async def test_our_client_decrypts_messages_of_the_official_client(
    broker: Address,
    official: pulsar.Client,
    topic: str,
    keys: KeyFiles,
    compression: CompressionType,
    batched: bool,
) -> None:
    producer = official.create_producer(
        topic,
        compression_type=pulsar.CompressionType.__members__[compression.name],
        batching_enabled=batched,
        batching_max_messages=len(CONTENTS),
        batching_max_publish_delay_ms=60_000,
        encryption_key="theirs",
        crypto_key_reader=pulsar.CryptoKeyReader(*keys),
    )
    for key, content in zip(KEYS, CONTENTS, strict=True):
        producer.send_async(content, None, partition_key=key)
    producer.flush()
    producer.close()
    async with connect(broker.service_url) as client:
        await assert_encrypted(client, topic, batched)
        async with client.subscribe(
            topic, "s", initial_position=InitialPosition.Earliest, crypto_key_reader=keys.reader
        ) as consumer:
            messages = [await consumer.receive() for _ in CONTENTS]
            assert [message.data() for message in messages] == CONTENTS
            assert [message.partition_key() for message in messages] == KEYS
            indexes = [message.message_id().batch_index for message in messages]
            assert indexes == ([0, 1, 2] if batched else [-1, -1, -1])
        async with client.create_reader(topic, MessageId.earliest, crypto_key_reader=keys.reader) as reader:
            assert await all_of(reader) == list(zip(KEYS, CONTENTS, strict=True))


@pytest.mark.req("S429-27")
@batched
@compressions
@on_both
async def test_the_official_client_reads_what_we_encrypt(
    broker: Address,
    official: pulsar.Client,
    topic: str,
    keys: KeyFiles,
    compression: CompressionType,
    batched: bool,
) -> None:
    async with connect(broker.service_url) as client:
        async with client.create_producer(
            topic,
            compression_type=compression,
            batching_enabled=batched,
            encryption_keys=["ours"],
            crypto_key_reader=keys.reader,
        ) as producer:
            for key, content in zip(KEYS, CONTENTS, strict=True):
                producer.send_nowait(content, partition_key=key)
            await producer.flush()
        await assert_encrypted(client, topic, batched)
    consumer = official.subscribe(
        topic,
        "s",
        initial_position=pulsar.InitialPosition.Earliest,
        crypto_key_reader=pulsar.CryptoKeyReader(*keys),
    )
    messages = [consumer.receive(30_000) for _ in CONTENTS]
    consumer.close()
    assert [message.data() for message in messages] == CONTENTS
    assert [message.partition_key() for message in messages] == KEYS
    indexes = [message.message_id().batch_index() for message in messages]
    assert indexes == ([0, 1, 2] if batched else [-1, -1, -1])


async def publish_example(client: Client, admin: Admin, topic: str, keys: KeyFiles) -> None:
    """Publish the batch of PIP-429 with encryption, and compact the topic."""
    async with client.create_producer(
        topic, compression_type=CompressionType.LZ4, encryption_keys=["ours"], crypto_key_reader=keys.reader
    ) as producer:
        for key, content in EXAMPLE:
            producer.send_nowait(content, partition_key=key)
        await producer.flush()
    compact(admin, topic)


@pytest.mark.req("S429-17", "S429-27")
@versions
@on_both
async def test_compaction_leaves_an_encrypted_batch_whole(
    broker: Address, admin: Admin, official: pulsar.Client, topic: str, keys: KeyFiles, version: int
) -> None:
    everything = [(key, content or b"") for key, content in EXAMPLE]
    counting = Counting()
    async with connect(broker.service_url, max_protocol_version=version) as client:
        await publish_example(client, admin, topic, keys)
        async with client.create_reader(
            topic,
            MessageId.earliest,
            read_compacted=True,
            crypto_key_reader=keys.reader,
            payload_to_message_id_converter=counting,
        ) as reader:
            (last,) = await reader.get_last_message_ids()
            assert (last.entry_id, last.batch_index) == (0, 3)
            assert await all_of(reader) == everything
    if is_pulsarium():  # no other broker has protocol version 22
        assert bool(counting.calls) == (version == 22)
    theirs = official.create_reader(
        topic, pulsar.MessageId.earliest, is_read_compacted=True, crypto_key_reader=pulsar.CryptoKeyReader(*keys)
    )
    found = []
    while theirs.has_message_available():
        message = theirs.read_next(30_000)
        found.append((message.partition_key(), message.data()))
    theirs.close()
    assert found == everything


@pytest.mark.req("S429-17")
@versions
@pytest.mark.parametrize(
    "action", [ConsumerCryptoFailureAction.CONSUME, ConsumerCryptoFailureAction.FAIL], ids=lambda action: action.value
)
@on_both
async def test_a_compacted_encrypted_batch_without_a_key(
    broker: Address, admin: Admin, topic: str, keys: KeyFiles, version: int, action: ConsumerCryptoFailureAction
) -> None:
    """The reader knows the last message without a key, so that a loop over available messages ends."""
    counting = Counting()
    async with connect(broker.service_url, max_protocol_version=version) as client:
        await publish_example(client, admin, topic, keys)
        async with client.create_reader(
            topic,
            MessageId.earliest,
            read_compacted=True,
            crypto_failure_action=action,
            payload_to_message_id_converter=counting,
        ) as reader:
            (last,) = await reader.get_last_message_ids()
            assert (last.entry_id, last.batch_index) == (0, 3)
            got = []
            while await reader.has_message_available():
                try:
                    message = await reader.read_next()
                except CryptoError:
                    got.append("refused")
                else:
                    got.append(message.partition_key())
                    assert message.message_id().batch_index == -1
    assert got == ["k0" if action is ConsumerCryptoFailureAction.CONSUME else "refused"]
    if is_pulsarium():  # no other broker has protocol version 22
        assert bool(counting.calls) == (version == 22)  # the converter also gets a batch that cannot be decrypted
