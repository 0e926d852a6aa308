"""Negative acknowledgements that keep the order of keys (PIP-493)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from pulsarium.broker.config import PIP, profile_of
from pulsarium.broker.config.proposals import NEGATIVE_ACKS
from pulsarium.broker.lab import Lab
from pulsarium.broker.lab.masks import Mask
from pulsarium.client import Consumer, Message, MessageId
from pulsarium.client.consumer.options import (
    ConsumerKeySharedPolicy,
    ConsumerOptions,
    ConsumerType,
    InitialPosition,
    OrderedNegativeAckMode,
)
from pulsarium.client.consumer.retrying_keys import FEATURE, RetryingKeys, order_key
from pulsarium.client.errors import InvalidConfiguration, OperationNotSupported
from pulsarium.proto import batch
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import Wire, plain
from tests.client.consumer.started import data_of, nothing_more, received
from tests.client.in_process import InProcess, in_process

BestEffort, Disabled, Required = (OrderedNegativeAckMode[name] for name in ("BestEffort", "Disabled", "Required"))
KeyShared = ConsumerType.KeyShared
DELAY = 5.0


@asynccontextmanager
async def consuming(
    pip: tuple[int, ...] = (NEGATIVE_ACKS,), **options: Any
) -> AsyncIterator[tuple[InProcess, Wire, Consumer[bytes]]]:
    profile = profile_of("pip", pip=pip)
    own: dict[str, Any] = {
        "consumer_type": KeyShared,
        "ordered_negative_ack": BestEffort,
        "negative_ack_redelivery_delay": DELAY,
    }
    async with in_process(profile=profile) as inside, inside.client() as client:
        wire = await inside.wire()
        options = own | {"initial_position": InitialPosition.Earliest} | options
        async with client.subscribe("t", "s", **options) as consumer:
            yield inside, wire, consumer


def keyed(text: str) -> list[bytes]:
    """Return an entry for each word, such as a1, whose letter is the key."""
    return [plain(word.encode(), partition_key=word[0]) for word in text.split()]


async def words(consumer: Consumer[bytes], count: int) -> str:
    return " ".join(data.decode() for data in await data_of(consumer, count))


async def test_a_key_keeps_its_order_and_others_go_on(autojump_clock: MockClock) -> None:
    async with consuming() as (_, wire, consumer):
        await wire.publish(*keyed("a1 b1 a2 b2 a3"))
        (first,) = await received(consumer, 1)
        consumer.negative_acknowledge(first)
        assert await words(consumer, 2) == "b1 b2"
        await wire.publish(*keyed("a4 b3"))
        assert await words(consumer, 1) == "b3"
        (again,) = await received(consumer, 1)
        assert (again.data(), again.redelivery_count()) == (b"a1", 1)
        await nothing_more(consumer, 2 * DELAY)
        await consumer.acknowledge(again)
        later = await received(consumer, 3)
        assert [(each.data(), each.redelivery_count()) for each in later] == [(b"a2", 0), (b"a3", 0), (b"a4", 0)]


async def test_without_the_option_a_key_does_not_keep_its_order(autojump_clock: MockClock) -> None:
    async with consuming(ordered_negative_ack=Disabled) as (_, wire, consumer):
        await wire.publish(*keyed("a1 a2 a3"))
        (first,) = await received(consumer, 1)
        consumer.negative_acknowledge(first)
        assert await words(consumer, 3) == "a2 a3 a1"


@pytest.mark.parametrize(
    "options",
    [
        {"pip": ()},
        {"consumer_type": ConsumerType.Shared},
        {"key_shared_policy": ConsumerKeySharedPolicy(allow_out_of_order_delivery=True)},
    ],
)
async def test_where_no_order_can_be_kept_messages_go_on(options: dict[str, Any], autojump_clock: MockClock) -> None:
    async with consuming(**options) as (_, wire, consumer):
        await wire.publish(*keyed("a1 a2 a3"))
        (first,) = await received(consumer, 1)
        consumer.negative_acknowledge(first)
        assert await words(consumer, 3) == "a2 a3 a1"


async def test_an_id_or_a_message_without_a_key_keeps_no_order(autojump_clock: MockClock) -> None:
    async with consuming() as (_, wire, consumer):
        await wire.publish(*keyed("a1 a2"), plain(b"1"), plain(b"2"))
        first, _, third = await received(consumer, 3)
        consumer.negative_acknowledge(first.message_id())
        consumer.negative_acknowledge(third)
        assert await words(consumer, 3) == "2 a1 1"


async def test_refused_messages_of_a_key_come_again_one_by_one(autojump_clock: MockClock) -> None:
    async with consuming() as (_, wire, consumer):
        await wire.publish(*keyed("a1 a2 a3"))
        messages = await received(consumer, 3)
        for message in reversed(messages):
            consumer.negative_acknowledge(message)
        for word in ("a1", "a2", "a3"):
            (message,) = await received(consumer, 1)
            assert message.data().decode() == word
            await nothing_more(consumer)
            await consumer.acknowledge(message)
            await trio.sleep(1)


async def test_a_second_refusal_keeps_the_order(autojump_clock: MockClock) -> None:
    async with consuming() as (_, wire, consumer):
        await wire.publish(*keyed("a1 a2"))
        for count in range(3):
            (message,) = await received(consumer, 1)
            assert (message.data(), message.redelivery_count()) == (b"a1", count)
            consumer.negative_acknowledge(message)
        (message,) = await received(consumer, 1)
        await consumer.acknowledge(message)
        assert await words(consumer, 1) == "a2"


async def test_permits_of_returned_messages_come_back(autojump_clock: MockClock) -> None:
    async with consuming(receiver_queue_size=4) as (_, wire, consumer):
        await wire.publish(*keyed("a1 a2 a3 a4 a5 b1 b2 b3 b4"))
        (first,) = await received(consumer, 1)
        await wait_all_tasks_blocked()
        consumer.negative_acknowledge(first)
        assert await words(consumer, 4) == "b1 b2 b3 b4"


async def test_a_message_that_arrives_too_early_goes_back(autojump_clock: MockClock) -> None:
    """The message was on its way when its key was refused."""
    async with consuming(receiver_queue_size=1) as (_, wire, consumer):
        await wire.publish(*keyed("a1 a2 a3 b1"))
        (first,) = await received(consumer, 1)
        consumer.negative_acknowledge(first)  # a permit for the next message is sent already
        assert await words(consumer, 2) == "b1 a1"


async def test_after_a_lost_connection_all_come_in_order(autojump_clock: MockClock) -> None:
    async with consuming() as (inside, wire, consumer):
        await wire.publish(*keyed("a1 a2 a3"))
        (first,) = await received(consumer, 1)
        consumer.negative_acknowledge(first)
        await inside.cut()
        assert await words(consumer, 3) == "a1 a2 a3"


async def test_only_what_is_left_of_a_batch_comes_again(autojump_clock: MockClock) -> None:
    """The acknowledgement of the first message goes to the broker before the negative one of the second."""
    async with consuming(batch_index_ack_enabled=True) as (inside, wire, consumer):
        (position,) = await wire.publish(inner("a1 a2 a3"))
        await wire.publish(*keyed("a4"))
        first, second, _ = await received(consumer, 3)
        await consumer.acknowledge(first)
        consumer.negative_acknowledge(second)
        await wait_all_tasks_blocked()
        assert inside.bed.subscription("s").cursor.left_of(position) == 0b110
        again = await received(consumer, 2)
        assert [each.data() for each in again] == [b"a2", b"a3"]
        await nothing_more(consumer)
        for message in again:
            await consumer.acknowledge(message)
        assert await words(consumer, 1) == "a4"


async def test_messages_of_a_batch_that_were_acknowledged_alone_do_not_come_again(autojump_clock: MockClock) -> None:
    """The broker knows nothing of the acknowledgement, because it gets no part of the batch."""
    async with consuming() as (inside, wire, consumer):
        await wire.publish(inner("a1 a2 a3"), *keyed("a4"))
        first, second, _ = await received(consumer, 3)
        await consumer.acknowledge(first)
        consumer.negative_acknowledge(second)
        again = await received(consumer, 2)
        assert [each.data() for each in again] == [b"a2", b"a3"]
        for message in again:
            await consumer.acknowledge(message)
        assert await words(consumer, 1) == "a4"
        assert inside.bed.subscription("s").cursor.backlog() == 1


def inner(text: str) -> bytes:
    """Return a batch of words whose messages have the keys themselves."""
    singles = [
        (pb.SingleMessageMetadata(partition_key=word[0], payload_size=len(word)), word.encode())
        for word in text.split()
    ]
    count = len(singles)
    return plain(batch.pack(singles), num_messages_in_batch=count, partition_key=text[0])


# ---- what is required


async def test_a_broker_that_keeps_no_order_is_refused_where_order_is_required(autojump_clock: MockClock) -> None:
    async with in_process(profile=PIP) as inside, inside.client() as client:
        with pytest.raises(OperationNotSupported, match=f"t: .* has no {FEATURE}"):
            async with client.subscribe("t", "s", consumer_type=KeyShared, ordered_negative_ack=Required):
                raise AssertionError("the consumer is open")


async def test_a_consumer_waits_for_a_broker_that_keeps_the_order_again(autojump_clock: MockClock) -> None:
    async with consuming(ordered_negative_ack=Required) as (inside, wire, consumer):
        await wire.publish(*keyed("a1"))
        (message,) = await received(consumer, 1)
        await consumer.acknowledge(message)
        await trio.sleep(1)
        lab = inside.bed.broker.cluster.attached(Lab)
        with lab.masks.add(Mask(flags={FEATURE: False})):
            await inside.cut()
            await trio.sleep(10)
        await wire.publish(*keyed("a2"))
        await nothing_more(consumer)
        assert consumer.suspended_topics() == ["persistent://public/default/t"]
        await inside.cut()
        assert await words(consumer, 1) == "a2"
        assert consumer.suspended_topics() == []


async def test_a_new_partition_waits_for_a_broker_that_keeps_the_order(autojump_clock: MockClock) -> None:
    name = "persistent://public/default/p"
    options: dict[str, Any] = {"consumer_type": KeyShared, "ordered_negative_ack": Required}
    async with in_process(profile=profile_of("pip", pip=[NEGATIVE_ACKS])) as inside, inside.client() as client:
        inside.partitioned(name, 1)
        async with client.subscribe("p", "s", auto_update_partitions_interval=5, **options) as consumer:
            with inside.bed.broker.cluster.attached(Lab).masks.add(Mask(flags={FEATURE: False})):
                await inside.cut()
                await trio.sleep(10)
                inside.partitioned(name, 2)
                await trio.sleep(10)
                assert consumer.suspended_topics() == [f"{name}-partition-0"]
            await inside.cut()
            await trio.sleep(10)
            assert consumer.suspended_topics() == []
            async with client.create_producer(f"{name}-partition-1") as producer:
                await producer.send(b"x")
            assert await words(consumer, 1) == "x"


@pytest.mark.parametrize(
    "options",
    [
        {"consumer_type": ConsumerType.Shared},
        {
            "consumer_type": KeyShared,
            "key_shared_policy": ConsumerKeySharedPolicy(allow_out_of_order_delivery=True),
        },
    ],
)
def test_what_has_no_order_cannot_require_one(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfiguration, match="ordered_negative_ack Required needs consumer_type KeyShared"):
        ConsumerOptions("t", "s", ordered_negative_ack=Required, **options)


# ---- the rule


def message(entry: int, **fields: Any) -> Message[bytes]:
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=0, publish_time=1, **{"partition_key": "k"} | fields)
    return Message("t", MessageId(1, entry), metadata, None, b"", 0)


def refused(*entries: int, delay: float = DELAY) -> RetryingKeys:
    keys = RetryingKeys()
    for entry in entries:
        keys.refuse(b"k", MessageId(1, entry), (), delay)
    return keys


async def test_only_later_messages_of_the_key_are_returned(autojump_clock: MockClock) -> None:
    keys = refused(5, 7)
    assert [keys.returns(message(entry)) for entry in (4, 5, 6, 7)] == [False, False, True, True]
    assert not keys.returns(message(8, partition_key="other"))
    keys.done((1, 5))
    assert [keys.returns(message(entry)) for entry in (8, 9)] == [True, True]
    keys.done((1, 7))
    assert not keys


async def test_a_message_that_was_returned_before_ends_the_retry(autojump_clock: MockClock) -> None:
    """The broker withholds it no more, because another consumer acknowledged the refused message."""
    keys = refused(5)
    assert [keys.returns(message(entry)) for entry in (6, 7, 6)] == [True, True, False]
    assert not keys


@pytest.mark.parametrize(("delay", "is_over"), [(DELAY, True), (60.0, False)])
async def test_a_retry_ends_a_minute_after_its_delay(delay: float, is_over: bool, autojump_clock: MockClock) -> None:
    keys = refused(5, delay=delay)
    await trio.sleep(DELAY + 61)
    assert keys.returns(message(6)) is not is_over
    assert bool(keys) is not is_over


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({}, None),
        ({"partition_key": ""}, b""),
        ({"partition_key": "k"}, b"k"),
        ({"partition_key": "aw==", "partition_key_b64_encoded": True}, b"k"),
        ({"partition_key": "k", "ordering_key": b""}, b""),
        ({"partition_key": "k", "ordering_key": b"o\xff"}, b"o\xff"),
        ({"null_partition_key": True}, None),
    ],
)
def test_the_ordering_key_or_else_the_partition_key_counts(fields: dict[str, Any], key: bytes | None) -> None:
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=0, publish_time=1, **fields)
    assert order_key(Message("t", MessageId(1, 0), metadata, None, b"", 0)) == key
