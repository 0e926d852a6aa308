"""Messages with impossible claims: they cost no more memory than their bytes, and any error is a PulsarError."""

from __future__ import annotations

import random
import zlib
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsarium.client import Consumer, ConsumerType, CryptoKeyReader, MessageId, errors
from pulsarium.proto import batch, entry
from pulsarium.proto.compression import compress
from pulsarium.proto.entry import crc32c
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import batch_of, frame_of, plain
from tests.client.both import run_on
from tests.client.hostile.clocks import on_both
from tests.client.hostile.left_over import no_growth
from tests.client.hostile.played import playing, saying, subscribed
from tests.client.key_files import key_files
from tests.client.peer import Peer, Type

END = b"the end"
BIG = 2**31 - 1


async def deliver(peer: Peer, data: bytes, **fields: Any) -> None:
    where = pb.MessageIdData(ledgerId=7, entryId=7)
    await peer.say(Type.MESSAGE, data, **{"consumer_id": 0, "message_id": where, **fields})


async def until_the_end(peer: Peer, consumer: Consumer[Any]) -> list[Any]:
    """Receive until the end, and return the data or the client's error of each message."""
    await deliver(peer, plain(END), message_id=pb.MessageIdData(ledgerId=9, entryId=9))
    got: list[Any] = []
    while not got or got[-1] != END:
        try:
            got.append((await consumer.receive()).data())
        except errors.PulsarError as error:
            got.append(type(error))
    return got[:-1]


ZEROS = b"\0" * 100_000

#: Unreadable entries, named after their wrong claim.
BROKEN: dict[str, bytes] = {
    "a batch of 2^31": plain(b"x" * 1000, num_messages_in_batch=BIG),
    "a batch of less than none": plain(b"x", num_messages_in_batch=-BIG),
    "a batch cut": plain(batch.pack([(pb.SingleMessageMetadata(), b"abc")])[:-1], num_messages_in_batch=1),
    "a message of 2^31 bytes in a batch": plain(
        b"\0\0\0\x06" + pb.SingleMessageMetadata(payload_size=BIG).SerializeToString() + b"x", num_messages_in_batch=1
    ),
    "a message of less than no bytes": plain(
        b"\0\0\0\x0b" + pb.SingleMessageMetadata(payload_size=-5).SerializeToString() + b"x", num_messages_in_batch=1
    ),
    "nothing": b"",
    "a checksum cut": b"\x0e\x01\0\0",
    "metadata of 2^32 bytes": b"\xff\xff\xff\xff",
    "broker metadata of 2^32 bytes": b"\x0e\x02\xff\xff\xff\xff" + plain(b"x"),
    "broker metadata that is none": b"\x0e\x02\x00\x00\x00\x02\xff\xff" + plain(b"x"),
    "a wrong checksum": plain(b"x")[:-1] + b"y",
    "metadata that is none": b"\0\0\0\x02\xff\xff",
    "metadata without what is required": b"\0\0\0\x00xx",
    **{
        f"{pb.CompressionType.Name(kind)}, which claims {size} bytes": plain(
            compress(kind, b"x" * 100), compression=kind, uncompressed_size=size
        )
        for kind in (pb.LZ4, pb.ZLIB, pb.ZSTD, pb.SNAPPY)
        for size in (0, 1, 101, 2**32 - 1)
    },
    **{
        f"{pb.CompressionType.Name(kind)}, of garbage": plain(ZEROS, compression=kind, uncompressed_size=2**27)
        for kind in (pb.LZ4, pb.ZLIB, pb.ZSTD, pb.SNAPPY)
    },
}


@pytest.mark.parametrize("entry", BROKEN.values(), ids=BROKEN.keys())
@on_both
async def test_an_entry_that_cannot_be_read_is_passed_over(entry: bytes) -> None:
    async with subscribed() as (_, peer, consumer):
        await deliver(peer, entry)
        assert await until_the_end(peer, consumer) == []


@pytest.mark.parametrize("uuid", ["", "x" * 100_000], ids=["none", "a long one"])
@pytest.mark.parametrize(
    ("number", "count", "total"),
    [(0, 1_000_000, BIG), (0, BIG, BIG), (5, 3, 10), (-1, 3, 10), (0, 2, 0), (0, 2, -5), (1, 2, 10), (BIG, BIG, BIG)],
)
@on_both
async def test_chunks_that_cannot_be(number: int, count: int, total: int, uuid: str) -> None:
    async with subscribed() as (_, peer, consumer):
        chunk = plain(b"x", uuid=uuid, chunk_id=number, num_chunks_from_msg=count, total_chunk_msg_size=total)
        with no_growth(1_000_000):
            for _ in range(3):
                await deliver(peer, chunk)
            assert await until_the_end(peer, consumer) == []


