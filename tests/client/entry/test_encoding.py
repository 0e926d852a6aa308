"""Encoding of a producer's entries."""

from __future__ import annotations

import anyio
import pytest

from pulsarium.client.entry import encoding
from pulsarium.client.entry.encoding import RETRY, Encoder
from pulsarium.client.entry.encryption import ROTATION
from pulsarium.client.errors import CryptoError, InvalidConfiguration
from pulsarium.proto import entry as entries
from pulsarium.proto.batch import pack
from pulsarium.proto.compaction import open_entry
from pulsarium.proto.generated.PulsarApi_pb2 import (
    LZ4,
    NONE,
    ZLIB,
    CompressionType,
    MessageMetadata,
    SingleMessageMetadata,
)
from tests.client.entry.encrypted import AwaitedKeys, Keys, Recorded, recorded
from tests.client.hostile.clocks import on_both


def new_metadata() -> MessageMetadata:
    return MessageMetadata(producer_name="p", sequence_id=3, publish_time=1)


def test_a_plain_message_is_encoded_as_it_is() -> None:
    assert Encoder().single(new_metadata(), b"payload") == entries.build(new_metadata(), b"payload")


def test_a_plain_batch_is_packed_into_an_entry() -> None:
    singles = [(SingleMessageMetadata(partition_key="a"), b"1"), (SingleMessageMetadata(), b"")]
    entry = Encoder().batch(new_metadata(), singles)
    assert entries.payload_of(entry) == pack(singles)
    assert entries.messages_in(entry) == 2
    assert entries.checksum_matches(entry) is True


def test_a_batch_of_one_is_a_batch() -> None:
    entry = Encoder().batch(new_metadata(), [(SingleMessageMetadata(), b"1")])
    assert entries.parse_metadata(entry).HasField("num_messages_in_batch")


def test_compression_and_the_size_before() -> None:
    """`uncompressed_size` is the size before compression, and encryption does not change it."""
    entry = Encoder(LZ4, ["rsa"], Keys()).single(new_metadata(), b"a" * 1000)
    metadata = entries.parse_metadata(entry)
    assert (metadata.compression, metadata.uncompressed_size) == (LZ4, 1000)
    assert len(entries.payload_of(entry)) < 100


def test_nothing_is_not_compressed() -> None:
    """Java compresses no empty payload either. The zlib codec of the official C++ client cannot decompress one."""
    metadata = entries.parse_metadata(Encoder(ZLIB).single(new_metadata(), b""))
    assert not metadata.HasField("compression")


@pytest.mark.parametrize("compression", [NONE, LZ4])
def test_an_encrypted_message_without_a_value_takes_its_key_away(compression: CompressionType) -> None:
    metadata = new_metadata()
    metadata.partition_key = "k"
    opened = open_entry(Encoder(compression, ["rsa"], Keys()).single(metadata, b""))
    assert opened is not None
    assert opened.messages == [(-1, b"k", False)]


@pytest.mark.parametrize("record", [each for each in recorded() if each.client == "python"], ids=str)
def test_the_same_fields_as_the_official_client(record: Recorded) -> None:
    theirs = entries.parse_metadata(record.entries[0])
    encoder = Encoder(theirs.compression, ["rsa"], Keys())
    ours = MessageMetadata(producer_name="p", sequence_id=0, publish_time=1, partition_key="k0")
    if record.batched:
        singles = [
            (SingleMessageMetadata(partition_key=f"k{number}", sequence_id=number), value)
            for number, value in enumerate(record.messages)
        ]
        encoder.batch(ours, singles)
    else:
        encoder.single(ours, record.messages[0])
    assert [field.name for field, _ in ours.ListFields()] == [field.name for field, _ in theirs.ListFields()]
    assert ours.uncompressed_size == theirs.uncompressed_size
    assert len(ours.encryption_keys[0].value) == len(theirs.encryption_keys[0].value)


def test_the_clock_rotates_data_keys() -> None:
    times = [0.0, 0.0, 10.0, ROTATION, ROTATION + 10]
    encoder = Encoder(NONE, ["ec"], Keys(), clock=lambda: times.pop(0))
    wrapped = []
    while times:
        metadata = new_metadata()
        encoder.single(metadata, b"x")
        wrapped.append(metadata.encryption_keys[0].value)
    assert wrapped[0] == wrapped[1] != wrapped[2] == wrapped[3]


def test_names_without_a_reader() -> None:
    with pytest.raises(CryptoError, match="to encrypt for a, b the producer needs a crypto_key_reader"):
        Encoder(NONE, ["a", "b"])


@pytest.mark.parametrize("names", ["rsa", [""], ["rsa", ""]])
def test_keys_with_names_that_are_none_are_refused(names: list[str]) -> None:
    with pytest.raises(InvalidConfiguration, match="give a list of names"):
        Encoder(NONE, names, Keys())


def test_a_reader_without_names_encrypts_nothing() -> None:
    keys = Keys()
    assert entries.payload_of(Encoder(NONE, [], keys).single(new_metadata(), b"x")) == b"x"
    assert keys.asked == []


def test_an_unusable_key_is_found_at_once() -> None:
    with pytest.raises(CryptoError, match="nobody: the key reader gives no public key"):
        Encoder(NONE, ["nobody"], Keys())


def test_a_key_that_vanishes() -> None:
    """The client notices the missing key when it next rotates the data key."""

    class Vanishing(Keys):
        def get_public_key(self, name: str, metadata: dict[str, str]) -> bytes:
            if self.asked:
                raise FileNotFoundError(name)
            return super().get_public_key(name, metadata)

    now = 0.0
    encoder = Encoder(NONE, ["rsa"], Vanishing(), clock=lambda: now)
    encoder.single(new_metadata(), b"x")
    now = ROTATION
    with pytest.raises(CryptoError, match="rsa: the key reader gives no public key"):
        encoder.single(new_metadata(), b"x")


@on_both
async def test_the_key_of_an_asynchronous_reader_is_replaced_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "ROTATION", 600.0)  # an hour is all that a test may take
    keys = AwaitedKeys()
    keys.come.set()
    async with anyio.create_task_group() as tasks:
        encoder = Encoder(NONE, ["rsa"], keys)
        await encoder.open(tasks)
        first, second = new_metadata(), new_metadata()
        encoder.single(first, b"x")
        await anyio.sleep(601)
        encoder.single(second, b"x")
        assert first.encryption_keys[0].value != second.encryption_keys[0].value
        assert keys.asked == 2
        encoder.close()


@on_both
async def test_messages_fail_while_an_asynchronous_reader_has_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "ROTATION", 600.0)
    keys = AwaitedKeys()
    keys.come.set()
    async with anyio.create_task_group() as tasks:
        encoder = Encoder(NONE, ["rsa"], keys)
        await encoder.open(tasks)
        keys.fails = "rsa"
        await anyio.sleep(601)
        with pytest.raises(CryptoError, match="rsa: the key reader gives no public key"):
            encoder.single(new_metadata(), b"x")
        keys.fails = ""
        await anyio.sleep(RETRY)
        encoder.single(new_metadata(), b"x")
        encoder.close()
