"""Interceptors of a producer: their changes, their calls, and their errors."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from pulsarium.client import MessageId, MessageOptions, Producer, ProducerInterceptor, PulsarError, errors
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.hostile.clocks import on_both
from tests.client.producer.stage import producing


class Adding(ProducerInterceptor[bytes]):
    """An interceptor that adds its name to contents and properties, and records its calls."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.heard: list[tuple[bytes | None, MessageId | None, str | None]] = []
        self.closed = 0

    def before_send(
        self, producer: Producer[bytes], content: bytes | None, options: MessageOptions
    ) -> tuple[bytes | None, MessageOptions]:
        assert producer.producer_name() == "named"
        options["properties"] = {**(options.get("properties") or {}), self.name: "seen"}
        return (content or b"") + self.name.encode(), options

    def on_send_acknowledgement(
        self,
        producer: Producer[bytes],
        content: bytes | None,
        options: MessageOptions,
        message_id: MessageId | None,
        error: PulsarError | None,
    ) -> None:
        assert self.name in (options.get("properties") or {})
        self.heard.append((content, message_id, type(error).__name__ if error else None))

    def close(self) -> None:
        self.closed += 1


class Failing(ProducerInterceptor[bytes]):
    def before_send(self, producer: Producer[bytes], content: bytes | None, options: MessageOptions) -> Any:
        options["partition_key"] = "lost"
        raise KeyError("before")

    def on_send_acknowledgement(self, *arguments: object) -> None:
        raise KeyError("behind")

    def close(self) -> None:
        raise KeyError("close")


class Useless(ProducerInterceptor[bytes]):
    """An interceptor that changes nothing."""


@on_both
async def test_each_changes_what_the_one_before_made() -> None:
    one, two = Adding("a"), Adding("b")
    async with producing(batching_enabled=False, interceptors=[one, Useless(), two]) as stage:
        given = {"mine": "1"}
        receipt = stage.producer.send_nowait(b"-", properties=given)
        _, metadata, payload = await stage.sent()
        assert payload == b"-ab"
        assert {pair.key for pair in metadata.properties} == {"mine", "a", "b"}
        assert given == {"mine": "1"}
        await stage.receipt(0, 3)
        await receipt.wait()
        assert one.heard == two.heard == [(b"-ab", MessageId(9, 3), None)]
        assert (one.closed, two.closed) == (0, 0)
    assert (one.closed, two.closed) == (1, 1)


@on_both
async def test_they_hear_of_what_fails() -> None:
    one = Adding("a")
    async with producing(max_pending_messages=2, batching_enabled=False, interceptors=[one]) as stage:
        refused = stage.producer.send_nowait(b"1")
        stage.producer.send_nowait(b"2")
        with pytest.raises(errors.ProducerQueueIsFull):
            stage.producer.send_nowait(b"3")
        await stage.payloads(2)
        await stage.refuse(0, pb.NotAllowedError)
        with pytest.raises(errors.NotAllowedError):
            await refused.wait()
    with pytest.raises(errors.AlreadyClosed):
        await stage.producer.send(b"4")
    assert one.heard == [
        (b"3a", None, "ProducerQueueIsFull"),
        (b"1a", None, "NotAllowedError"),
        (b"2a", None, "AlreadyClosed"),
        (b"4a", None, "AlreadyClosed"),
    ]


@on_both
async def test_exceptions_of_interceptors_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    one = Adding("a")
    with caplog.at_level(logging.WARNING, "pulsarium.client"):
        async with producing(batching_enabled=False, interceptors=[Failing(), one]) as stage:
            receipt = stage.producer.send_nowait(b"-")
            _, metadata, payload = await stage.sent()
            assert (payload, metadata.HasField("partition_key")) == (b"-a", False)
            await stage.receipt(0, 3)
            assert await receipt.wait() == MessageId(9, 3)
    assert one.heard == [(b"-a", MessageId(9, 3), None)]
    assert one.closed == 1
    names = [record.message.split(" ")[0] for record in caplog.records]
    assert names == ["before_send", "on_send_acknowledgement", "close"]
