import anyio

from pulsarium.client import InitialPosition, connect


async def main():
    async with (
        connect("pulsar://localhost:6650") as client,
        client.create_producer("hello-async") as producer,
        client.subscribe("hello-async", "readme", initial_position=InitialPosition.Earliest) as consumer,
    ):
        message_id = await producer.send(b"Hello from an async client", partition_key="greeting")
        print("published at", message_id)
        message = await consumer.receive()
        print(message.data().decode())
        await consumer.acknowledge(message)


anyio.run(main)  # or anyio.run(main, backend="trio")
