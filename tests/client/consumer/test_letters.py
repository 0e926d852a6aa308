"""Retry letters and dead letters."""

from __future__ import annotations

import re
from typing import Any

import anyio
import pytest
import trio
from trio.testing import MockClock

from pulsarium.client import Client, Consumer, ConsumerDeadLetterPolicy, MessageId
from pulsarium.client.consumer.letters import with_topics
from pulsarium.client.consumer.options import ConsumerOptions, ConsumerType, InitialPosition
from pulsarium.client.errors import InvalidConfiguration, InvalidMessage, TopicTerminated
from pulsarium.client.producer import draft
from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import TOPIC, batch_of, plain
from tests.client.consumer.started import data_of, nothing_more, received, started, terminate

RETRY, DEAD = f"{TOPIC}-s-RETRY", f"{TOPIC}-s-DLQ"


def retrying(client: Client, policy: ConsumerDeadLetterPolicy | None = None, **options: Any) -> Consumer[bytes]:
    return client.subscribe(
        "t",
        "s",
        initial_position=InitialPosition.Earliest,
        consumer_type=ConsumerType.Shared,
        dead_letter_policy=policy,
        retry_enable=True,
        **options,
    )


async def test_a_message_is_retried_later_and_ends_as_a_dead_letter(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with started() as (inside, client):
        monkeypatch.setattr(draft, "now", inside.bed.broker.clock.now_ms)
        wire = await inside.wire()
        async with client.subscribe(DEAD, "d") as dead, retrying(client, ConsumerDeadLetterPolicy(2)) as consumer:
            (where,) = await wire.publish(
                plain(b"1", partition_key="k", event_time=5, properties=[{"key": "a", "value": "b"}])
            )
            origin = f"{where[0]}:{where[1]}:-1"
            said = {
                "a": "b",
                "REAL_TOPIC": TOPIC,
                "REAL_SUBSCRIPTION": "s",
                "ORIGIN_MESSAGE_ID": origin,
                "ORIGIN_MESSAGE_IDY_TIME": origin,
            }
            (message,) = await received(consumer, 1)
            for times in (1, 2):
                await consumer.reconsume_later(message, 3.5, {"mine": str(times)})
                await nothing_more(consumer, 2.4)  # the broker may deliver a second early
                (message,) = await received(consumer, 1)
                assert message.topic_name() == RETRY
                assert (message.data(), message.partition_key(), message.event_timestamp()) == (b"1", "k", 5)
                more = {"RECONSUMETIMES": str(times), "DELAY_TIME": "3500", "mine": str(times)}
                assert message.properties() == said | more
            await consumer.reconsume_later(message, 3.5)
            (letter,) = await received(dead, 1)
            assert letter.data() == b"1"
            assert letter.properties() == said | {"RECONSUMETIMES": "3", "DELAY_TIME": "3500", "mine": "2"}
            await consumer.redeliver_unacknowledged_messages()
            await nothing_more(consumer, 10)  # each message was acknowledged


async def test_one_of_a_batch_at_once(autojump_clock: MockClock) -> None:
    async with started() as (inside, client):
        wire = await inside.wire()
        async with retrying(client, batch_index_ack_enabled=True) as consumer:
            (where,) = await wire.publish(batch_of(b"1", b"2"))
            first, second = await received(consumer, 2)
            await consumer.reconsume_later(second, 0)
            (again,) = await received(consumer, 1)
            assert again.properties()["ORIGIN_MESSAGE_ID"] == f"{where[0]}:{where[1]}:-1:1"
            assert again.properties()["DELAY_TIME"] == "0"
            await consumer.acknowledge([first, again])
            await consumer.redeliver_unacknowledged_messages()
            await nothing_more(consumer)


async def test_of_several_topics_they_share_the_topics_of_the_first(autojump_clock: MockClock) -> None:
    async with started() as (inside, client):
        inside.partitioned("persistent://public/default/p", 2)
        consumer = client.subscribe(
            ["q", "p"],
            "s",
            consumer_type=ConsumerType.Shared,
            initial_position=InitialPosition.Earliest,
            retry_enable=True,
        )
        async with consumer, client.create_producer("p") as p, client.create_producer("q") as q:
            assert len(consumer._parts.all) == 4
            await p.send(b"p")
            await q.send(b"q")
            for message in await received(consumer, 2):
                await consumer.reconsume_later(message, 0)
            again = await received(consumer, 2)
            base = "persistent://public/default/"
            assert {message.topic_name() for message in again} == {f"{base}p-s-RETRY"}
            assert {message.properties()["REAL_TOPIC"] for message in again} == {f"{base}p", f"{base}q"}


async def test_when_it_cannot_be_published_it_comes_at_once(autojump_clock: MockClock) -> None:
    async with started() as (inside, client):
        wire = await inside.wire()
        async with retrying(client) as consumer:
            await wire.publish(plain(b"1"))
            (message,) = await received(consumer, 1)
            terminate(inside, RETRY)
            with pytest.raises(TopicTerminated):
                await consumer.reconsume_later(message, 1)
            (again,) = await received(consumer, 1)
            assert (again.data(), again.redelivery_count()) == (b"1", 1)


async def test_reconsuming_that_makes_no_sense_is_refused(autojump_clock: MockClock) -> None:
    async with started() as (inside, client):
        wire = await inside.wire()
        async with client.subscribe("t", "s", consumer_type=ConsumerType.Shared) as consumer:
            await wire.publish(plain(b"1"), plain(b"2", properties=[{"key": "RECONSUMETIMES", "value": "x"}]))
            first, second = await received(consumer, 2)
            with pytest.raises(InvalidConfiguration, match="retry_enable"):
                await consumer.reconsume_later(first, 1)
        async with retrying(client) as consumer:
            assert await data_of(consumer, 2) == [b"1", b"2"]
            with pytest.raises(InvalidMessage, match="RECONSUMETIMES"):
                await consumer.reconsume_later(second, 1)
            (again,) = await received(consumer, 1)
            assert again.data() == b"2"


async def test_a_cancelled_one_comes_again_when_it_is_asked_for(autojump_clock: MockClock) -> None:
    """The cancellation may happen at any step. A copy always remains in the original topic or in the retry topic."""
    async with started() as (inside, client):
        wire = await inside.wire()
        for steps in range(30):
            await wire.publish(plain(b"%d" % steps))
            async with retrying(client) as consumer:
                (message,) = await received(consumer, 1)
                with anyio.CancelScope() as scope:
                    async with anyio.create_task_group() as tasks:
                        tasks.start_soon(consumer.reconsume_later, message, 0)
                        for _ in range(steps):
                            await anyio.lowlevel.checkpoint()
                        scope.cancel()
                await consumer.redeliver_unacknowledged_messages()
                await trio.sleep(1)
                again = [await consumer.receive()]
                while consumer._inbox:
                    again.append(await consumer.receive())
                assert {one.data() for one in again} == {b"%d" % steps}
                await consumer.acknowledge(again)


def names(**options: Any) -> tuple[Any, str | None, str | None, int]:
    found = with_topics(ConsumerOptions(**{"topic": "t", "subscription_name": "s", **options}))
    policy = found.dead_letter_policy
    assert policy is not None
    return found.topic, policy.dead_letter_topic, policy.retry_letter_topic, policy.max_redeliver_count


def test_the_names_of_topics() -> None:
    other = "persistent://public/default/other"
    assert names(retry_enable=True) == ([TOPIC, RETRY], DEAD, RETRY, 16)
    policy = ConsumerDeadLetterPolicy(3, dead_letter_topic="other")
    assert names(retry_enable=True, dead_letter_policy=policy) == ([TOPIC, RETRY], other, RETRY, 3)
    policy = ConsumerDeadLetterPolicy(3, retry_letter_topic="other")
    assert names(retry_enable=True, dead_letter_policy=policy) == ([TOPIC, other], DEAD, other, 3)
    shared = {"consumer_type": ConsumerType.Shared, "dead_letter_policy": policy}
    assert names(**shared) == ("t", None, other, 3)  # None: each topic has its own dead letter topic
    pattern = re.compile("t.*")
    assert names(topic=pattern, retry_enable=True) == (pattern, None, None, 16)


def test_a_dead_letter_policy_without_an_effect_is_refused() -> None:
    """Consumers of Exclusive and Failover do not learn how often a message was redelivered."""
    with pytest.raises(InvalidConfiguration, match="dead_letter_policy needs consumer_type Shared or KeyShared, or"):
        ConsumerOptions("t", "s", dead_letter_policy=ConsumerDeadLetterPolicy(3))


async def test_a_key_of_bytes_stays_one(autojump_clock: MockClock) -> None:
    async with started() as (_, client), retrying(client) as consumer, client.create_producer("t") as producer:
        await producer.send(b"1", partition_key=b"\xff")
        (message,) = await received(consumer, 1)
        await consumer.reconsume_later(message, 0)
        (again,) = await received(consumer, 1)
        assert again.has_base64_encoded_key()
        assert again.key_bytes() == b"\xff"


# ---- Messages that are delivered too often go to another topic


DEAD = f"{TOPIC}-s-DLQ"


def shared(client: Client, policy: ConsumerDeadLetterPolicy, topic: str = "t", **options: Any) -> Consumer[bytes]:
    return client.subscribe(
        topic,
        "s",
        initial_position=InitialPosition.Earliest,
        dead_letter_policy=policy,
        **{"consumer_type": ConsumerType.Shared, "negative_ack_redelivery_delay": 1, **options},
    )


@pytest.mark.parametrize("kind", [ConsumerType.Shared, ConsumerType.KeyShared])
async def test_a_message_that_is_refused_too_often(autojump_clock: MockClock, kind: ConsumerType) -> None:
    async with started() as (inside, client):
        wire = await inside.wire()
        async with (
            client.subscribe(DEAD, "d") as dead,
            shared(client, ConsumerDeadLetterPolicy(2), consumer_type=kind) as consumer,
        ):
            entry = plain(
                b"1", partition_key="k", ordering_key=b"o", event_time=5, properties=[{"key": "a", "value": "b"}]
            )
            (where,) = await wire.publish(entry)
            for count in range(3):
                (message,) = await received(consumer, 1)
                assert (message.data(), message.redelivery_count()) == (b"1", count)
                consumer.negative_acknowledge(message)
            (letter,) = await received(dead, 1)
            await nothing_more(consumer, 20)
            assert (letter.data(), letter.partition_key(), letter.ordering_key()) == (b"1", "k", "o")
            assert letter.event_timestamp() == 5
            origin = f"{where[0]}:{where[1]}:-1"
            assert letter.properties() == {
                "a": "b",
                "REAL_TOPIC": TOPIC,
                "REAL_SUBSCRIPTION": "s",
                "ORIGIN_MESSAGE_ID": origin,
                "ORIGIN_MESSAGE_IDY_TIME": origin,
            }
            await dead.acknowledge(letter)
            await inside.cut()
            await nothing_more(consumer, 5)  # the message was acknowledged
            await nothing_more(dead)


async def test_a_batch_goes_as_a_whole_and_null_stays_null(autojump_clock: MockClock) -> None:
    async with started() as (inside, client):
        wire = await inside.wire()
        policy = ConsumerDeadLetterPolicy(1, "elsewhere")
        async with client.subscribe("elsewhere", "d") as dead, shared(client, policy) as consumer:
            (where,) = await wire.publish(batch_of(b"1", b"2"))
            await wire.publish(plain(b"", null_value=True), plain(b"4"))
            for again in (False, True):
                messages = sorted(await received(consumer, 4), key=lambda message: message.message_id())
                for message in messages[:3]:
                    consumer.negative_acknowledge(message)
                if again:
                    await consumer.acknowledge(messages[3])
                else:
                    consumer.negative_acknowledge(messages[3])
            letters = sorted(await received(dead, 3), key=lambda letter: letter.properties()["ORIGIN_MESSAGE_ID"])
            assert [(one.data(), one.has_null_value()) for one in letters] == [
                (b"1", False),
                (b"2", False),
                (b"", True),
            ]
            origin = f"{where[0]}:{where[1]}:-1"
            assert [one.properties()["ORIGIN_MESSAGE_ID"] for one in letters[:2]] == [f"{origin}:0", f"{origin}:1"]
            await nothing_more(consumer, 5)
            await nothing_more(dead)


async def test_a_chunked_message_goes_as_a_whole(autojump_clock: MockClock) -> None:
    async with (
        started() as (_, client),
        client.create_producer(
            "t", batching_enabled=False, chunking_enabled=True, chunk_max_message_size=10
        ) as producer,
        client.subscribe(DEAD, "d") as dead,
        shared(client, ConsumerDeadLetterPolicy(1)) as consumer,
    ):
        where = await producer.send(b"0123456789" * 5)
        for count in range(2):
            (message,) = await received(consumer, 1)
            assert (message.redelivery_count(), message.message_id()) == (count, where)
            consumer.negative_acknowledge(message)
        assert await data_of(dead, 1) == [b"0123456789" * 5]
        await consumer.redeliver_unacknowledged_messages()
        await nothing_more(consumer, 5)
        (part,) = consumer._parts.all
        assert len(part._redelivery.refused) == 0


async def test_a_late_chunked_message_comes_as_a_whole(autojump_clock: MockClock) -> None:
    async with started() as (_, client):
        options = {"batching_enabled": False, "chunking_enabled": True, "chunk_max_message_size": 10}
        async with (
            client.create_producer("t", **options) as producer,  # type: ignore[arg-type]
            shared(client, ConsumerDeadLetterPolicy(9), unacked_messages_timeout=2) as consumer,
        ):
            await producer.send(b"0123456789" * 5)
            messages = [*await received(consumer, 1), *await received(consumer, 1), *await received(consumer, 1)]
            assert {message.data() for message in messages} == {b"0123456789" * 5}
            assert [message.redelivery_count() for message in messages] == [0, 1, 2]
            await consumer.acknowledge(messages[-1])
            await nothing_more(consumer, 10)


async def test_acknowledged_in_the_last_moment(autojump_clock: MockClock) -> None:
    async with started() as (inside, client):
        wire = await inside.wire()
        async with client.subscribe(DEAD, "d") as dead, shared(client, ConsumerDeadLetterPolicy(1)) as consumer:
            await wire.publish(batch_of(b"1", b"2"), plain(b"3"))
            for message in await received(consumer, 3):
                consumer.negative_acknowledge(message)
            for message in await received(consumer, 3):
                consumer.negative_acknowledge(message)
                await consumer.acknowledge(message.message_id() if message.message_id().batch_index < 0 else message)
            letters = await received(dead, 2)  # one acknowledgement does not stop the redelivery of the batch
            assert {letter.data() for letter in letters} == {b"1", b"2"}
            await nothing_more(dead)
            (part,) = consumer._parts.all
            assert part._redelivery.dead_letters is not None
            assert len(part._redelivery.dead_letters) == 0


async def test_messages_redelivered_too_often_by_others_become_dead_letters(autojump_clock: MockClock) -> None:
    """Messages above maxRedeliverCount do not reach the application, and the queue goes on."""
    async with started() as (inside, client):
        wire = await inside.wire()
        async with (
            client.subscribe(DEAD, "d") as dead,
            shared(client, ConsumerDeadLetterPolicy(1), receiver_queue_size=2) as consumer,
        ):
            await wire.publish(plain(b"1"), plain(b"2"))
            assert await data_of(consumer, 2) == [b"1", b"2"]
            for _ in range(2):
                await consumer.redeliver_unacknowledged_messages()
                await trio.sleep(0.1)
            assert {letter.data() for letter in await received(dead, 2)} == {b"1", b"2"}
            await wire.publish(plain(b"3"))
            seen = [message.data() for message in await received(consumer, 1)]
            while seen[-1] != b"3":
                seen += await data_of(consumer, 1)
            await nothing_more(dead)


async def test_a_subscription_is_created_with_the_topic(autojump_clock: MockClock) -> None:
    async with started() as (inside, client):
        wire = await inside.wire()
        policy = ConsumerDeadLetterPolicy(1, initial_subscription_name="keep")
        async with shared(client, policy, unacked_messages_timeout=1) as consumer:
            await wire.publish(plain(b"1"))
            await received(consumer, 2)
            await nothing_more(consumer, 5)
            topic = inside.bed.broker.topics.loaded[DEAD]
            assert list(topic.subscriptions) == ["keep"]
            assert len(topic.producers) == 1
        assert len(topic.producers) == 0
        async with client.subscribe(DEAD, "keep") as dead:
            assert await data_of(dead, 1) == [b"1"]


async def test_partitions_have_letters_of_their_own(autojump_clock: MockClock) -> None:
    async with started() as (inside, client):
        inside.partitioned(TOPIC, 2)
        async with (
            shared(client, ConsumerDeadLetterPolicy(1)) as consumer,
            client.subscribe(f"{TOPIC}-partition-1-s-DLQ", "d") as dead,
            client.create_producer(f"{TOPIC}-partition-1") as producer,
        ):
            await producer.send(b"1")
            for _ in range(2):
                consumer.negative_acknowledge((await received(consumer, 1))[0])
            (letter,) = await received(dead, 1)
            assert letter.properties()["REAL_TOPIC"] == f"{TOPIC}-partition-1"


async def test_letters_that_cannot_be_sent_are_tried_again(autojump_clock: MockClock) -> None:
    async with started() as (inside, client):
        wire = await inside.wire()
        async with client.subscribe(DEAD, "d") as dead, shared(client, ConsumerDeadLetterPolicy(1)) as consumer:
            terminate(inside, DEAD)
            await wire.publish(plain(b"1"))
            for _ in range(2):
                consumer.negative_acknowledge((await received(consumer, 1))[0])
            await nothing_more(consumer, 100)
            (part,) = consumer._parts.all
            assert part._redelivery.dead_letters is not None
            assert len(part._redelivery.dead_letters) + len(part._redelivery.refused) == 2
            await dead.aclose()
            inside.bed.broker.topics.delete(TopicName.parse(DEAD), force=True)
            inside.bed.broker.turn.finish()
            async with client.subscribe(DEAD, "d") as dead_again:
                with anyio.fail_after(200):
                    assert (await dead_again.receive()).data() == b"1"
            await nothing_more(consumer, 5)


async def test_an_exclusive_subscription_counts_nothing(autojump_clock: MockClock) -> None:
    async with started() as (inside, client):
        wire = await inside.wire()
        exclusive: dict[str, Any] = {"consumer_type": ConsumerType.Exclusive, "retry_enable": True}
        async with shared(client, ConsumerDeadLetterPolicy(1), **exclusive) as consumer:
            await wire.publish(plain(b"1"))
            for _ in range(5):
                consumer.negative_acknowledge((await received(consumer, 1))[0])
            assert DEAD not in inside.bed.broker.topics.loaded


async def test_nothing_stays_behind_when_it_is_closed_while_letters_are_sent(autojump_clock: MockClock) -> None:
    async with started() as (inside, client):
        wire = await inside.wire()
        await wire.publish(*[plain(b"%d" % number) for number in range(20)])
        for steps in range(40):
            async with shared(client, ConsumerDeadLetterPolicy(1), negative_ack_redelivery_delay=0) as consumer:
                with anyio.move_on_after(2):
                    while True:
                        consumer.negative_acknowledge(await consumer.receive())
                        await anyio.lowlevel.checkpoint()  # redelivered messages come beside queued ones
                        if not consumer._inbox:
                            break
                for _ in range(steps):
                    await anyio.lowlevel.checkpoint()
        async with client.create_reader(DEAD, MessageId.earliest) as reader:
            found = set()
            while await reader.has_message_available():
                found.add((await reader.read_next()).data())
            assert found == {b"%d" % number for number in range(20)}
        assert len(inside.bed.broker.topics.loaded[DEAD].producers) == 0
