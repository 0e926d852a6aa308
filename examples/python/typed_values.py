from dataclasses import dataclass

import anyio

from pulsarium.client import JsonSchema, connect


@dataclass
class Order:
    customer: str
    amount: int
    note: str | None = None


async def main():
    async with connect("pulsar://localhost:6650") as client:
        async with client.create_producer("hello-orders", schema=JsonSchema(Order)) as producer:
            await producer.send(Order("Ada", 3), partition_key="Ada")
            await producer.send(Order("Ada", 5, "with care"), partition_key="Ada")
        async with client.create_table_view("hello-orders", schema=JsonSchema(Order)) as newest:
            print(newest["Ada"].amount, "for Ada,", newest["Ada"].note)


anyio.run(main)
