"""Messages that the broker cannot read."""

from __future__ import annotations

from pulsarium.client import CompressionType, ConsumerCryptoFailureAction, MessageId
from pulsarium.client.errors import CryptoError

from .scenario import scenario
from .world import EARLIEST, World, available, data, opening, take

CONTENTS = [b"%d " % n * 20 for n in range(3)]
SAME, OTHER = "same", "another"


async def publish(world: World, topic: str, kind: str = "rsa", *, batched: bool = False) -> None:
    await world.send(
        topic,
        *CONTENTS,
        batching_enabled=batched,
        encryption_keys=["mine"],
        crypto_key_reader=world.keys[kind].reader,
        compression_type=CompressionType.ZSTD,
    )


@scenario(expected={"single": "same", "batched": "same"})
async def with_an_rsa_key(world: World) -> object:
    return await with_key(world, "rsa")


@scenario(expected={"single": "same", "batched": "same"})
async def with_an_ec_key(world: World) -> object:
    return await with_key(world, "ec")


async def with_key(world: World, kind: str) -> dict[str, str]:
    found = {}
    for name in ("single", "batched"):
        topic = world.topic(name)
        await publish(world, topic, kind, batched=name == "batched")
        read = await world.contents(topic, crypto_key_reader=world.keys[kind].reader)
        found[name] = SAME if read == CONTENTS else OTHER
    return found


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


@scenario(expected={"entries": 4, "batch indexes": [-1, -1, -1, -1], "readable": False})
async def without_a_key_it_is_consumed_as_it_is(world: World) -> object:
    topic = world.topic()
    await publish(world, topic)
    await publish(world, topic, batched=True)
    async with world.client.create_reader(
        topic, MessageId.earliest, crypto_failure_action=ConsumerCryptoFailureAction.CONSUME
    ) as reader:
        messages = await available(reader)
        return {
            "entries": len(messages),
            "batch indexes": [message.message_id().batch_index for message in messages],
            "readable": any(content in message.data() for content in CONTENTS for message in messages),
        }


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
