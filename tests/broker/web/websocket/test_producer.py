"""Producers over WebSocket: batches, limits, and messages that cannot be published."""

from __future__ import annotations

import pytest
import trio

from pulsarium.broker.config import Config
from pulsarium.proto.topic_name import TopicName
from tests.broker.held import HeldStorage
from tests.broker.web.websocket.talk import CONSUMER, PRODUCER, message, websockets

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


async def test_a_message_beyond_the_largest_batch_goes_into_the_next_one() -> None:
    async with websockets() as client:
        consumer, producer = await client.talk(CONSUMER), await client.talk(PRODUCER, BATCHES)
        texts = ["a" * 100_000, "b" * 100_000]
        for text in texts:
            await producer.send(message(text))
        assert (await producer.frame())["result"] == "ok"
        assert await consumer.texts(1) == texts[:1]


async def test_a_delayed_message_is_not_batched() -> None:
    async with websockets() as client:
        producer = await client.talk(PRODUCER, BATCHES)
        await producer.send(message("a"))
        await producer.send(message("b", deliverAfterMs=1))
        assert [(await producer.frame())["result"] for _ in "ab"] == ["ok", "ok"]


async def test_a_message_over_the_largest_size_is_refused() -> None:
    async with websockets(Config(maxMessageSize=1000)) as client:
        producer = await client.talk(PRODUCER)
        refused = await producer.ask(message("a" * 1001))
        assert refused["result"] == "send-error:8"
        assert refused["errorMsg"].endswith("sends a message with 1001 bytes that exceeds 1000 bytes")
        assert (await producer.ask(message("a" * 1000)))["result"] == "ok"


async def test_each_message_without_a_receipt_fails_after_its_own_timeout(autojump_clock: object) -> None:
    store = HeldStorage()
    async with websockets(storage=store) as client:
        producer = await client.talk(PRODUCER, "sendTimeoutMillis=20000")
        store.holding = True
        began = trio.current_time()
        await producer.send(message("a", context="a"))
        await producer.alive()
        await trio.sleep(15)
        await producer.send(message("b", context="b"))
        for context, seconds in (("a", 20), ("b", 35)):
            failed = await producer.frame()
            assert (failed["result"], failed["context"]) == ("send-error:8", context)
            assert failed["errorMsg"].endswith("within given timeout")
            assert trio.current_time() - began == pytest.approx(seconds, abs=1)
        store.release()


async def test_messages_fail_once_their_topic_may_not_be_created_again(autojump_clock: object) -> None:
    async with websockets() as client:
        producer, broker = await client.talk(PRODUCER), client.broker
        assert (await producer.ask(message("a")))["result"] == "ok"
        broker.turn.begin()
        broker.metadata.put_namespace(
            "public/default", {"autoTopicCreationOverride": {"allowAutoTopicCreation": False}}
        )
        broker.topics.delete(TopicName.parse("persistent://public/default/t"), force=True)
        broker.turn.finish()
        for _ in range(2):
            failed = await producer.ask(message("b"))
            assert failed["result"] == "send-error:8"
            assert "persistent://public/default/t" in failed["errorMsg"]


async def test_a_producer_and_a_consumer_go_on_after_the_end_of_their_connection() -> None:
    async with websockets() as client:
        consumer, producer = await client.talk(CONSUMER), await client.talk(PRODUCER)
        assert (await producer.ask(message("a")))["result"] == "ok"
        assert await consumer.texts(1) == ["a"]
        for session in list(client.broker.sessions):
            session.close("for the test")
        assert (await producer.ask(message("b")))["result"] == "ok"
        assert sorted(await consumer.texts(2)) == ["a", "b"]
