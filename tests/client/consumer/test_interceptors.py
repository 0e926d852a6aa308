"""Interceptors of a consumer, which are code of the application."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from trio.testing import MockClock

from pulsarium.client.consumer.consumer import Consumer
from pulsarium.client.consumer.interceptors import ConsumerInterceptor
from pulsarium.client.consumer.options import ConsumerType, InitialPosition
from pulsarium.client.consumer.policies import ConsumerBatchReceivePolicy
from pulsarium.client.errors import AlreadyClosed, InvalidConfiguration
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import plain
from tests.client.consumer.started import consuming, data_of, nothing_more, received, started


class Marks(ConsumerInterceptor):
    """An interceptor that records its calls, and puts its mark on messages."""

    def __init__(self, mark: bytes, heard: list[Any]) -> None:
        self.mark = mark
        self.heard = heard
        self.consumer: Consumer[Any] | None = None

    def before_consume(self, consumer: Consumer[Any], message: Message[Any]) -> Message[Any]:
        self.consumer = consumer
        return Message(
            message.topic_name(), message.message_id(), pb.MessageMetadata(), None, message.data() + self.mark
        )

    def on_acknowledge(self, consumer: Consumer[Any], message_id: MessageId, error: Exception | None) -> None:
        assert consumer is self.consumer
        self.heard.append((self.mark, "acknowledged", message_id, type(error)))

    def on_acknowledge_cumulative(
        self, consumer: Consumer[Any], message_id: MessageId, error: Exception | None
    ) -> None:
        assert consumer is self.consumer
        self.heard.append((self.mark, "cumulative", message_id, type(error)))

    def on_negative_acks_send(self, consumer: Consumer[Any], message_ids: set[MessageId]) -> None:
        assert consumer is self.consumer
        self.heard.append((self.mark, "refused", message_ids))

    def on_ack_timeout_send(self, consumer: Consumer[Any], message_ids: set[MessageId]) -> None:
        assert consumer is self.consumer
        self.heard.append((self.mark, "late", message_ids))

    def close(self) -> None:
        self.heard.append((self.mark, "closed"))


class Breaks(ConsumerInterceptor):
    """An interceptor that raises an error in each method."""

    def before_consume(self, consumer: Consumer[Any], message: Message[Any]) -> Message[Any]:
        raise KeyError("before_consume")

    def on_acknowledge(self, consumer: Consumer[Any], message_id: MessageId, error: Exception | None) -> None:
        raise KeyError("on_acknowledge")

    def on_negative_acks_send(self, consumer: Consumer[Any], message_ids: set[MessageId]) -> None:
        raise KeyError("on_negative_acks_send")

    def close(self) -> None:
        raise KeyError("close")


@pytest.mark.parametrize("kind", [ConsumerType.Exclusive, ConsumerType.Shared])
async def test_they_hear_everything_in_their_order(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture, kind: ConsumerType
) -> None:
    heard: list[Any] = []
    async with started() as (inside, client):
        wire = await inside.wire()
        async with client.subscribe(
            "t",
            "s",
            consumer_type=kind,
            initial_position=InitialPosition.Earliest,
            interceptors=[Marks(b"a", heard), Breaks(), Marks(b"b", heard)],
            negative_ack_redelivery_delay=1,
            unacked_messages_timeout=5,
            batch_receive_policy=ConsumerBatchReceivePolicy(1, 0, 0),
        ) as consumer:
            await wire.publish(plain(b"1"), plain(b"2"))
            (first,) = await received(consumer, 1)
            (second,) = await consumer.batch_receive()
            assert (first.data(), second.data()) == (b"1ab", b"2ab")
            one, two = first.message_id(), second.message_id()
            await consumer.acknowledge(one)
            assert heard == [(b"a", "acknowledged", one, type(None)), (b"b", "acknowledged", one, type(None))]
            heard.clear()
            consumer.negative_acknowledge(second)
            assert await data_of(consumer, 1) == [b"2ab"]
            assert heard == [(b"a", "refused", {two}), (b"b", "refused", {two})]
            heard.clear()
            assert await data_of(consumer, 1) == [b"2ab"]
            assert heard == [(b"a", "late", {two}), (b"b", "late", {two})]
            heard.clear()
            await consumer.acknowledge([first, second])
            assert [what[2] for what in heard] == [one, one, two, two]
            heard.clear()
            if kind is ConsumerType.Shared:
                with pytest.raises(InvalidConfiguration):
                    await consumer.acknowledge_cumulative(two)
            else:
                await consumer.acknowledge_cumulative(two)
            error = InvalidConfiguration if kind is ConsumerType.Shared else type(None)
            assert heard == [(b"a", "cumulative", two, error), (b"b", "cumulative", two, error)]
            heard.clear()
            await nothing_more(consumer, 20)
        assert heard == [(b"a", "closed"), (b"b", "closed")]
        heard.clear()
        with pytest.raises(AlreadyClosed):
            await consumer.acknowledge(one)
        assert [what[3] for what in heard] == [AlreadyClosed, AlreadyClosed]
    failed = {record.exc_info[1].args[0] for record in caplog.records if record.exc_info and record.exc_info[1]}
    assert failed == {"before_consume", "on_acknowledge", "on_negative_acks_send", "close"}
    assert {record.levelno for record in caplog.records} <= {logging.ERROR, logging.WARNING}


async def test_the_base_class_of_interceptors_changes_nothing(autojump_clock: MockClock) -> None:
    async with consuming(interceptors=[ConsumerInterceptor()]) as (_, wire, consumer):
        await wire.publish(plain(b"1"))
        (message,) = await received(consumer, 1)
        assert message.data() == b"1"
        await consumer.acknowledge(message)
        await consumer.acknowledge_cumulative(message)
