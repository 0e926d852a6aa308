"""Producers over WebSocket: batches and limits."""

from __future__ import annotations

from tests.broker.websocket.talk import CONSUMER, PRODUCER, message, websockets

BATCHES = "batchingEnabled=true&batchingMaxMessages=3&batchingMaxPublishDelay=60000"


async def test_a_batch_is_sent_when_its_delay_has_passed(autojump_clock: object) -> None:
    async with websockets() as client:
        consumer = await client.talk(CONSUMER)
        producer = await client.talk(PRODUCER, "batchingEnabled=true&batchingMaxPublishDelay=500")
        for text in "ab":
            await producer.send(message(text))
        assert [(await producer.frame())["result"] for _ in "ab"] == ["ok", "ok"]
        assert await consumer.texts(2) == ["a", "b"]


async def test_the_query_bounds_the_messages_that_wait_for_a_batch() -> None:
    async with websockets() as client:
        producer = await client.talk(PRODUCER, f"{BATCHES}&maxPendingMessages=1")
        await producer.send(message("a"))
        refused = await producer.ask(message("b"))
        assert (refused["result"], refused["errorMsg"]) == ("send-error:8", "Producer send queue is full")
