"""The client's asyncio interface, which makes every call through callbacks."""

from __future__ import annotations

import asyncio

import pulsar
import pulsar.asyncio

from ..broker_process import Address
from .traffic import payloads


def test_publish_and_consume(broker: Address, topic: str) -> None:
    async def run() -> None:
        client = pulsar.asyncio.Client(broker.service_url)
        consumer = await client.subscribe(topic, "s")
        producer = await client.create_producer(topic)
        sent = payloads(100)
        await asyncio.gather(*(producer.send(payload) for payload in sent))
        got = []
        for _ in sent:
            message = await asyncio.wait_for(consumer.receive(), 30)
            await consumer.acknowledge(message)
            got.append(message.data())
        assert got == sent
        await consumer.unsubscribe()
        await client.close()

    asyncio.run(run())
