"""Consumers and readers over WebSocket: acknowledgements, redelivery, permits, patterns."""

from __future__ import annotations

import base64
import json
import threading
from typing import Any
from urllib.parse import quote

import pytest
import trio

from pulsarium.broker.config import Config, profile_of
from pulsarium.broker.web.websocket import consumer as websocket_consumer
from pulsarium.broker.web.websocket import decoding
from pulsarium.proto.compression import compress, decompress
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.web.http.served import answer
from tests.broker.web.websocket.talk import (
    CONSUMER,
    PRODUCER,
    READER,
    TOPIC,
    Client,
    Talk,
    message,
    text_of,
    websockets,
)
from tests.broker.wire import Bed, plain

NAME = TopicName.parse("persistent://public/default/t")
BATCHES = "batchingEnabled=true&batchingMaxMessages=3&batchingMaxPublishDelay=60000"


async def acknowledge(consumer: Talk, frame: dict[str, Any], **fields: str) -> None:
    await consumer.send({"messageId": frame["messageId"], **fields})


def subscription(client: Client, name: str = "sub") -> Any:
    return client.broker.topics.loaded[str(NAME)].subscriptions[name]


async def until_unloaded(client: Client) -> None:
    client.broker.turn.begin()
    client.broker.topics.unload(NAME)
    client.broker.turn.finish()


async def test_each_message_of_a_batch_is_acknowledged_by_itself() -> None:
    async with websockets(Config(acknowledgmentAtBatchIndexLevelEnabled=True)) as client:
        consumer = await client.talk(CONSUMER)
        producer = await client.talk(PRODUCER, BATCHES)
        for text in "abc":
            await producer.send(message(text))
        frames = [await consumer.frame() for _ in "abc"]
        await acknowledge(consumer, frames[1])
        await consumer.alive()
        await consumer.stream.aclose()
        again = await client.talk(CONSUMER)
        while again.status == 409:
            again = await client.talk(CONSUMER)
        assert await again.texts(2) == ["a", "c"]


async def test_a_negative_acknowledgement_waits_for_the_delay_of_the_query(autojump_clock: object) -> None:
    async with websockets() as client:
        consumer = await client.talk(CONSUMER, "subscriptionType=Shared&negativeAckRedeliveryDelay=7000")
        await client.publish("a")
        began = trio.current_time()
        await acknowledge(consumer, await consumer.frame(), type="negativeAcknowledge")
        again = await consumer.frame()
        assert again["redeliveryCount"] == 1
        assert trio.current_time() - began == pytest.approx(7, abs=1)


async def test_a_dead_letter_that_cannot_be_published_is_tried_again_after_a_pause(
    autojump_clock: object, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket_consumer, "LETTER_SECONDS", 5)
    query = (
        f"subscriptionType=Shared&maxRedeliverCount=1&negativeAckRedeliveryDelay=1000&deadLetterTopic={quote('a:/b')}"
    )
    async with websockets() as client:
        consumer = await client.talk(CONSUMER, query)
        await client.publish("bad")
        for _ in range(2):
            await acknowledge(consumer, await consumer.frame(), type="negativeAcknowledge")
        await trio.sleep(2)
        for times in range(1, 4):
            assert caplog.text.count("a dead letter was not published") == times
            await trio.sleep(5)
        assert subscription(client).has_backlog


async def test_a_batch_that_cannot_be_read_is_skipped(caplog: pytest.LogCaptureFixture) -> None:
    async with websockets() as client, trio.open_nursery() as nursery:
        consumer = await client.talk(CONSUMER)
        wire = await Bed(client.broker, nursery).connect()
        await wire.producer()
        await wire.publish(plain(b"no batch", num_messages_in_batch=3), plain(b"good"))
        assert await consumer.texts(1) == ["good"]
        assert "an entry cannot be read" in caplog.text
        nursery.cancel_scope.cancel()


async def test_with_pip_491_an_unreadable_batch_gives_all_its_permits_back() -> None:
    async with websockets(profile=profile_of("pip", pip=[491])) as client, trio.open_nursery() as nursery:
        consumer = await client.talk(CONSUMER, "receiverQueueSize=2")
        wire = await Bed(client.broker, nursery).connect()
        await wire.producer()
        await wire.publish(*[plain(b"no batch", num_messages_in_batch=3)] * 2, plain(b"good"))
        assert await consumer.texts(1) == ["good"]
        nursery.cancel_scope.cancel()


async def test_permits_bound_a_client_that_pulls() -> None:
    async with websockets() as client:
        consumer = await client.talk(CONSUMER, "pullMode=true")
        await client.publish(*"abcd")
        await consumer.alive()
        await consumer.send({"type": "permit", "permitMessages": 3})
        assert await consumer.texts(3) == ["a", "b", "c"]
        await consumer.alive()


async def test_a_reader_goes_on_behind_its_last_message_after_an_unload() -> None:
    async with websockets() as client:
        await client.publish("a", "b")
        reader = await client.talk(READER, "messageId=earliest")
        assert await reader.texts(2) == ["a", "b"]
        await until_unloaded(client)
        await client.publish("c")
        assert await reader.texts(1) == ["c"]


async def test_a_reader_repeats_no_message_after_an_unload_while_another_one_waits_for_its_turn() -> None:
    async with websockets() as client:
        await client.publish("a", "b", "c")
        reader = await client.talk(READER, "messageId=earliest&receiverQueueSize=1")
        assert await reader.texts(1) == ["a"]
        await reader.alive()  # the broker has sent "b" to the service, which waits for the answer to "a"
        await until_unloaded(client)
        found = []
        for _ in range(2):
            await reader.send({"messageId": "a"})
            found += await reader.texts(1)
        assert found == ["b", "c"]


