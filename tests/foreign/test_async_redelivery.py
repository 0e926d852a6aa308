"""Our own consumers and what comes again: dead letters, retries, acknowledgements that are late, no queue.

Over sockets, under both event loops, beside the official Python client.
"""

from __future__ import annotations

import itertools

import anyio
import pulsar
import pytest

from pulsarium.client import (
    Consumer,
    ConsumerBatchReceivePolicy,
    ConsumerDeadLetterPolicy,
    ConsumerKeySharedPolicy,
    ConsumerType,
    InitialPosition,
    KeySharedMode,
    Message,
    MultiplierRedeliveryBackoff,
    connect,
)
from pulsarium.client.errors import ConsumerAssignError, InvalidConfiguration, InvalidMessage
from tests.client.both import on_both

from .broker_process import Address

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
    broker: Address, official: pulsar.Client, topic: str
) -> None:
    """Both move their messages to the same topic, with the same content and origin."""
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
    expected = dead.receive(10000)
    dead.acknowledge(expected)
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
        letter = dead.receive(10000)
        for say in ("data", "partition_key", "topic_name"):
            assert getattr(letter, say)() == getattr(expected, say)()
        assert (letter.ordering_key(), letter.event_timestamp()) == ("o", 5)  # the official one of 3.13 drops both
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
        times = [anyio.current_time()]
        for count in (1, 2):
            await consumer.reconsume_later(message, 2.5)
            message = await within(consumer)
            times.append(anyio.current_time())
            assert message.properties()["RECONSUMETIMES"] == str(count)
            assert message.topic_name() == f"{topic}-s-RETRY"
        assert all(1.4 < later - earlier < 6 for earlier, later in itertools.pairwise(times))  # brokers round
        await consumer.reconsume_later(message, 2.5)
        letter = dead.receive(10000)
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
        assert [retried.read_next(5000).properties()["DELAY_TIME"] for _ in range(2)] == ["2500", "2500"]
        await consumer.redeliver_unacknowledged_messages()
        await nothing_more(consumer)


@pytest.mark.parametrize("kind", ConsumerType)
@on_both
async def test_late_acknowledgements(broker: Address, topic: str, kind: ConsumerType) -> None:
    async with (
        connect(broker.service_url) as client,
        client.subscribe(
            topic, "s", consumer_type=kind, initial_position=Earliest, unacked_messages_timeout=1
        ) as consumer,
        client.create_producer(topic, batching_enabled=False) as producer,
    ):
        await producer.send(b"1")
        await producer.send(b"2")
        first, second = await within(consumer), await within(consumer)
        received_at = anyio.current_time()
        await consumer.acknowledge(first)
        again = await within(consumer)
        assert 0.9 < anyio.current_time() - received_at < 5
        assert (again.data(), again.message_id()) == (b"2", second.message_id())
        assert again.redelivery_count() == (1 if kind in (Shared, ConsumerType.KeyShared) else 0)
        await consumer.acknowledge(again)
        await nothing_more(consumer, 1.5)


@on_both
async def test_a_backoff_of_refused_messages(broker: Address, topic: str) -> None:
    backoff = MultiplierRedeliveryBackoff(min_delay=0.2, max_delay=1, multiplier=3)
    async with (
        connect(broker.service_url) as client,
        client.subscribe(topic, "s", consumer_type=Shared, negative_ack_redelivery_backoff=backoff) as consumer,
        client.create_producer(topic) as producer,
    ):
        await producer.send(b"1")
        message = await within(consumer)
        for count, wait in enumerate((0.2, 0.6, 1), 1):
            began = anyio.current_time()
            consumer.negative_acknowledge(message)
            message = await within(consumer)
            assert message.redelivery_count() == count
            assert wait - 0.05 < anyio.current_time() - began < wait + 2


