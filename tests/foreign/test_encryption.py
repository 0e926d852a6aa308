"""Encrypted messages (PIP-4) between the official clients and our encoder and decoder."""

from __future__ import annotations

from collections.abc import Iterator

import pulsar
import pytest

from pulsarium.client.entry.decoding import Decoder, messages
from pulsarium.client.entry.encoding import Encoder
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.key_files import KeyFiles, key_files
from tests.foreign.encryption import batched
from tests.foreign.java_client import java_program

from .broker_process import Address
from .lines import LineProgram
from .raw import RawConsumer, RawProducer

MESSAGES = 3
FILLING = "abcd" * 2_000
"""Text that is long enough for the Java client to compress."""

COMPRESSIONS = ("NONE", "LZ4", "ZLIB", "ZSTD", "SNAPPY")

pytestmark = pytest.mark.req("S429-27", "B-43")

compressions = pytest.mark.parametrize("compression", COMPRESSIONS)


@pytest.fixture(scope="module", params=["rsa", "ec"])
def keys(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> KeyFiles:
    """Create a pair of keys for this run."""
    return key_files(tmp_path_factory.mktemp("keys"), request.param)


@pytest.fixture(scope="module")
def rsa_keys(tmp_path_factory: pytest.TempPathFactory) -> KeyFiles:
    """Create RSA keys for the Python client, which knows no other kind."""
    return key_files(tmp_path_factory.mktemp("keys"), "rsa")


@pytest.fixture(scope="module")
def java(broker: Address, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LineProgram]:
    program = java_program(broker, tmp_path_factory.mktemp("java"))
    yield program
    program.close()


@pytest.fixture(scope="module")
def client(broker: Address) -> Iterator[pulsar.Client]:
    client = pulsar.Client(broker.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Warn))
    yield client
    client.close()


def values() -> list[str]:
    return [f"{number}{FILLING}" for number in range(MESSAGES)]


def assert_decoded(broker: Address, topic: str, keys: KeyFiles, compression: str, batched: bool) -> None:
    """Assert that our decoder reads all messages of the topic."""
    decoder = Decoder(keys.reader)
    with RawConsumer(broker, topic, "raw") as consumer:
        decoded = [decoder.decode(entry) for entry in consumer.entries(1 if batched else MESSAGES)]
    assert {pb.CompressionType.Name(each.metadata.compression) for each in decoded} == {compression}
    assert {len(each.metadata.encryption_keys) for each in decoded} == {1}
    assert not any(each.metadata.HasField("encryption_algo") for each in decoded)
    found = [single for each in decoded for single in messages(each)]
    assert [payload.decode() for _, _, payload in found] == values()
    assert [index for index, _, _ in found] == (list(range(MESSAGES)) if batched else [-1] * MESSAGES)


def publish_ours(broker: Address, topic: str, keys: KeyFiles, compression: str, batched: bool) -> None:
    """Publish the messages as our client encodes them."""
    encoder = Encoder(getattr(pb, compression), ["ours"], keys.reader)
    with RawProducer(broker, topic) as producer:
        if batched:
            singles = [
                (pb.SingleMessageMetadata(partition_key=f"k{number}"), value.encode())
                for number, value in enumerate(values())
            ]
            metadata = pb.MessageMetadata(producer_name="raw", sequence_id=0, publish_time=1)
            producer.publish(encoder.batch(metadata, singles), MESSAGES)
            return
        for number, value in enumerate(values()):
            metadata = pb.MessageMetadata(
                producer_name="raw", sequence_id=number, publish_time=1, partition_key=f"k{number}"
            )
            producer.publish(encoder.single(metadata, value.encode()))


@batched
@compressions
def test_published_by_python(
    client: pulsar.Client, broker: Address, topic: str, rsa_keys: KeyFiles, compression: str, batched: bool
) -> None:
    producer = client.create_producer(
        topic,
        compression_type=pulsar.CompressionType.__members__["ZLib" if compression == "ZLIB" else compression],
        batching_enabled=batched,
        batching_max_messages=MESSAGES,
        batching_max_publish_delay_ms=60_000,
        encryption_key="python",
        crypto_key_reader=pulsar.CryptoKeyReader(*rsa_keys),
    )
    for number, value in enumerate(values()):
        producer.send_async(value.encode(), None, partition_key=f"k{number}")
    producer.flush()
    producer.close()
    assert_decoded(broker, topic, rsa_keys, compression, batched)


@batched
@compressions
def test_read_by_python(
    client: pulsar.Client, broker: Address, topic: str, rsa_keys: KeyFiles, compression: str, batched: bool
) -> None:
    publish_ours(broker, topic, rsa_keys, compression, batched)
    consumer = client.subscribe(
        topic,
        "s",
        initial_position=pulsar.InitialPosition.Earliest,
        crypto_key_reader=pulsar.CryptoKeyReader(*rsa_keys),
    )
    received = [consumer.receive(timeout_millis=30_000) for _ in range(MESSAGES)]
    consumer.close()
    assert [message.data().decode() for message in received] == values()
    assert [message.partition_key() for message in received] == [f"k{number}" for number in range(MESSAGES)]


@batched
@compressions
def test_published_by_java(
    java: LineProgram, broker: Address, topic: str, keys: KeyFiles, compression: str, batched: bool
) -> None:
    java.run(
        "encryption-publish",
        topic=topic,
        public_key=keys.public,
        private_key=keys.private,
        compression=compression,
        batched=batched,
        messages=MESSAGES,
    )
    assert_decoded(broker, topic, keys, compression, batched)


@batched
@compressions
def test_read_by_java(
    java: LineProgram, broker: Address, topic: str, keys: KeyFiles, compression: str, batched: bool
) -> None:
    publish_ours(broker, topic, keys, compression, batched)
    java.run(
        "encryption-consume",
        topic=topic,
        public_key=keys.public,
        private_key=keys.private,
        messages=MESSAGES,
    )