@pytest.mark.parametrize(("messages", "word", "words"), [(1, -1, 1), (3, 0, 1), (3, 2**62, 400_000), (3000, -1, 9)])
@on_both
async def test_a_long_ack_set_takes_no_time(messages: int, word: int, words: int) -> None:
    async with subscribed() as (_, peer, consumer):
        entry = batch_of(*[b"%d" % n for n in range(messages)])
        await deliver(peer, entry, ack_set=[word] * words)
        got = await until_the_end(peer, consumer)
        expected = [n for n in range(min(messages, words * 64)) if word >> (n % 64) & 1]
        assert got == [b"%d" % n for n in expected]


@pytest.mark.parametrize(
    "where",
    [
        {"ledgerId": 2**64 - 1, "entryId": 2**64 - 1},
        {"ledgerId": 2**63, "entryId": 0},
        {"ledgerId": 0, "entryId": 0, "partition": -(2**31)},
        {"ledgerId": 1, "entryId": 1, "partition": BIG, "batch_index": BIG, "batch_size": BIG},
        {"ledgerId": 1, "entryId": 1, "batch_index": -5, "batch_size": -5},
    ],
    ids=range(5),
)
@pytest.mark.parametrize("kind", [ConsumerType.Exclusive, ConsumerType.Shared])
@on_both
async def test_ids_out_of_range(kind: ConsumerType, where: dict[str, Any]) -> None:
    """The messages are delivered, and the application can acknowledge them, negatively too."""
    options: dict[str, Any] = {"negative_ack_redelivery_delay": 0.01, "batch_index_ack_enabled": True}
    async with subscribed(consumer_type=kind, **options) as (played, peer, consumer):
        await deliver(peer, plain(b"a"), message_id=pb.MessageIdData(**where))
        await deliver(peer, batch_of(b"b", b"c"), message_id=pb.MessageIdData(**where))
        messages = [await consumer.receive() for _ in range(3)]
        assert [message.data() for message in messages] == [b"a", b"b", b"c"]
        await consumer.acknowledge(messages[0])
        await consumer.acknowledge(messages[1])
        consumer.negative_acknowledge(messages[2])
        if kind is ConsumerType.Exclusive:
            await consumer.acknowledge_cumulative(messages[2])
        await consumer.redeliver_unacknowledged_messages()
        await played.sent(Type.REDELIVER_UNACKNOWLEDGED_MESSAGES)


@pytest.mark.parametrize("size", [BIG, -BIG])
@on_both
async def test_a_last_message_in_a_batch_of_2_to_the_31(size: int) -> None:
    """The application can use the id, and the client allocates no memory for the claimed batch size."""
    async with playing() as (played, client):
        last = pb.MessageIdData(ledgerId=1, entryId=1, batch_index=1, batch_size=size)
        played.on[Type.GET_LAST_MESSAGE_ID] = saying(Type.GET_LAST_MESSAGE_ID_RESPONSE, last_message_id=last)
        for by_index in (False, True):
            async with client.subscribe("t", "s", batch_index_ack_enabled=by_index) as consumer:
                (message_id,) = await consumer.get_last_message_ids()
                assert message_id == MessageId(1, 1, batch_index=1)
                with no_growth():
                    await consumer.acknowledge(message_id)
                    await consumer.acknowledge_cumulative(message_id)
                    await consumer.seek(message_id)
        async with client.create_reader("t", MessageId.latest, start_message_id_inclusive=True) as reader:
            assert await reader.has_message_available()


@on_both
async def test_texts_that_are_no_utf_8() -> None:
    raw = plain(b"x", producer_name="NAME", partition_key="KEYS", properties=[{"key": "PROP", "value": "TEXT"}])
    for text in (b"NAME", b"KEYS", b"PROP", b"TEXT"):
        raw = raw.replace(text, b"\xff" + text[1:])
    async with subscribed() as (_, peer, consumer):
        await deliver(peer, raw[:2] + crc32c(raw[6:]).to_bytes(4, "big") + raw[6:])
        message = await consumer.receive()
        assert (message.producer_name(), message.partition_key()) == ("\ufffdAME", "\ufffdEYS")
        assert message.properties() == {"\ufffdROP": "\ufffdEXT"}


@on_both
async def test_an_entry_that_is_answered_and_then_no_frame() -> None:
    async with subscribed() as (played, peer, consumer):
        where = pb.MessageIdData(ledgerId=7, entryId=7)
        bad = frame_of(Type.MESSAGE, b"no entry", consumer_id=0, message_id=where)
        await peer.stream.send(bad + b"\0\0\0\x08\0\0\0\x04\xff\xff\xff\xff")
        await played.sent(Type.SUBSCRIBE, 2)
        await until_the_end(played.connections[-1], consumer)