async def test_a_thread_takes_large_entries_apart_and_keeps_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of the event loop must not take as long as 128 MiB of zeros or 60,000 messages."""
    threads: list[bool] = []

    def noted(kind: pb.CompressionType, data: bytes, size: int) -> bytes:
        threads.append(threading.current_thread() is threading.main_thread())
        return decompress(kind, data, size)

    monkeypatch.setattr(decoding, "decompress", noted)
    size = (1 << 20) + 1
    async with websockets() as client, trio.open_nursery() as nursery:
        consumer = await client.talk(CONSUMER)
        wire = await Bed(client.broker, nursery).connect()
        await wire.producer()
        zeros = plain(compress(pb.ZLIB, bytes(size)), compression=pb.ZLIB, uncompressed_size=size)
        await wire.publish(plain(b"a"), zeros, plain(b"b"), zeros, plain(b"c"))
        texts = [base64.b64decode((await consumer.frame())["payload"]) for _ in range(5)]
        assert texts == [b"a", bytes(size), b"b", bytes(size), b"c"]
        nursery.cancel_scope.cancel()
    assert threads == [True, False, True, False, True]


async def test_a_reader_may_start_inside_a_batch() -> None:
    async with websockets() as client:
        producer = await client.talk(PRODUCER, BATCHES)
        for text in "abc":
            await producer.send(message(text))
        first = await producer.frame()
        reader = await client.talk(READER, f"messageId={quote(first['messageId'])}")
        assert await reader.texts(2) == ["b", "c"]


async def test_a_deleted_topic_ends_its_consumer() -> None:
    async with websockets(Config(allowAutoTopicCreation=False)) as client:
        client.broker.topics.create(NAME)
        consumer = await client.talk(CONSUMER)
        client.broker.turn.begin()
        client.broker.topics.delete(NAME, force=True)
        client.broker.turn.finish()
        code, _ = await consumer.closing()
        assert code == 1011


@pytest.mark.parametrize("pattern", ["t-.*", r"t-\p{Digit}", "(?!x).*"])
async def test_a_pattern_follows_new_topics(pattern: str) -> None:
    async with websockets() as client:
        pattern = quote(f"persistent://public/default/{pattern}")
        consumer = await client.talk("v3/consumer/sub", f"topicsPattern={pattern}&subscriptionInitialPosition=Earliest")
        await client.publish("a", path=f"{PRODUCER}-1")
        assert await consumer.texts(1) == ["a"]


@pytest.mark.parametrize(
    "config", [Config(enableBrokerTopicListWatcher=False), Config(subscriptionPatternMaxLength=10)]
)
async def test_a_pattern_that_no_watcher_follows_finds_new_topics_later(
    config: Config, autojump_clock: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pulsarium.broker.web.websocket.consumer.DISCOVERY_SECONDS", 2.0)
    async with websockets(config) as client:
        await client.publish("old", path=f"{PRODUCER}-1")
        await client.publish("other", path=f"{PRODUCER}x")
        pattern = quote("persistent://public/default/t-.*")
        consumer = await client.talk("v3/consumer/sub", f"topicsPattern={pattern}&subscriptionInitialPosition=Earliest")
        assert await consumer.texts(1) == ["old"]
        await client.publish("new", path=f"{PRODUCER}-2")
        assert await consumer.texts(1) == ["new"]
        client.broker.turn.begin()
        client.broker.topics.delete(TopicName.parse("persistent://public/default/t-1"), force=True)
        client.broker.turn.finish()
        await client.publish("newer", path=f"{PRODUCER}-3")
        assert await consumer.texts(1) == ["newer"]
        await consumer.alive()


async def test_a_message_names_all_keys_of_its_encryption() -> None:
    keys = {name: {"keyValue": base64.b64encode(name.encode()).decode(), "metadata": {"of": name}} for name in "ab"}
    query = f"encryptionKeys={quote(base64.b64encode(json.dumps(keys).encode()).decode())}"
    async with websockets() as client:
        consumer = await client.talk(CONSUMER, "cryptoFailureAction=CONSUME")
        parameter = base64.b64encode(bytes(12)).decode()
        await client.publish("secret", query=query, encryptionParam=parameter)
        found = await consumer.frame()
        assert text_of(found) == "secret"
        assert (found["encryptionContext"]["keys"], found["encryptionContext"]["param"]) == (keys, parameter)


async def test_proxy_stats_show_the_websockets_of_a_topic() -> None:
    async with websockets() as client:
        await client.talk(CONSUMER)
        producer = await client.talk(PRODUCER)
        await producer.ask(message("a"))
        async with await client.http.connect() as stream:
            path = f"/admin/v2/proxy-stats/{TOPIC}/stats"
            _, body = await answer(stream, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        found = json.loads(body)
        assert [each["numberOfMsgPublished"] for each in found["producerStats"]] == [1]
        assert [each["subscriptionName"] for each in found["consumerStats"]] == ["sub"]


async def test_a_message_id_that_claims_a_huge_batch_costs_nothing() -> None:
    async with websockets() as client:
        consumer = await client.talk(CONSUMER)
        await consumer.send({"messageId": "CAAQACAAMP////8H"})
        await consumer.alive()
