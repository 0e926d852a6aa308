"""Stream consumers of the scalable topics of a namespace, against our broker."""

from __future__ import annotations

import anyio
import pytest

from pulsarium.client import InitialPosition, NamespaceStreamConsumer
from pulsarium.proto.topic_name import TopicName
from tests.client.scalable.started import World, world

Earliest = InitialPosition.Earliest
ALL = "public/default"

pytestmark = pytest.mark.usefixtures("autojump_clock")


def name_of(topic: str) -> str:
    return f"topic://public/default/{topic}"


def make(found: World, topic: str, **properties: str) -> None:
    found.broker.cluster.scalable.create(TopicName.parse(name_of(topic)), 2, properties)
    found.broker.turn.finish()


async def publish(found: World, topic: str, *values: bytes) -> None:
    async with found.client.scalable.create_producer(name_of(topic)) as producer:
        for value in values:
            await producer.send(value, partition_key="k")


async def texts(consumer: NamespaceStreamConsumer[bytes], count: int) -> list[tuple[str, bytes]]:
    """Return the topics and contents of the next messages, without acknowledging them."""
    with anyio.fail_after(60):
        messages = [await consumer.receive() for _ in range(count)]
    return [(message.topic_name().rpartition("/")[2], message.data()) for message in messages]


async def test_a_namespace_consumer_receives_only_from_topics_with_the_properties() -> None:
    async with world(0) as found:
        for topic, team in (("a", "x"), ("b", "x"), ("c", "y")):
            make(found, topic, team=team)
            await publish(found, topic, b"m")
        consume = found.client.scalable.subscribe_namespace(
            ALL, "s", property_filters={"team": "x"}, initial_position=Earliest
        )
        async with consume as consumer:
            assert sorted(await texts(consumer, 2)) == [("a", b"m"), ("b", b"m")]
            assert consumer.topics() == [name_of("a"), name_of("b")]


async def test_a_topic_that_comes_later_is_consumed_from_its_first_message() -> None:
    async with world(0) as found, found.client.scalable.subscribe_namespace(ALL, "s") as consumer:
        make(found, "late")
        await publish(found, "late", b"1", b"2")
        assert await texts(consumer, 2) == [("late", b"1"), ("late", b"2")]


async def test_a_topic_that_goes_is_left_and_another_of_its_name_is_followed() -> None:
    async with world(0) as found:
        make(found, "a")
        async with found.client.scalable.subscribe_namespace(ALL, "s") as consumer:
            found.broker.cluster.scalable.delete(TopicName.parse(name_of("a")), force=True)
            found.broker.turn.finish()
            while consumer.topics():  # noqa: ASYNC110  # the consumer has no event for this
                await anyio.sleep(0.1)
            make(found, "a")
            await publish(found, "a", b"new")
            assert await texts(consumer, 1) == [("a", b"new")]


async def test_an_acknowledgement_covers_the_earlier_messages_of_all_topics() -> None:
    async with world(0) as found:
        for topic in ("a", "b"):
            make(found, topic)
            await publish(found, topic, b"1", b"2")
        subscribe = found.client.scalable.subscribe_namespace
        async with subscribe(ALL, "s", initial_position=Earliest, ack_receipt_enabled=True) as consumer:
            with anyio.fail_after(60):
                messages = [await consumer.receive() for _ in range(4)]
            await consumer.acknowledge_cumulative(messages[2])
            left = (messages[3].topic_name().rpartition("/")[2], messages[3].data())
        async with subscribe(ALL, "s") as consumer:
            assert await texts(consumer, 1) == [left]
