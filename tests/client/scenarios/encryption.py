"""Messages with end-to-end encryption."""

from __future__ import annotations

from pulsarium.client import CompressionType, ConsumerCryptoFailureAction, MessageId
from pulsarium.client.errors import CryptoError

from .scenario import scenario
from .world import EARLIEST, World, data, opening, take

CONTENTS = [b"%d " % n * 20 for n in range(3)]


async def publish(world: World, topic: str, kind: str = "rsa", *, batched: bool = False) -> None:
    await world.send(
        topic,
        *CONTENTS,
        batching_enabled=batched,
        encryption_keys=["mine"],
        crypto_key_reader=world.keys[kind].reader,
        compression_type=CompressionType.ZSTD,
    )


@scenario(expected=["rsa", "ec"])
async def with_its_key_it_is_read(world: World) -> object:
    for kind in ("rsa", "ec"):
        for batched in (False, True):
            topic = world.topic(f"{kind}-{batched}")
            await publish(world, topic, kind, batched=batched)
            assert await world.contents(topic, crypto_key_reader=world.keys[kind].reader) == CONTENTS
    return ["rsa", "ec"]


@scenario(expected=["CryptoError", "CryptoError", "CryptoError", "end"])
async def without_a_key_it_fails(world: World) -> object:
    topic = world.topic()
    await publish(world, topic)
    await world.send(topic, b"end")
    found: list[object] = []
    async with world.client.create_reader(topic, MessageId.earliest) as reader:
        for _ in range(4):
            try:
                found.append((await reader.read_next()).data())
            except CryptoError as error:
                found.append(error)
    return found


@scenario(expected={"first": ["end"], "kept": ["end"]})
async def without_a_key_it_is_discarded(world: World) -> object:
    topic = world.topic()
    await publish(world, topic)
    await publish(world, topic, batched=True)
    await world.send(topic, b"end")
    async with world.client.subscribe(
        topic, "s", initial_position=EARLIEST, crypto_failure_action=ConsumerCryptoFailureAction.DISCARD
    ) as consumer:
        first = data(await take(consumer, 1))
    async with world.client.subscribe(topic, "s", crypto_key_reader=world.keys["rsa"].reader) as consumer:
        return {"first": first, "kept": data(await take(consumer, 1))}


@scenario(expected={"plain": "BrokerMetadataError", "encrypted": "ok"})
async def where_it_is_required(world: World) -> object:
    namespace = await world.own_namespace(encryptionRequired=True)
    topic = f"persistent://{namespace}/t"
    return {
        "plain": await opening(world.client.create_producer(topic)),
        "encrypted": await opening(
            world.client.create_producer(topic, encryption_keys=["mine"], crypto_key_reader=world.keys["rsa"].reader)
        ),
    }