@on_both
async def test_garbage_behind_a_last_message_id() -> None:
    async with playing() as (played, client):
        where = pb.MessageIdData(ledgerId=1, entryId=1)
        for garbage in BROKEN.values():

            async def answer(peer: Peer, body: Any, garbage: bytes = garbage) -> None:
                ids = {"request_id": body.request_id, "last_message_id": where}
                await peer.say(Type.GET_LAST_MESSAGE_ID_RESPONSE, garbage, **ids)

            played.on[Type.GET_LAST_MESSAGE_ID] = answer
            async with client.subscribe("t", "s") as consumer:
                with suppress(errors.InvalidMessage):
                    await consumer.get_last_message_ids()


def _random_entry(noise: random.Random) -> bytes:
    """Return an entry with random metadata, over a payload that matches the metadata more or less."""
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=noise.getrandbits(64), publish_time=1)
    payload = noise.choice([b"", b"x" * 20, noise.randbytes(60), batch.pack([(pb.SingleMessageMetadata(), b"ab")] * 3)])
    if noise.random() < 0.5:
        metadata.num_messages_in_batch = noise.choice([0, 1, 3, 4, BIG, -1])
    if noise.random() < 0.4:
        kind = noise.randrange(5)
        metadata.compression = kind  # type: ignore[assignment]
        metadata.uncompressed_size = noise.choice([len(payload), 0, 2**32 - 1])
        payload = compress(metadata.compression, payload) if noise.random() < 0.5 else payload
    if noise.random() < 0.4:
        for _ in range(noise.randrange(3)):
            metadata.encryption_keys.add(key=noise.choice(["k", ""]), value=noise.randbytes(noise.choice([0, 9, 256])))
        metadata.encryption_param = noise.randbytes(noise.choice([0, 12, 100]))
        metadata.encryption_algo = "x"
    if noise.random() < 0.3:
        metadata.schema_version = noise.randbytes(noise.choice([0, 3, 8, 2000]))
    if noise.random() < 0.3:
        metadata.num_chunks_from_msg = noise.choice([1, 2, BIG, -1])
        metadata.chunk_id = noise.choice([0, 1, BIG, -1])
        metadata.total_chunk_msg_size = noise.choice([0, 40, BIG, -1])
        metadata.uuid = "u"
    if noise.random() < 0.3:
        metadata.marker_type = noise.randrange(40)
        metadata.null_value = noise.random() < 0.5
    if noise.random() < 0.2:
        metadata.properties.add(key="REAL_TOPIC", value="x" * noise.choice([0, 5000]))
    data = bytearray(entry.build(metadata, payload, checksum=noise.random() < 0.5))
    for _ in range(noise.choice([0, 0, 1, 5])):
        data[noise.randrange(len(data))] = noise.getrandbits(8)
    return bytes(data[: noise.randrange(len(data) + 1)] if noise.random() < 0.1 else data)


async def read_garbage(seed: int, asked: dict[str, Any]) -> None:
    noise = random.Random(seed)
    async with subscribed(**asked) as (_, peer, consumer):
        for number in range(30):
            where = pb.MessageIdData(ledgerId=1, entryId=number)
            ack_set = [noise.getrandbits(63) for _ in range(noise.choice([0, 0, 1, 3]))]
            await deliver(
                peer,
                _random_entry(noise),
                message_id=where,
                ack_set=ack_set,
                redelivery_count=noise.choice([0, 2**32 - 1]),
            )
        await until_the_end(peer, consumer)


@pytest.fixture(scope="module")
def key_reader(tmp_path_factory: pytest.TempPathFactory) -> CryptoKeyReader:
    return key_files(tmp_path_factory.mktemp("keys"), "rsa").reader


@given(st.integers(0, 2**32), st.booleans())
@settings(max_examples=6, derandomize=True)
def test_random_entries_are_messages_or_documented_errors(
    key_reader: CryptoKeyReader, seed: int, has_key: bool
) -> None:
    asked: dict[str, Any] = {"crypto_key_reader": key_reader} if has_key else {}
    run_on("trio", read_garbage, seed, asked)


@on_both
async def test_a_bomb_of_empty_messages() -> None:
    """An entry of some kilobytes holds millions of messages. The broker's maximum message size bounds their cost."""
    async with subscribed() as (_, peer, consumer):
        single = b"\0\0\0\x02" + pb.SingleMessageMetadata(payload_size=0).SerializeToString()
        payload = single * (100_000_000 // len(single))
        entry = plain(
            zlib.compress(payload),
            compression=pb.ZLIB,
            uncompressed_size=len(payload),
            num_messages_in_batch=len(payload) // len(single),
        )
        await deliver(peer, entry)
        await until_the_end(peer, consumer)
