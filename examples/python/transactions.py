import anyio

from pulsarium.client import InitialPosition, connect


async def main():
    async with (
        connect("pulsar://localhost:6650") as client,
        client.create_producer("hello-prices") as prices,
        client.create_producer("hello-invoices") as invoices,
        client.subscribe("hello-prices", "billing", initial_position=InitialPosition.Earliest) as consumer,
    ):
        await prices.send(b"17")
        async with client.transaction(timeout=10) as txn:
            message = await consumer.receive()
            await invoices.send(b"pay " + message.data(), txn=txn)
            await consumer.acknowledge(message, txn=txn)
        print(txn.state().name, txn.id())  # both happened, or, after an exception, nothing


anyio.run(main)