@on_both
async def test_without_a_queue(broker: Address, topic: str) -> None:
    async with connect(broker.service_url) as client, client.create_producer(topic, batching_enabled=False) as producer:
        options = {"consumer_type": Shared, "receiver_queue_size": 0, "initial_position": Earliest}
        async with (
            client.subscribe(topic, "s", **options) as one,  # type: ignore[arg-type]
            client.subscribe(topic, "s", **options) as other,  # type: ignore[arg-type]
        ):
            for number in range(6):
                await producer.send(b"%d" % number)
            assert [(await within(one)).data() for _ in range(4)] == [b"0", b"1", b"2", b"3"]
            assert [(await within(other)).data() for _ in range(2)] == [b"4", b"5"]
            await nothing_more(one)
            await producer.send(b"6")  # for which one has asked already
            assert (await within(one)).data() == b"6"
            with pytest.raises(InvalidConfiguration):
                await one.batch_receive()
            async with client.create_producer(topic) as batching:
                batching.send_nowait(b"7")
                batching.send_nowait(b"8")
            with pytest.raises(InvalidMessage, match="batch"):
                await within(one)
        async with client.subscribe(topic, "s", consumer_type=Shared) as consumer:
            assert sorted([(await within(consumer)).data() for _ in range(9)]) == [b"%d" % n for n in range(9)]


@on_both
async def test_several_at_once_after_a_pause(broker: Address, topic: str) -> None:
    policy = ConsumerBatchReceivePolicy(4, 0, 1)
    async with (
        connect(broker.service_url) as client,
        client.subscribe(
            topic, "s", start_paused=True, batch_receive_policy=policy, ack_receipt_enabled=True
        ) as consumer,
        client.create_producer(topic, batching_max_messages=3) as producer,
    ):
        receipts = [producer.send_nowait(b"%d" % number) for number in range(6)]
        for receipt in receipts:
            await receipt.wait()
        await nothing_more(consumer)
        consumer.resume()
        first = await consumer.batch_receive()
        rest = await consumer.batch_receive()
        assert [[message.data() for message in one] for one in (first, rest)] == [
            [b"0", b"1", b"2", b"3"],
            [b"4", b"5"],
        ]
        await consumer.acknowledge([*first, *rest])
        await consumer.redeliver_unacknowledged_messages()
        assert await consumer.batch_receive() == []


def sticky(*ranges: tuple[int, int]) -> ConsumerKeySharedPolicy:
    return ConsumerKeySharedPolicy(key_shared_mode=KeySharedMode.Sticky, sticky_ranges=ranges)


@on_both
async def test_sticky_ranges(broker: Address, topic: str) -> None:
    kind = ConsumerType.KeyShared
    async with (
        connect(broker.service_url) as client,
        client.subscribe(topic, "s", consumer_type=kind, key_shared_policy=sticky((0, 9999), (20000, 65535))) as wide,
        client.subscribe(topic, "s", consumer_type=kind, key_shared_policy=sticky((10000, 19999))) as narrow,
        client.create_producer(topic, batching_enabled=False) as producer,
    ):
        with pytest.raises(ConsumerAssignError):
            async with client.subscribe(topic, "s", consumer_type=kind, key_shared_policy=sticky((9999, 10000))):
                pass
        for number in range(60):
            await producer.send(b"", partition_key=str(number))
        keys: dict[Consumer, set[str]] = {wide: set(), narrow: set()}
        for consumer, found in keys.items():
            with anyio.move_on_after(1):
                while True:
                    found.add((await consumer.receive()).partition_key())
        assert keys[wide] | keys[narrow] == {str(number) for number in range(60)}
        assert keys[wide] & keys[narrow] == set()
        assert 0 < len(keys[narrow]) < len(keys[wide])


@on_both
async def test_others_are_thrown_out_by_unsubscribing_with_force(broker: Address, topic: str) -> None:
    async with connect(broker.service_url) as client:
        async with client.subscribe(topic, "s", consumer_type=Shared), client.create_producer(topic) as producer:
            await producer.send(b"1")
            async with client.subscribe(topic, "s", consumer_type=Shared) as consumer:
                await consumer.unsubscribe(force=True)
        async with client.subscribe(topic, "s", consumer_type=Shared) as consumer:
            await nothing_more(consumer)


@on_both
async def test_a_consumer_of_higher_priority_is_served_first(broker: Address, topic: str) -> None:
    async with (
        connect(broker.service_url) as client,
        client.subscribe(topic, "s", consumer_type=Shared, priority_level=1) as low,
        client.subscribe(topic, "s", consumer_type=Shared, priority_level=0, receiver_queue_size=5) as high,
        client.create_producer(topic, batching_enabled=False) as producer,
    ):
        for number in range(8):
            await producer.send(b"%d" % number)
        assert [(await within(low)).data() for _ in range(3)] == [b"5", b"6", b"7"]
        assert (await within(high)).data() == b"0"
