"""Scenarios of acknowledgement and redelivery."""

from __future__ import annotations

from pulsarium.client import ConsumerDeadLetterPolicy
from pulsarium.matrix.python.lines import Lines, equal, texts
from pulsarium.matrix.python.ours.messages import BATCHED
from pulsarium.matrix.python.ours.support import Ours, Shared, consume, nothing_more, receive, send, text


async def shared_nack(cell: Lines, ours: Ours) -> None:
    consumer = await ours.subscribe(cell.topic, consumer_type=Shared, negative_ack_redelivery_delay=0.1)
    await send(await ours.single(cell.topic), texts(0, 10))
    for message in await receive(consumer, 10):
        if text(message) == "a0004":
            consumer.negative_acknowledge(message)
        else:
            await consumer.acknowledge(message)
    equal(await consume(consumer, 1), ["a0004"])
    await nothing_more(consumer)


async def redelivery_count(cell: Lines, ours: Ours) -> None:
    consumer = await ours.subscribe(cell.topic, consumer_type=Shared, negative_ack_redelivery_delay=0.1)
    await send(await ours.single(cell.topic), ["again"])
    counts = []
    for _ in range(3):
        (message,) = await receive(consumer, 1)
        counts.append(message.redelivery_count())
        consumer.negative_acknowledge(message)
    equal(counts, [0, 1, 2])


async def ack_timeout(cell: Lines, ours: Ours) -> None:
    consumer = await ours.subscribe(cell.topic, consumer_type=Shared, unacked_messages_timeout=1.0)
    await send(await ours.single(cell.topic), ["again"])
    await receive(consumer, 1)
    equal(await consume(consumer, 1), ["again"])


async def cumulative_ack(cell: Lines, ours: Ours) -> None:
    consumer = await ours.subscribe(cell.topic)
    await send(await ours.single(cell.topic), texts(0, 10))
    await consumer.acknowledge_cumulative((await receive(consumer, 6))[-1])
    await consumer.aclose()
    again = await ours.subscribe(cell.topic)
    equal(await consume(again, 4), texts(6, 10))
    await nothing_more(again)


async def batch_index_ack(cell: Lines, ours: Ours) -> None:
    consumer = await ours.subscribe(cell.topic, consumer_type=Shared, batch_index_ack_enabled=True)
    await send(await ours.producer(cell.topic, **BATCHED), texts(0, 10))
    await consumer.acknowledge((await receive(consumer, 10))[::2])
    await consumer.aclose()
    again = await ours.subscribe(cell.topic, consumer_type=Shared, batch_index_ack_enabled=True)
    equal(await consume(again, 5), texts(0, 10)[1::2])
    await nothing_more(again)


async def ack_receipt(cell: Lines, ours: Ours) -> None:
    consumer = await ours.subscribe(cell.topic, ack_receipt_enabled=True)
    await send(await ours.single(cell.topic), texts(0, 10))
    for message in await receive(consumer, 5):
        await consumer.acknowledge(message)
    await consumer.aclose()
    again = await ours.subscribe(cell.topic)
    equal(await consume(again, 5), texts(5, 10))
    await nothing_more(again)


async def dead_letter(cell: Lines, ours: Ours) -> None:
    letters = await ours.subscribe(f"{cell.topic}-s-DLQ")
    consumer = await ours.subscribe(
        cell.topic,
        consumer_type=Shared,
        negative_ack_redelivery_delay=0.1,
        dead_letter_policy=ConsumerDeadLetterPolicy(2),
    )
    await send(await ours.single(cell.topic), ["dead"])
    for _ in range(3):
        consumer.negative_acknowledge((await receive(consumer, 1))[0])
    await nothing_more(consumer)
    equal(await consume(letters, 1), ["dead"])


async def retry_letter(cell: Lines, ours: Ours) -> None:
    consumer = await ours.subscribe(cell.topic, consumer_type=Shared, retry_enable=True)
    await send(await ours.single(cell.topic), ["later"])
    await consumer.reconsume_later((await receive(consumer, 1))[0], 0.5)
    (message,) = await receive(consumer, 1)
    equal((text(message), message.properties()["RECONSUMETIMES"]), ("later", "1"))


async def unsubscribe(cell: Lines, ours: Ours) -> None:
    consumer = await ours.subscribe(cell.topic)
    await send(await ours.single(cell.topic), texts(0, 5))
    equal(await consume(consumer, 5), texts(0, 5))
    await consumer.unsubscribe()
    equal(await consume(await ours.subscribe(cell.topic), 5), texts(0, 5))


ACKNOWLEDGING = {
    "shared-nack": shared_nack,
    "redelivery-count": redelivery_count,
    "ack-timeout": ack_timeout,
    "cumulative-ack": cumulative_ack,
    "batch-index-ack": batch_index_ack,
    "ack-receipt": ack_receipt,
    "dead-letter": dead_letter,
    "retry-letter": retry_letter,
    "unsubscribe": unsubscribe,
}
