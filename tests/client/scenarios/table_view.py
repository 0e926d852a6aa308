"""A topic as a table."""

from __future__ import annotations

from pulsarium.client import Producer, TableView

from .compaction import compact
from .scenario import scenario
from .world import World


async def put(producer: Producer[bytes], key: str | None, content: bytes | None) -> None:
    await producer.send(content, partition_key=key)


def table(view: TableView[bytes]) -> list[list[object]]:
    return [[key, value] for key, value in sorted(view.items())]


@scenario(
    expected={"at first": [["a", "2"], ["b", "1"]], "later": [["a", "3"], ["c", "1"]], "size": 2, "has": [True, False]}
)
async def what_a_topic_says(world: World) -> object:
    topic = world.topic()
    async with world.client.create_producer(topic) as producer:
        for key, content in (("a", b"1"), ("b", b"1"), ("a", b"2"), (None, b"no key")):
            await put(producer, key, content)
        async with world.client.create_table_view(topic) as view:
            first = table(view)
            await put(producer, "a", b"3")
            await put(producer, "b", None)
            await put(producer, "c", b"1")
            await view.refresh()
            return {"at first": first, "later": table(view), "size": len(view), "has": ["a" in view, "b" in view]}


@scenario(expected=[["a", "2"], ["b", "1"], ["c", "1"]])
async def of_a_compacted_topic(world: World) -> object:
    topic = world.topic()
    async with world.client.create_producer(topic) as producer:
        for key, content in (("a", b"1"), ("b", b"1"), ("a", b"2")):
            await put(producer, key, content)
        await compact(world, topic)
        await put(producer, "c", b"1")
        async with world.client.create_table_view(topic) as view:
            return table(view)
