import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pulsar.asyncio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

TOPIC = os.environ.get("ORDERS_TOPIC", "orders")


async def bill(consumer: pulsar.asyncio.Consumer, billed: list[str]) -> None:
    """Bill orders until the service ends."""
    while True:
        message = await consumer.receive()
        billed.append(message.data().decode())
        await consumer.acknowledge(message)


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[dict[str, object]]:
    """Open one client, one producer and one consumer for the whole life of the service."""
    client = pulsar.asyncio.Client(os.environ["PULSAR_SERVICE_URL"])
    producer = await client.create_producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "billing")
    billed: list[str] = []
    task = asyncio.create_task(bill(consumer, billed))
    yield {"producer": producer, "billed": billed}
    task.cancel()
    await client.close()


async def order(request: Request) -> JSONResponse:
    message_id = await request.state.producer.send(await request.body())
    return JSONResponse({"stored": str(message_id)}, status_code=201)


async def billed(request: Request) -> JSONResponse:
    return JSONResponse(request.state.billed)


app = Starlette(
    lifespan=lifespan, routes=[Route("/orders", order, methods=["POST"]), Route("/billed", billed, methods=["GET"])]
)
