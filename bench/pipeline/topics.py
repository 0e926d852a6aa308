"""Fill topics with numbered messages."""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import repeat

from bench.brokers import Broker
from pulsarium.client import Client, connect, connect_admin

BATCH = 1000


async def create(broker: Broker, topic: str, partitions: int) -> None:
    """Create a partitioned topic. A topic without partitions needs no creation."""
    if partitions > 1:
        async with connect_admin(broker.admin_url) as admin:
            await admin.topics.create_partitioned_topic(topic, partitions)


async def fill(broker: Broker, topic: str, messages: int, size: int, partitions: int) -> None:
    """Create a topic, and publish messages of `size` bytes, the same number to each partition."""
    await create(broker, topic, partitions)
    names = [f"{topic}-partition-{number}" for number in range(partitions)] if partitions > 1 else [topic]
    async with connect(broker.service_url) as client:
        for number, name in enumerate(names):
            await _publish(client, name, repeat(None, len(range(number, messages, partitions))), size)


async def fill_keyed(broker: Broker, topic: str, messages: int, size: int, keys: int) -> None:
    """Publish messages with random keys, of which there are `keys`."""
    chance = random.Random(topic)
    async with connect(broker.service_url) as client:
        await _publish(client, topic, (f"key-{chance.randrange(keys)}" for _ in range(messages)), size)


async def _publish(client: Client, topic: str, keys: Iterable[str | None], size: int) -> None:
    async with client.create_producer(topic, batching_max_messages=BATCH, max_pending_messages=20 * BATCH) as producer:
        for number, key in enumerate(keys):
            await producer.submit(b"%0*d" % (size, number), partition_key=key)
        await producer.flush()
