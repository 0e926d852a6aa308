"""Dead letters and retries of our consumers, under both event loops, compared with the official client."""

from __future__ import annotations

import anyio
import pulsar

from pulsarium.client import (
    Consumer,
    ConsumerDeadLetterPolicy,
    ConsumerType,
    InitialPosition,
    Message,
    connect,
)
from tests.client.both import on_both

from .admin import Admin
from .broker_process import Address
from .deadline import eventually

Earliest = InitialPosition.Earliest
Shared = ConsumerType.Shared


async def within(consumer: Consumer, seconds: float = 30) -> Message:
    with anyio.fail_after(seconds):
        return await consumer.receive()


async def nothing_more(consumer: Consumer, seconds: float = 0.5) -> None:
    with anyio.move_on_after(seconds):
        raise AssertionError(await consumer.receive())


@on_both
async def test_dead_letters_are_those_of_the_official_client(
    broker: Address, official: pulsar.Client, admin: Admin, topic: str
) -> None:
    """The two clients move their messages to the same topic, with the same content and origin."""
    dead = official.subscribe(f"{topic}-s-DLQ", "d")
    theirs = official.subscribe(
        topic,
        "s",
        consumer_type=pulsar.ConsumerType.Shared,
        negative_ack_redelivery_delay_ms=100,
        dead_letter_policy=pulsar.ConsumerDeadLetterPolicy(2),
    )
    producer = official.create_producer(topic, batching_enabled=False)

    def send() -> pulsar.MessageId:
        options = {"partition_key": "k", "ordering_key": "o", "event_timestamp": 5, "properties": {"a": "ä"}}
        return producer.send(b"1", **options)

    send()
    for _ in range(3):
        theirs.negative_acknowledge(theirs.receive(30_000))
    expected = dead.receive(30_000)
    dead.acknowledge(expected)
    # The client acknowledges the message when it has the receipt of the letter, which may be after the letter itself.
    await anyio.to_thread.run_sync(lambda: eventually(lambda: admin.backlog(topic, "s") == 0, what="no backlog"))
    theirs.close()
    async with (
        connect(broker.service_url) as client,
        client.subscribe(
            topic,
            "s",
            consumer_type=Shared,
            negative_ack_redelivery_delay=0.1,
            dead_letter_policy=ConsumerDeadLetterPolicy(2),
        ) as consumer,
    ):
        sent = send()
        for count in range(3):
            message = await within(consumer)
            assert (message.data(), message.redelivery_count()) == (b"1", count)
            consumer.negative_acknowledge(message)
        await nothing_more(consumer)
        letter = dead.receive(30_000)
        for say in ("data", "partition_key", "topic_name"):
            assert getattr(letter, say)() == getattr(expected, say)()
        assert (letter.ordering_key(), letter.event_timestamp()) == ("o", 5)  # the official client 3.13 drops both
        found = letter.properties()
        same = expected.properties().keys() - {"ORIGIN_MESSAGE_ID"}
        assert {key: found[key] for key in same} == {key: expected.properties()[key] for key in same}
        assert found["ORIGIN_MESSAGE_ID"] == f"{sent.ledger_id()}:{sent.entry_id()}:{sent.partition()}"
        assert (found["REAL_TOPIC"], found["REAL_SUBSCRIPTION"], found["a"]) == (topic, "s", "ä")


@on_both
async def test_retries_wait_and_end_among_the_dead(broker: Address, official: pulsar.Client, topic: str) -> None:
    dead = official.subscribe(f"{topic}-s-DLQ", "d")
    retried = official.create_reader(f"{topic}-s-RETRY", pulsar.MessageId.earliest)
    async with (
        connect(broker.service_url) as client,
        client.subscribe(
            topic,
            "s",
            consumer_type=Shared,
            initial_position=Earliest,
            retry_enable=True,
            dead_letter_policy=ConsumerDeadLetterPolicy(2),
            ack_receipt_enabled=True,
        ) as consumer,
        client.create_producer(topic, batching_enabled=False) as producer,
    ):
        where = await producer.send(b"1", partition_key="k", properties={"a": "b"})
        message = await within(consumer)
        for count in (1, 2):
            await consumer.reconsume_later(message, 2.5)
            message = await within(consumer)
            assert message.properties()["RECONSUMETIMES"] == str(count)
            assert message.topic_name() == f"{topic}-s-RETRY"
        await consumer.reconsume_later(message, 2.5)
        letter = dead.receive(30_000)
        assert (letter.data(), letter.partition_key()) == (b"1", "k")
        assert letter.properties() == {
            "a": "b",
            "REAL_TOPIC": topic,
            "REAL_SUBSCRIPTION": "s",
            "ORIGIN_MESSAGE_ID": f"{where.ledger_id}:{where.entry_id}:-1",
            "ORIGIN_MESSAGE_IDY_TIME": f"{where.ledger_id}:{where.entry_id}:-1",
            "RECONSUMETIMES": "3",
            "DELAY_TIME": "2500",
        }
        assert [retried.read_next(30_000).properties()["DELAY_TIME"] for _ in range(2)] == ["2500", "2500"]
        await consumer.redeliver_unacknowledged_messages()
        await nothing_more(consumer)
