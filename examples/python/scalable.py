"""Publish to a scalable topic, and consume its messages in the order of their keys."""

import anyio

import pulsarium.client as pulsar

TOPIC = "topic://public/default/orders"


async def main() -> None:
    async with pulsar.connect("pulsar://localhost:6650") as client:
        async with client.scalable.create_producer(TOPIC) as producer:
            for state in ("created", "paid", "shipped"):
                await producer.send(state.encode(), partition_key="order-1")
        async with client.scalable.subscribe_stream(
            TOPIC, "billing", initial_position=pulsar.InitialPosition.Earliest
        ) as consumer:
            for _ in range(3):
                message = await consumer.receive()
                print(message.partition_key(), message.value().decode())
                await consumer.acknowledge_cumulative(message)


anyio.run(main)
