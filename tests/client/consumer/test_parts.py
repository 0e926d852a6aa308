"""Consumers and readers of several topics: partitions, topics by name, topics by pattern."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from trio.testing import MockClock

from pulsarium.broker.config import Config
from pulsarium.broker.model.errors import TopicNotFoundError
from pulsarium.client import Client, ConsumerType, InitialPosition, Message, MessageId, errors
from pulsarium.client.consumer.options import RegexSubscriptionMode
from pulsarium.proto.topic_name import TopicName
from tests.client.consumer.started import nothing_more, received
from tests.client.in_process import InProcess, in_process

TOPIC = "persistent://public/default/parts"
EARLIEST: dict[str, Any] = {"initial_position": InitialPosition.Earliest}


async def publish(client: Client, topic: str, *contents: bytes) -> list[MessageId]:
    async with client.create_producer(topic, batching_enabled=False) as producer:
        return [await producer.send(content) for content in contents]


def contents(messages: Sequence[Message]) -> list[bytes]:
    return sorted(message.data() for message in messages)


NINE = [b"%d" % n for n in range(9)]


async def test_all_partitions_at_once(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        inside.partitioned(TOPIC, 3)
        async with client.subscribe("parts", "s", **EARLIEST) as consumer:
            assert (consumer.topic(), consumer.subscription_name()) == (TOPIC, "s")
            ids = await publish(client, "parts", *NINE)
            messages = await received(consumer, 9)
            assert contents(messages) == NINE
            assert {message.message_id() for message in messages} == set(ids)
            assert {message.topic_name() for message in messages} == {f"{TOPIC}-partition-{n}" for n in range(3)}
            last = await consumer.get_last_message_ids()
            assert [(one.partition, one) for one in last] == [
                (n, max(one for one in ids if one.partition == n)) for n in range(3)
            ]
            for n, message in enumerate(messages):  # by message or by id
                await consumer.acknowledge(message if n % 2 else message.message_id())
        async with client.subscribe("parts", "s") as consumer:
            await nothing_more(consumer)


async def test_unacknowledged_messages_of_all_partitions_are_redelivered(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        inside.partitioned(TOPIC, 3)
        await publish(client, "parts", *NINE)
        options: dict[str, Any] = {"consumer_type": ConsumerType.Shared, "negative_ack_redelivery_delay": 2, **EARLIEST}
        async with client.subscribe("parts", "s", **options) as consumer:
            messages = await received(consumer, 9)
            consumer.negative_acknowledge(messages[0])
            (again,) = await received(consumer, 1)
            assert again.message_id() == messages[0].message_id()
            await consumer.redeliver_unacknowledged_messages()
            assert contents(await received(consumer, 9)) == NINE


async def test_cumulative_is_for_one_partition(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        inside.partitioned(TOPIC, 3)
        ids = await publish(client, "parts", *NINE)
        async with client.subscribe("parts", "s", **EARLIEST) as consumer:
            await received(consumer, 9)
            await consumer.acknowledge_cumulative(max(one for one in ids if one.partition == 1))
        async with client.subscribe("parts", "s") as consumer:
            assert {message.message_id().partition for message in await received(consumer, 6)} == {0, 2}
            await nothing_more(consumer)


async def test_seeking_moves_all_partitions_or_that_of_the_message(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        inside.partitioned(TOPIC, 3)
        ids = await publish(client, "parts", *NINE)
        async with client.subscribe("parts", "s") as consumer:
            await nothing_more(consumer)
            await consumer.seek(MessageId.earliest)
            assert contents(await received(consumer, 9)) == NINE
            await consumer.seek(MessageId.latest)
            await nothing_more(consumer)
            await consumer.seek(0)
            assert contents(await received(consumer, 9)) == NINE
            own = [n for n, one in enumerate(ids) if one.partition == 1]
            await consumer.seek(ids[own[0]])  # moves only the partition of the id
            assert [message.data() for message in await received(consumer, 2)] == [b"%d" % n for n in own[1:]]
            await nothing_more(consumer)


async def test_partitions_that_come_later_are_found(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        inside.partitioned(TOPIC, 1)
        async with client.subscribe("parts", "s", auto_update_partitions_interval=10) as consumer:
            inside.partitioned(TOPIC, 3)
            await publish(client, "parts", *NINE)  # the subscription exists on the new partitions already
            assert len(await received(consumer, 3)) == 3
            await nothing_more(consumer, 5)
            assert {message.message_id().partition for message in await received(consumer, 6)} == {1, 2}
        with pytest.raises(errors.AlreadyClosed):
            await consumer.receive()


async def test_a_consumer_has_all_partitions_or_none(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        inside.partitioned(TOPIC, 3)
        partition = f"{TOPIC}-partition-1"
        async with client.subscribe(partition, "s"):
            with pytest.raises(errors.ConsumerBusy):
                async with client.subscribe("parts", "s"):
                    pass
        async with client.subscribe("parts", "s") as consumer:
            await consumer.unsubscribe()
        loaded = inside.bed.broker.topics.loaded
        assert [topic.subscriptions for topic in loaded.values()] == [{}] * 3


async def test_the_queue_is_shared_by_many(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        inside.partitioned(TOPIC, 3)
        async with client.subscribe(
            "parts", "s", max_total_receiver_queue_size_across_partitions=6, receiver_queue_size=100
        ):
            await anyio.sleep(1)
            loaded = inside.bed.broker.topics.loaded.values()
            consumers = [one for topic in loaded for one in topic.subscriptions["s"].consumers]
            assert [consumer.permits for consumer in consumers] == [2, 2, 2]


async def test_partitions_go_on_after_connections_break(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        inside.partitioned(TOPIC, 3)
        async with client.subscribe("parts", "s", **EARLIEST) as consumer:
            await publish(client, "parts", *NINE)
            for message in await received(consumer, 4):
                await consumer.acknowledge(message)
            await anyio.sleep(1)
            await inside.cut()
            assert len({message.data() for message in await received(consumer, 5)}) == 5
            await nothing_more(consumer)


async def test_the_end_is_that_of_all_partitions(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        inside.partitioned(TOPIC, 2)
        await publish(client, "parts", *NINE)
        names = [TopicName.parse(f"{TOPIC}-partition-{n}") for n in range(2)]
        async with client.subscribe("parts", "s", **EARLIEST) as consumer:
            terminate(inside, names[0])
            found = []
            with anyio.move_on_after(5) as scope:
                async for message in consumer:
                    found.append(message)
                    await consumer.acknowledge(message)
            assert scope.cancelled_caught
            assert not consumer.has_reached_end_of_topic()
            terminate(inside, names[1])
            async for _ in consumer:
                pass
            assert contents(found) == NINE
            assert consumer.has_reached_end_of_topic()


def terminate(inside: InProcess, name: TopicName) -> None:
    topic: Any = inside.bed.broker.topics.find(name)
    topic.terminate()
    inside.bed.broker.turn.finish()


# ---- several topics


async def test_several_topics_are_received_together(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        inside.partitioned(TOPIC, 2)
        async with client.subscribe(["a", "b", "parts", "a"], "s") as consumer:
            assert consumer.topic() == f"persistent://public/default/a, persistent://public/default/b, {TOPIC}"
            for topic in ("a", "b", "parts"):
                await publish(client, topic, topic.encode())
            messages = await received(consumer, 3)
            assert contents(messages) == [b"a", b"b", b"parts"]
            by_content = {message.data(): message for message in messages}
            with pytest.raises(errors.InvalidConfiguration, match="give the message"):
                await consumer.acknowledge(by_content[b"a"].message_id())
            await consumer.acknowledge(by_content[b"parts"].message_id())  # the id names its partition
            await consumer.acknowledge(by_content[b"a"])
        async with client.subscribe(["a", "b", "parts"], "s") as consumer:
            assert contents(await received(consumer, 1)) == [b"b"]
            await nothing_more(consumer)


async def test_topics_that_make_no_sense(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        with pytest.raises(errors.InvalidConfiguration):
            client.subscribe([], "s")
        with pytest.raises(errors.InvalidTopicName):
            client.subscribe(["a", "b/c"], "s")
        with pytest.raises(errors.InvalidTopicName, match="tenant/namespace"):
            client.subscribe(re.compile("a/.*"), "s")
        with pytest.raises(errors.InvalidTopicName, match="domain"):
            client.subscribe(re.compile("http://a/b/.*"), "s")


@pytest.mark.parametrize(
    "pattern", ["x.*", "public/default/x.*", "persistent://public/default/x.*"], ids=["local", "relative", "full"]
)
@pytest.mark.parametrize("watched", [True, False], ids=["watched", "asked for"])
async def test_topics_that_match_a_pattern_are_received(autojump_clock: MockClock, pattern: str, watched: bool) -> None:
    """Brokers with watchers report new topics at once. The client asks other brokers now and then."""
    async with in_process(Config(enableBrokerTopicListWatcher=watched)) as inside, inside.client() as client:
        inside.partitioned("persistent://public/default/xparts", 2)
        await publish(client, "x1", b"before")
        await publish(client, "y1", b"never")
        async with client.subscribe(re.compile(pattern), "s", pattern_auto_discovery_period=10, **EARLIEST) as consumer:
            assert contents(await received(consumer, 1)) == [b"before"]
            await publish(client, "xparts", b"0", b"1")
            assert contents(await received(consumer, 2)) == [b"0", b"1"]
            await anyio.sleep(1)
            await publish(client, "x2", b"new")
            await publish(client, "non-persistent://public/default/x3", b"never")
            if not watched:
                await nothing_more(consumer, 5)
            with anyio.fail_after(0.1 if watched else 5):
                assert contents(await received(consumer, 1)) == [b"new"]
            await nothing_more(consumer, 20)


async def test_a_pattern_that_matches_nothing_yet_waits(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        async with client.subscribe(re.compile("x.*"), "s", **EARLIEST) as consumer:
            await nothing_more(consumer)
            await publish(client, "x", b"new")
            with anyio.fail_after(70):
                assert (await consumer.receive()).data() == b"new"
        with pytest.raises(errors.AlreadyClosed):
            await consumer.receive()


async def test_topics_that_go_are_left(autojump_clock: MockClock) -> None:
    """The consumer of a pattern outlives its topics."""
    names = [TopicName.parse(f"persistent://public/default/x{n}") for n in (1, 2)]
    async with in_process(Config(allowAutoTopicCreation=False)) as inside, inside.client() as client:
        topics = inside.bed.broker.topics
        topics.create(names[0])
        await publish(client, "x1", b"1")
        async with client.subscribe(re.compile("x.*"), "s", pattern_auto_discovery_period=10, **EARLIEST) as consumer:
            (message,) = await received(consumer, 1)
            topics.delete(names[0], force=True)
            inside.bed.broker.turn.finish()
            await nothing_more(consumer, 30)
            with pytest.raises(errors.AlreadyClosed):
                await consumer.acknowledge(message)
            topics.create(names[1])
            await publish(client, "x2", b"2")
            with anyio.fail_after(20):
                assert (await consumer.receive()).data() == b"2"


@pytest.mark.parametrize("watched", [True, False], ids=["watched", "asked for"])
async def test_a_topic_that_goes_stays_away(autojump_clock: MockClock, watched: bool) -> None:
    name = TopicName.parse("persistent://public/default/x1")
    async with in_process(Config(enableBrokerTopicListWatcher=watched)) as inside, inside.client() as client:
        topics = inside.bed.broker.topics
        await publish(client, "x1", b"1")
        async with client.subscribe(re.compile("x.*"), "s", pattern_auto_discovery_period=10) as consumer:
            topics.delete(name, force=True)
            inside.bed.broker.turn.finish()
            await nothing_more(consumer, 30)
            with pytest.raises(TopicNotFoundError):
                topics.find(name)
            assert consumer._parts.all == ()
            await publish(client, "x1", b"2")
            await nothing_more(consumer, 30)
            await publish(client, "x1", b"3")
            assert contents(await received(consumer, 1)) == [b"3"]


async def test_a_new_topic_that_does_not_open_does_not_keep_others_away(autojump_clock: MockClock) -> None:
    async with (
        in_process() as inside,
        inside.client() as client,
        client.subscribe(re.compile("x.*"), "s", pattern_auto_discovery_period=10, **EARLIEST) as consumer,
    ):
        async with client.subscribe("x1", "s"):  # an Exclusive subscription has only one consumer
            await publish(client, "x1", b"busy")
            await publish(client, "x2", b"new")
            with anyio.fail_after(30):
                assert (await consumer.receive()).data() == b"new"
        await publish(client, "x1", b"free")
        with anyio.fail_after(30):
            assert (await consumer.receive()).topic_name().endswith("x1")


async def test_paused_while_a_partition_is_opened(autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch) -> None:
    async with in_process() as inside, inside.client() as client:
        inside.partitioned(TOPIC, 1)
        async with client.subscribe("parts", "s", auto_update_partitions_interval=10, **EARLIEST) as consumer:
            inside.partitioned(TOPIC, 2)
            opening = client._core.brokers.connect_to

            async def connect_to(*arguments: Any) -> Any:
                consumer.pause()
                return await opening(*arguments)

            monkeypatch.setattr(client._core.brokers, "connect_to", connect_to)
            await anyio.sleep(20)
            assert len(consumer._parts.all) == 2
            await publish(client, "parts-partition-1", b"1")
            await nothing_more(consumer)
            consumer.resume()
            assert contents(await received(consumer, 1)) == [b"1"]


async def test_a_named_topic_that_goes_is_missed(autojump_clock: MockClock) -> None:
    names = [TopicName.parse(f"persistent://public/default/x{n}") for n in (1, 2)]
    async with in_process(Config(allowAutoTopicCreation=False)) as inside, inside.client() as client:
        topics = inside.bed.broker.topics
        for name in names:
            topics.create(name)
        async with client.subscribe(["x1", "x2"], "s") as consumer:
            topics.delete(names[0], force=True)
            inside.bed.broker.turn.finish()
            with pytest.raises(errors.TopicNotFound), anyio.fail_after(10):
                await consumer.receive()


async def test_a_pattern_matches_topics_of_the_selected_domains(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        quick: dict[str, Any] = {"pattern_auto_discovery_period": 1.0}
        async with (
            client.subscribe(
                re.compile("x.*"), "s", regex_subscription_mode=RegexSubscriptionMode.AllTopics, **quick
            ) as both,
            client.subscribe(re.compile("non-persistent://public/default/x.*"), "s2", **quick) as one,
            client.create_producer("x1") as persistent,
            client.create_producer("non-persistent://public/default/x2") as other,
        ):
            await anyio.sleep(3)
            await persistent.send(b"1")
            await other.send(b"2")
            assert contents(await received(both, 2)) == [b"1", b"2"]
            assert contents(await received(one, 1)) == [b"2"]
            await nothing_more(one)


# ---- readers


async def test_a_reader_reads_all_partitions(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        inside.partitioned(TOPIC, 3)
        ids = await publish(client, "parts", *NINE)
        async with client.create_reader("parts", MessageId.earliest) as reader:
            found = []
            while await reader.has_message_available():
                found.append(await reader.read_next())
            assert contents(found) == NINE
            assert sorted(await reader.get_last_message_ids()) == sorted(
                max(one for one in ids if one.partition == n) for n in range(3)
            )
            await reader.seek(MessageId.earliest)
            assert await reader.has_message_available()
            assert contents([await reader.read_next() for _ in NINE]) == NINE
            assert not await reader.has_message_available()


async def test_a_reader_of_partitions_begins_at_an_end(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        inside.partitioned(TOPIC, 3)
        ids = await publish(client, "parts", *NINE)
        with pytest.raises(errors.InvalidConfiguration, match=r"earliest or MessageId\.latest"):
            async with client.create_reader("parts", ids[0]):
                pass
        async with client.create_reader("parts", MessageId.latest) as reader:
            assert not await reader.has_message_available()
            await publish(client, "parts", b"new")
            assert (await reader.read_next()).data() == b"new"


async def test_a_reader_finds_new_partitions(autojump_clock: MockClock) -> None:
    """Reading begins at the first message of a new partition, even where the reader began at the latest message."""
    async with in_process() as inside, inside.client() as client:
        inside.partitioned(TOPIC, 1)
        async with client.create_reader("parts", MessageId.latest, auto_update_partitions_interval=10) as reader:
            inside.partitioned(TOPIC, 2)
            await publish(client, "parts", b"0", b"1")
            await anyio.sleep(20)
            found = [await reader.read_next(), await reader.read_next()]
            assert {message.message_id().partition for message in found} == {0, 1}
            assert not await reader.has_message_available()


async def test_a_seek_that_each_topic_has_of_its_own(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        inside.partitioned(TOPIC, 2)
        async with client.subscribe("parts", "s") as consumer, client.create_producer("parts") as producer:
            for number in range(4):
                await producer.send(b"%d" % number)
            for _ in range(4):
                await consumer.acknowledge(await consumer.receive())
            first = consumer._parts.all[0].topic
            await consumer.seek(lambda topic: MessageId.earliest if topic == first else None)
            with anyio.fail_after(10):
                again = [await consumer.receive() for _ in range(2)]
            assert {message.topic_name() for message in again} == {first}
            await nothing_more(consumer)
