"""Dead letters, retry letters, and their delays."""

from __future__ import annotations

from pulsarium.client import (
    Consumer,
    ConsumerDeadLetterPolicy,
    Message,
)

from .redelivery import SHARED, counted
from .scenario import scenario
from .world import EARLIEST, World, take

NUMBERS = [b"%d" % n for n in range(4)]


async def refuse(consumer: Consumer[bytes], times: int) -> list[Message[bytes]]:
    """Acknowledge the next messages negatively, this many times."""
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
