"""Dead letters, retry letters, and how long a message waits before it comes again."""

from __future__ import annotations

from typing import Any

from pulsarium.client import (
    Consumer,
    ConsumerBatchReceivePolicy,
    ConsumerDeadLetterPolicy,
    ConsumerType,
    Message,
    MultiplierRedeliveryBackoff,
)

from .redelivery import SHARED, counted
from .scenario import scenario
from .world import EARLIEST, World, data, outcome, take

NUMBERS = [b"%d" % n for n in range(4)]


async def refuse(consumer: Consumer[bytes], times: int) -> list[Message[bytes]]:
    """Refuse what comes, so often."""
    messages = []
    for _ in range(times):
        messages.append(await consumer.receive())
        consumer.negative_acknowledge(messages[-1])
    return messages


@scenario(
    expected={
        "deliveries": [["0", 0], ["0", 1], ["0", 2]],
        "dead": "0",
        "topic": "t-s-DLQ",
        "properties": ["ORIGIN_MESSAGE_ID", "ORIGIN_MESSAGE_IDY_TIME", "REAL_SUBSCRIPTION", "REAL_TOPIC", "mine"],
        "real": "t",
        "left": ["end"],
    }
)
async def dead_letters(world: World) -> object:
    topic = world.topic()
    async with world.client.create_producer(topic) as producer:
        await producer.send(NUMBERS[0], properties={"mine": "1"}, partition_key="k")
    policy = ConsumerDeadLetterPolicy(2, initial_subscription_name="dead")
    async with world.client.subscribe(
        topic, "s", dead_letter_policy=policy, negative_ack_redelivery_delay=0.05, **SHARED
    ) as consumer:
        deliveries = await refuse(consumer, 3)
        async with world.client.subscribe(f"{topic}-s-DLQ", "dead", initial_position=EARLIEST) as dead:
            letter = await dead.receive()
        await world.send(topic, b"end")
        return {
            "deliveries": counted(deliveries),
            "dead": letter,
            "topic": letter.topic_name(),
            "properties": sorted(letter.properties()),
            "real": letter.properties()["REAL_TOPIC"],
            "left": await take(consumer, 1),
        }


@scenario(expected={"times": [None, "1", "2"], "data": ["0", "0", "0"], "dead": "0", "reconsumed": "3"})
async def retry_letters(world: World) -> object:
    topic = world.topic()
    await world.send(topic, NUMBERS[0])
    policy = ConsumerDeadLetterPolicy(2, dead_letter_topic=world.topic("dead"), initial_subscription_name="d")
    async with world.client.subscribe(topic, "s", retry_enable=True, dead_letter_policy=policy, **SHARED) as consumer:
        messages = []
        for _ in range(3):
            messages.append(await consumer.receive())
            await consumer.reconsume_later(messages[-1], 0.1)
        async with world.client.subscribe(world.topic("dead"), "d", initial_position=EARLIEST) as dead:
            letter = await dead.receive()
        return {
            "times": [message.properties().get("RECONSUMETIMES") for message in messages],
            "data": messages,
            "dead": letter,
            "reconsumed": letter.properties().get("RECONSUMETIMES"),
        }


@scenario(expected=[["0", 0], ["0", 1], ["0", 2], ["0", 3]])
async def a_nack_with_backoff(world: World) -> object:
    topic = world.topic()
    await world.send(topic, NUMBERS[0])
    backoff = MultiplierRedeliveryBackoff(min_delay=0.02, max_delay=0.2, multiplier=2.0)
    async with world.client.subscribe(topic, "s", negative_ack_redelivery_backoff=backoff, **SHARED) as consumer:
        return counted(await refuse(consumer, 4))


@scenario(expected=[["1", 1], ["2", 1]])
async def what_nobody_acknowledges_in_time(world: World) -> object:
    topic = world.topic()
    await world.send(topic, *NUMBERS[:3])
    async with world.client.subscribe(topic, "s", unacked_messages_timeout=1.0, **SHARED) as consumer:
        await consumer.acknowledge((await take(consumer, 3))[0])
        return sorted(counted(await take(consumer, 2)))


@scenario(expected=[["0", 0], ["0", 1], ["0", 2]])
async def in_a_time_that_grows(world: World) -> object:
    topic = world.topic()
    await world.send(topic, NUMBERS[0])
    backoff = MultiplierRedeliveryBackoff(min_delay=0.05, max_delay=0.4, multiplier=2.0)
    async with world.client.subscribe(
        topic, "s", unacked_messages_timeout=1.0, ack_timeout_redelivery_backoff=backoff, **SHARED
    ) as consumer:
        return counted(await take(consumer, 3))


@scenario(expected={"by number": ["0", "1"], "rest": ["2", "3"], "nothing": []})
async def several_at_once(world: World) -> object:
    topic = world.topic()
    await world.send(topic, *NUMBERS)
    policy = ConsumerBatchReceivePolicy(max_num_message=2, timeout=5.0)
    async with world.client.subscribe(topic, "s", initial_position=EARLIEST, batch_receive_policy=policy) as consumer:
        first, rest = await consumer.batch_receive(), await consumer.batch_receive()
    policy = ConsumerBatchReceivePolicy(max_num_message=2, timeout=0.05)
    async with world.client.subscribe(world.topic("empty"), "s", batch_receive_policy=policy) as consumer:
        nothing = await consumer.batch_receive()
    return {"by number": data(first), "rest": data(rest), "nothing": data(nothing)}


@scenario(expected={"data": ["0", "1", "2", "3"], "first": 1, "at once": "InvalidConfiguration"})
async def without_a_queue(world: World) -> object:
    topic = world.topic()
    await world.send(topic, *NUMBERS)
    kind: dict[str, Any] = {"consumer_type": ConsumerType.Shared, "initial_position": EARLIEST}
    async with world.client.subscribe(topic, "s", receiver_queue_size=0, **kind) as consumer:
        first = await take(consumer, 1)
        async with world.client.subscribe(topic, "s", receiver_queue_size=0, **kind) as other:
            rest = await take(other, 3)
        return {"data": data(first + rest), "first": len(first), "at once": await outcome(consumer.batch_receive())}


@scenario(expected={"paused": ["0"], "resumed": ["1", "2"]})
async def pausing(world: World) -> object:
    topic = world.topic()
    async with world.client.subscribe(
        topic, "s", initial_position=EARLIEST, start_paused=True, consumer_type=ConsumerType.Shared
    ) as consumer:
        await world.send(topic, NUMBERS[0])
        async with world.client.subscribe(
            topic, "s", consumer_type=ConsumerType.Shared, ack_receipt_enabled=True
        ) as other:
            messages = await take(other, 1)
            await other.acknowledge(messages[0])
        await world.send(topic, NUMBERS[1], NUMBERS[2])
        consumer.resume()
        return {"paused": data(messages), "resumed": data(await take(consumer, 2))}
