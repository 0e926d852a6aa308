"""Shows how a client finds its broker, and what happens to it when that broker goes away."""

from __future__ import annotations

from pulsarium.client import MessageId, connect
from tests.foreign.admin import Admin

from .scenario import scenario
from .world import World, data, take


@scenario(expected={"data": ["a", "b"], "partitions": [0, 1]})
async def looking_up_over_http(world: World) -> object:
    topic, parts = world.topic(), await world.partitioned(2, "p")
    async with connect(world.address.admin_url) as client:
        async with client.subscribe(topic, "s") as consumer, client.create_producer(topic) as producer:
            await producer.send(b"a")
            await producer.send(b"b")
            contents = data(await take(consumer, 2))
        async with client.create_producer(parts) as producer:
            places = [(await producer.send(b"x")).partition for _ in range(2)]
    return {"data": contents, "partitions": sorted(places)}


@scenario(expected={"order": True, "all": 60})
async def what_is_sent_during_unloads_stays_in_order(world: World) -> object:
    topic = world.topic()
    # Messages that arrive during an unload may end the connection.
    async with world.connect() as client, client.create_producer(topic, batching_max_messages=4) as producer:
        for n in range(60):
            producer.send_nowait(b"%02d" % n)
            if n % 20 == 10:
                await world.admin(Admin.unload, topic)
        await producer.flush()
    contents = list(dict.fromkeys(await world.contents(topic)))
    return {"order": contents == sorted(contents), "all": len(contents)}


@scenario(expected={"names": ["p-partition-0", "p-partition-1", "p-partition-2"], "plain": ["t"]})
async def the_partitions_of_a_topic(world: World) -> object:
    parts = await world.partitioned(3, "p")
    await world.send(world.topic(), b"x")
    return {
        "names": await world.client.get_topic_partitions(parts),
        "plain": await world.client.get_topic_partitions(world.topic()),
    }


@scenario(expected={"entries": 3, "sizes": [1, 2, 1], "ids": ["0:0", "0:1", "0:2"]})
async def entries_as_they_are(world: World) -> object:
    topic = world.topic()
    await world.send(topic, b"a")
    await world.send(topic, b"b", b"c", batching_enabled=True)
    await world.send(topic, b"d")
    async with world.client.create_raw_reader(topic, MessageId.earliest) as reader:
        entries = []
        while await reader.has_message_available():
            entries.append(await reader.read_next())
    return {
        "entries": len(entries),
        "sizes": [entry.metadata.num_messages_in_batch for entry in entries],
        "ids": [entry.message_id for entry in entries],
    }
