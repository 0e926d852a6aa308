"""reconsume_later: through the retry letter topic, at last to the dead letters."""

from __future__ import annotations

import re
from typing import Any

import anyio
import pytest
import trio
from trio.testing import MockClock

from pulsarium.client.client import Client
from pulsarium.client.consumer.consumer import Consumer
from pulsarium.client.consumer.letters import with_topics
from pulsarium.client.consumer.options import ConsumerOptions, ConsumerType, InitialPosition
from pulsarium.client.consumer.policies import ConsumerDeadLetterPolicy
from pulsarium.client.errors import InvalidConfiguration, InvalidMessage, TopicTerminated
from pulsarium.client.producer import draft
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


async def test_it_comes_again_later_and_at_last_no_more(
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
                await nothing_more(consumer, 2.4)  # the broker may be a second early
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
            await nothing_more(consumer, 10)  # each was acknowledged


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


async def test_what_makes_no_sense(autojump_clock: MockClock) -> None:
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
    """At each step: there is always one left of it, here or there."""
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
    assert names(dead_letter_policy=policy) == ("t", None, other, 3)  # each topic or partition has its own
    pattern = re.compile("t.*")
    assert names(topic=pattern, retry_enable=True) == (pattern, None, None, 16)


async def test_a_key_of_bytes_stays_one(autojump_clock: MockClock) -> None:
    async with started() as (_, client), retrying(client) as consumer, client.create_producer("t") as producer:
        await producer.send(b"1", partition_key=b"\xff")
        (message,) = await received(consumer, 1)
        await consumer.reconsume_later(message, 0)
        (again,) = await received(consumer, 1)
        assert again.has_base64_encoded_key()
        assert again.key_bytes() == b"\xff"
