"""Shows that compaction leaves the last message of each key."""

from __future__ import annotations

from pulsarium.client import MessageId
from tests.foreign.admin import Admin

from .scenario import scenario
from .world import World, available, data, ids, until

EXAMPLE: list[tuple[str | None, bytes | None]] = [("k0", b"v0"), ("k0", b"v1"), ("k1", b"v0"), ("k1", None)]
PLAIN: list[tuple[str | None, bytes | None]] = [("a", b"1"), ("b", b"1"), ("a", b"2"), (None, b"no key"), ("c", b"1")]


async def publish(world: World, topic: str, messages: list[tuple[str | None, bytes | None]], *, batched: bool) -> None:
    options = {"batching_enabled": batched, "batching_max_publish_delay": 10.0}
    async with world.client.create_producer(topic, **options) as producer:  # type: ignore[arg-type]
        for key, content in messages:
            producer.send_nowait(content, partition_key=key)


async def compact(world: World, topic: str) -> None:
    """Compact a topic, and wait for a new compacted ledger.

    The first compaction by a real broker sometimes succeeds without doing anything. Its status says SUCCESS before
    readers see the result.
    """
    path = f"/admin/v2/{topic.replace('://', '/')}/internalStats"

    async def ledger() -> int:
        return int((await world.admin(Admin.call, "GET", path))["compactedLedger"]["ledgerId"])

    async def done() -> bool:
        if (await world.admin(Admin.compaction, topic))["status"] != "RUNNING" and await ledger() == before:
            await world.admin(Admin.compact, topic)
        return await ledger() != before

    before = await ledger()
    await until(done)


async def compacted(world: World, topic: str) -> dict[str, object]:
    async with world.client.create_reader(topic, MessageId.earliest, read_compacted=True) as reader:
        (last,) = await reader.get_last_message_ids()
        messages = await available(reader)
        return {
            "messages": [[message.partition_key(), message.data()] for message in messages],
            "ids": ids(messages),
            "last": last,
        }


@scenario(
    expected={
        "compacted": {
            "messages": [["a", "2"], ["c", "1"]],
            "ids": ["0:2", "0:4"],
            "last": "0:4",
        },
        "all": 5,
    }
)
async def single_messages(world: World) -> object:
    topic = world.topic()
    await publish(world, topic, [*PLAIN, ("b", None)], batched=False)
    await compact(world, topic)
    return {"compacted": await compacted(world, topic), "all": len(await world.contents(topic)) - 1}


@scenario(expected={"messages": [["k0", "v1"]], "ids": ["0:0:1"], "last": "0:0:1"})
async def a_batch(world: World) -> object:
    topic = world.topic()
    await publish(world, topic, EXAMPLE, batched=True)
    await compact(world, topic)
    return await compacted(world, topic)


@scenario(expected={"before": ["1", "2", "3"], "after": ["2", "3"]})
async def only_who_asks_for_it(world: World) -> object:
    topic = world.topic()
    await publish(world, topic, [("a", b"1"), ("a", b"2")], batched=False)
    await compact(world, topic)
    await publish(world, topic, [("a", b"3")], batched=False)
    async with world.client.create_reader(topic, MessageId.earliest, read_compacted=True) as reader:
        return {"before": await world.contents(topic), "after": data(await available(reader))}
