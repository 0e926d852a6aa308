"""Programs whose entries contradict their metadata or their SEND."""

from __future__ import annotations

from pulsarium.broker.config import Config
from pulsarium.proto.compression import compress
from pulsarium.proto.generated import PulsarApi_pb2 as pb

from .program import NOW, Client, batch, breaks, given, message, send


@breaks("checksum-wrong")
async def _(client: Client, mended: bool) -> None:
    data = message()
    await send(await client.producing(), 0, data if mended else data[:-1] + b"!")


@breaks("entry-unreadable")
async def _(client: Client, mended: bool) -> None:
    await send(await client.producing(), 0, message() if mended else b"\x00\x00\x00\xff")


@breaks("num-messages-mismatch")
async def _(client: Client, mended: bool) -> None:
    await send(await client.producing(), 0, batch(), num_messages=3 if mended else 1)


@breaks("sequence-mismatch")
async def _(client: Client, mended: bool) -> None:
    await send(await client.producing(), 7, message(7 if mended else 0))


@breaks("producer-name-mismatch")
async def _(client: Client, mended: bool) -> None:
    await send(await client.producing(), 0, message(producer_name="p" if mended else "me"))


@breaks("publish-time-unit")
async def _(client: Client, mended: bool) -> None:
    await send(await client.producing(), 0, message(publish_time=NOW if mended else NOW // 1000))


@breaks("deliver-at-unit")
async def _(client: Client, mended: bool) -> None:
    await send(await client.producing(), 0, message(deliver_at_time=NOW if mended else 5000))


@breaks("message-too-big", lambda: Config(maxMessageSize=10_000))
async def _(client: Client, mended: bool) -> None:
    await send(await client.producing(), 0, message(payload=bytes(10_000 if mended else 10_001)))


@breaks("compression-wrong")
async def _(client: Client, mended: bool) -> None:
    packed = compress(pb.ZLIB, b"hello")
    data = message(payload=packed, compression=pb.ZLIB, uncompressed_size=5 if mended else len(packed))
    await send(await client.producing(), 0, data)


@breaks("batch-unreadable")
async def _(client: Client, mended: bool) -> None:
    data = batch() if mended else message(payload=b"three", num_messages_in_batch=3)
    await send(await client.producing(), 0, data, num_messages=3)


@breaks("key-not-base64")
async def _(client: Client, mended: bool) -> None:
    data = message(partition_key="a2V5" if mended else "my key!", partition_key_b64_encoded=True)
    await send(await client.producing(), 0, data)


@breaks("null-with-payload")
async def _(client: Client, mended: bool) -> None:
    await send(await client.producing(), 0, message(payload=b"" if mended else b"x", null_value=True))


@breaks("marker-from-client")
async def _(client: Client, mended: bool) -> None:
    await send(await client.producing(), 0, message(**given(not mended, marker_type=21)))


@breaks("encryption-incomplete")
async def _(client: Client, mended: bool) -> None:
    nonce = given(mended, encryption_param=b"0123456789ab")
    await send(await client.producing(), 0, message(encryption_keys=[{"key": "k", "value": b"v"}], **nonce))


def _chunk(number: int, payload: bytes = b"four", total: int = 12) -> bytes:
    return message(0, payload, uuid="u", num_chunks_from_msg=3, total_chunk_msg_size=total, chunk_id=number)


@breaks("chunk-incomplete")
async def _(client: Client, mended: bool) -> None:
    wire = await client.producing()
    data = _chunk(0) if mended else message(uuid="u", num_chunks_from_msg=3, chunk_id=0)
    await send(wire, 0, data, is_chunk=True)


@breaks("chunk-flag")
async def _(client: Client, mended: bool) -> None:
    await send(await client.producing(), 0, _chunk(0), is_chunk=mended)


@breaks("chunk-order")
async def _(client: Client, mended: bool) -> None:
    wire = await client.producing()
    for number in (0, 1, 2) if mended else (0, 2):
        await send(wire, 0, _chunk(number), is_chunk=True)


@breaks("chunk-total-wrong")
async def _(client: Client, mended: bool) -> None:
    wire = await client.producing()
    for number in range(3):
        await send(wire, 0, _chunk(number, total=12 if mended else 100), is_chunk=True)
