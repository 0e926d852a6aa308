"""Checkpoints of async methods: each notices a cancellation and lets other tasks run, even when it need not wait."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import anyio
import pytest
import trio.testing

from pulsarium.client import ConsumerType, Message, MessageId, PulsarError, TransactionState, connect
from pulsarium.client.errors import AlreadyClosed, InvalidConfiguration, InvalidTxnStatusError
from pulsarium.client.together import together
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.consumer.started import started
from tests.client.hostile.clocks import on_both
from tests.client.hostile.left_over import connections_of
from tests.client.hostile.played import TOPIC, deliver, playing, saying, silence, subscribed
from tests.client.peer import Type
from tests.client.transaction.stage import coordinated


async def queued(consumer: Any, count: int) -> None:
    """Wait until `receive` would return so many messages at once."""
    for _ in range(1000):
        if len(consumer._inbox) >= count:
            return
        await anyio.sleep(0.01)
    raise AssertionError(f"only {len(consumer._inbox)} came")


async def test_a_consumer_that_need_not_wait() -> None:
    async with (
        started() as (_, client),
        client.subscribe("t", "s") as consumer,
        client.create_producer("t") as producer,
    ):
        for receipt in [producer.send_nowait(b"%d" % i) for i in range(8)]:
            await receipt.wait()
        await queued(consumer, 8)
        with trio.testing.assert_checkpoints():
            message = await consumer.receive()
        with trio.testing.assert_checkpoints():
            await consumer.acknowledge(message)
        with trio.testing.assert_checkpoints():
            await consumer.acknowledge([message.message_id()])
        with trio.testing.assert_checkpoints():
            await consumer.acknowledge([])
        with trio.testing.assert_checkpoints():
            await consumer.acknowledge_cumulative(await anext(consumer))
        with trio.testing.assert_checkpoints():
            await anext(consumer)
        with trio.testing.assert_checkpoints():
            assert await consumer.batch_receive()
        with trio.testing.assert_checkpoints():
            await consumer.redeliver_unacknowledged_messages()
        with trio.testing.assert_checkpoints():
            await consumer.seek(lambda topic: None)
        with trio.testing.assert_checkpoints():
            await consumer.aclose()
        with trio.testing.assert_checkpoints():
            await consumer.aclose()


async def test_a_producer_that_need_not_wait() -> None:
    async with started() as (_, client), client.create_producer("t") as producer:
        with trio.testing.assert_checkpoints():
            receipt = await producer.submit(b"x")
        with trio.testing.assert_checkpoints():
            await producer.flush()
        with trio.testing.assert_checkpoints():
            await producer.flush()
        assert receipt.is_done()
        with trio.testing.assert_checkpoints():
            assert await receipt.wait() == receipt.result()
        for _ in range(2):
            with trio.testing.assert_checkpoints():
                await producer.aclose()


async def test_a_reader_that_need_not_wait() -> None:
    async with started() as (_, client), client.create_producer("t") as producer:
        await producer.send(b"1")
        await producer.send(b"2")
        async with client.create_reader("t", MessageId.earliest) as reader:
            assert await reader.has_message_available()
            await queued(reader._consumer, 2)
            with trio.testing.assert_checkpoints():
                assert await reader.has_message_available()
            with trio.testing.assert_checkpoints():
                await reader.read_next()
            with trio.testing.assert_checkpoints():
                await anext(reader)


async def test_calls_with_nothing_to_do_are_checkpoints() -> None:
    with trio.testing.assert_checkpoints():
        await together([])
    async with connect("pulsar://nobody:6650") as client:
        for _ in range(2):
            with trio.testing.assert_checkpoints():
                await client.aclose()


@on_both
async def test_calls_that_fail_at_once_notice_cancellation() -> None:
    async with playing() as (_, client):
        async with (
            client.create_producer(TOPIC) as producer,
            client.subscribe(TOPIC, "s") as consumer,
            client.create_reader(TOPIC, MessageId.earliest) as reader,
        ):
            assert await cancelled(partial(producer.send, b"x", deliver_at=2**70))
            with pytest.raises(InvalidConfiguration):
                await consumer.reconsume_later(message(), 1)
        calls: list[Callable[[], Awaitable[object]]] = [
            partial(producer.send, b"x"),
            partial(producer.submit, b"x"),
            producer.flush,
            consumer.receive,
            consumer.__anext__,
            consumer.batch_receive,
            partial(consumer.acknowledge, MessageId(1, 1)),
            partial(consumer.acknowledge, [MessageId(1, 1)]),
            partial(consumer.acknowledge_cumulative, MessageId(1, 1)),
            partial(consumer.reconsume_later, message(), 1),
            consumer.redeliver_unacknowledged_messages,
            partial(consumer.seek, MessageId.earliest),
            partial(consumer.seek_to_index, 0),
            partial(consumer.acknowledge_index, 0),
            consumer.get_last_message_ids,
            consumer.unsubscribe,
            reader.read_next,
            reader.has_message_available,
            partial(reader.seek, MessageId.earliest),
            reader.get_last_message_ids,
        ]
        for call in calls:
            assert await cancelled(call), call
            with pytest.raises(PulsarError):
                await call()
    await client.aclose()
    for call in (
        partial(client.get_topics, "public/default"),
        partial(client.get_schema, "://"),
        partial(client.get_topic_partitions, "://"),
        partial(client.begin_transaction, timeout=-1),
    ):
        assert await cancelled(call), call
        with pytest.raises(PulsarError):
            await call()


@on_both
async def test_a_transaction_that_has_ended() -> None:
    async with (
        coordinated() as (_, _, client),
        client.create_producer(TOPIC) as producer,
        client.subscribe(TOPIC, "s") as consumer,
    ):
        txn = await client.begin_transaction()
        await txn.commit()
        calls: list[Callable[[], Awaitable[object]]] = [
            txn.commit,
            txn.abort,
            partial(producer.send, b"x", txn=txn),
            partial(producer.submit, b"x", txn=txn),
            partial(consumer.acknowledge, MessageId(1, 1), txn=txn),
            partial(consumer.acknowledge, [MessageId(1, 1)], txn=txn),
            partial(consumer.acknowledge_cumulative, MessageId(1, 1), txn=txn),
        ]
        for call in calls:
            assert await cancelled(call)
            with pytest.raises(InvalidTxnStatusError):
                await call()
        other = await client.begin_transaction()
        assert await cancelled(other.commit)
        assert other.state() is TransactionState.OPEN


async def test_a_transaction_in_which_nothing_has_to_be_waited_for() -> None:
    async with (
        coordinated() as (_, _, client),
        client.create_producer(TOPIC) as producer,
        client.subscribe(TOPIC, "s") as consumer,
        client.transaction() as txn,
    ):
        await producer.send(b"x", txn=txn)
        with trio.testing.assert_checkpoints():
            await producer.submit(b"x", txn=txn)
        with trio.testing.assert_checkpoints():
            await consumer.acknowledge([], txn=txn)


def message() -> Message[bytes]:
    return Message(TOPIC, MessageId(1, 1), pb.MessageMetadata(), None, b"x")


async def cancelled(call: Callable[[], Awaitable[object]]) -> bool:
    with anyio.CancelScope() as scope:
        scope.cancel()
        await call()
    return scope.cancelled_caught


@on_both
async def test_a_canceled_call_had_no_effect() -> None:
    """A canceled `submit` publishes nothing and uses no sequence id."""
    async with playing() as (_, client), client.create_producer(TOPIC) as producer:
        assert await cancelled(partial(producer.submit, b"x"))
        await producer.submit(b"y")
        await producer.flush()
        assert producer.last_sequence_id() == 0


@on_both
async def test_a_message_whose_receiving_was_cancelled_is_not_lost() -> None:
    async with subscribed() as (played, peer, consumer):
        await deliver(peer)
        await queued(consumer, 1)
        assert await cancelled(consumer.receive)
        message = await consumer.receive()
        assert await cancelled(partial(consumer.acknowledge, message))
        await consumer.acknowledge(message)
        await played.sent(Type.ACK)
        assert played.count(Type.ACK) == 1


@on_both
async def test_a_letter_that_was_published_is_acknowledged_although_it_was_cancelled_then() -> None:
    options: dict[str, Any] = {"consumer_type": ConsumerType.Shared, "retry_enable": True}
    async with playing() as (played, client), client.subscribe(TOPIC, "s", **options) as consumer:
        send = consumer._letters.send
        with anyio.CancelScope() as scope:

            async def send_and_cancel(*arguments: Any, **options: Any) -> None:
                await send(*arguments, **options)
                scope.cancel()

            consumer._letters.send = send_and_cancel  # type: ignore[method-assign]
            await consumer.reconsume_later(message(), 1)
        await played.sent(Type.ACK)
        assert (played.count(Type.SEND), played.count(Type.ACK)) == (1, 1)


@on_both
async def test_closing_in_a_canceled_scope_closes() -> None:
    async with playing() as (played, client):
        producer = await client.create_producer(TOPIC).__aenter__()
        assert await cancelled(producer.aclose)
        await played.sent(Type.CLOSE_PRODUCER)
        with pytest.raises(AlreadyClosed):
            producer.send_nowait(b"x")
        played.on[Type.GET_LAST_MESSAGE_ID] = saying(
            Type.GET_LAST_MESSAGE_ID_RESPONSE, last_message_id=pb.MessageIdData(ledgerId=2**64 - 1, entryId=2**64 - 1)
        )
        receiving: list[AbstractAsyncContextManager[object]] = [
            client.subscribe(TOPIC, "s"),
            client.create_reader(TOPIC, MessageId.earliest),
            client.create_raw_reader(TOPIC, MessageId.earliest),
            client.create_table_view(TOPIC),
        ]
        for number, made in enumerate(receiving, start=1):
            with anyio.CancelScope() as scope:
                async with made:
                    scope.cancel()
            await played.sent(Type.CLOSE_CONSUMER, number)
        (connection,) = connections_of(client)
        assert await cancelled(client.aclose)
        assert connection.is_lost


@on_both
async def test_a_producer_that_is_cancelled_while_it_waits_for_receipts_is_closed() -> None:
    async with playing() as (played, client), client.create_producer(TOPIC) as producer:
        played.on[Type.SEND] = silence
        receipt = await producer.submit(b"x")
        assert await cancelled(producer.aclose)
        await played.sent(Type.CLOSE_PRODUCER)
        with pytest.raises(AlreadyClosed):
            await receipt.wait()


@on_both
async def test_a_producer_may_be_closed_twice_at_once() -> None:
    async with (
        playing() as (_, client),
        client.create_producer(TOPIC) as producer,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(producer.aclose)
        tasks.start_soon(producer.aclose)
