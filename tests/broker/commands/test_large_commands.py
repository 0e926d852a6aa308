"""Commands with so many parts that a thread reads them: other clients are served meanwhile, and the order stays."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing

from pulsarium.broker.commands import consumer, subscribe
from pulsarium.broker.model.cursor.records import CursorProperties
from pulsarium.broker.model.subscription.options import HashRanges
from tests.broker.wire import TOPIC, Bed, Cumulative, KeyShared, Type, Wire, frame_of, message_id

RANGES = {"keySharedMode": 1, "hashRanges": [{"start": 10, "end": 20}, {"start": 30, "end": 40}]}
PROPERTIES = [{"key": "a", "value": 1}, {"key": "b", "value": 2}]


class Held:
    """Work of a thread, which begins when the test lets it."""

    def __init__(self, work: Callable[..., object]) -> None:
        self.may_begin, self.has_ended = threading.Event(), threading.Event()
        self._work = work

    def __call__(self, *about: object) -> object:
        assert self.may_begin.wait(30)
        try:
            return self._work(*about)
        finally:
            self.has_ended.set()

    async def end(self, bed: Bed) -> None:
        """Let the work end, without letting the test's clock jump."""
        self.may_begin.set()
        while not (self.has_ended.is_set() and bed.broker.turn.is_settled):
            await trio.lowlevel.checkpoint()


@pytest.fixture
def ranges(monkeypatch: pytest.MonkeyPatch) -> Held:
    """Hold the reading of the hash ranges of SUBSCRIBE, of which two are many."""
    held = Held(HashRanges)
    monkeypatch.setattr(subscribe, "AT_ONCE", 1)
    monkeypatch.setattr(subscribe, "HashRanges", held)
    return held


@pytest.fixture
def properties(monkeypatch: pytest.MonkeyPatch) -> Held:
    """Hold the reading of the properties of ACK, of which two are many."""
    held = Held(CursorProperties)
    monkeypatch.setattr(consumer, "PROPERTIES_AT_ONCE", 1)
    monkeypatch.setattr(consumer, "CursorProperties", held)
    return held


def subscribing(wire: Wire, **fields: Any) -> bytes:
    return wire.numbered(
        Type.SUBSCRIBE,
        topic=TOPIC,
        subscription="sub",
        subType=KeyShared,
        consumer_id=0,
        keySharedMeta=RANGES,
        **fields,
    )


async def test_others_are_served_while_the_ranges_of_a_consumer_are_read(bed: Bed, ranges: Held) -> None:
    wire, polite = await bed.connect(), await bed.connect()
    await wire.write(subscribing(wire) + frame_of(Type.PING))
    await polite.alive()
    assert await wire.rest(0) == []
    await ranges.end(bed)
    assert [(await wire.next()).command.type for _ in range(2)] == [Type.PONG, Type.SUCCESS]
    (joined,) = bed.subscription().consumers
    assert joined.key_shared.ranges.pairs == ((10, 20), (30, 40))


async def test_a_consumer_may_bring_many_ranges_and_a_large_schema(
    bed: Bed, ranges: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pulsarium.broker.model.schema.registry.LARGE", -1)
    wire = await bed.connect()
    await wire.write(subscribing(wire, schema={"name": "", "schema_data": b"", "type": 1}) + frame_of(Type.PING))
    await ranges.end(bed)
    assert {(await wire.next()).command.type for _ in range(2)} == {Type.PONG, Type.SUCCESS}
    assert len(bed.subscription().consumers) == 1


async def test_a_consumer_whose_connection_ends_while_its_ranges_are_read_leaves_again(bed: Bed, ranges: Held) -> None:
    wire, polite = await bed.connect(), await bed.connect()
    await wire.write(subscribing(wire))
    await polite.alive()
    await wire.aclose()
    await ranges.end(bed)
    await trio.testing.wait_all_tasks_blocked()
    await polite.alive()
    assert not bed.subscription().consumers


async def test_others_are_served_while_the_properties_of_an_acknowledgement_are_read(
    bed: Bed, properties: Held
) -> None:
    wire, polite = await bed.connect(), await bed.connect()
    await wire.producer()
    await wire.subscribe()
    first, _ = await wire.publish_numbered(2)
    acking = wire.numbered(
        Type.ACK, consumer_id=0, ack_type=Cumulative, message_id=[message_id(first)], properties=PROPERTIES
    )
    await wire.write(acking + frame_of(Type.PING))
    await polite.alive()
    assert await wire.rest(0) == []
    await properties.end(bed)
    assert {(await wire.next()).command.type for _ in range(2)} == {Type.PONG, Type.ACK_RESPONSE}
    cursor = bed.subscription().cursor
    assert (cursor.mark_delete, cursor.properties) == (first, {"a": 1, "b": 2})


async def test_a_command_that_a_thread_cannot_read_ends_its_connection(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*about: object) -> object:
        raise RuntimeError("a planted fault")

    held = Held(broken)
    monkeypatch.setattr(subscribe, "AT_ONCE", 1)
    monkeypatch.setattr(subscribe, "HashRanges", held)
    wire, polite = await bed.connect(), await bed.connect()
    await wire.write(subscribing(wire))
    await held.end(bed)
    await wire.closed()
    await polite.alive()
    assert "a planted fault" in caplog.text


async def test_the_properties_of_a_large_subscription_are_kept(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(subscribe.Lists)
    monkeypatch.setattr(subscribe, "AT_ONCE", 1)
    monkeypatch.setattr(subscribe, "Lists", held)
    wire, polite = await bed.connect(), await bed.connect()
    pairs = [{"key": "a", "value": "b"}, {"key": "c", "value": "d"}]
    await wire.write(
        wire.numbered(
            Type.SUBSCRIBE, topic=TOPIC, subscription="sub", subType=0, consumer_id=0, subscription_properties=pairs
        )
    )
    await polite.alive()
    assert await wire.rest(0) == []
    await held.end(bed)
    await wire.expect(Type.SUCCESS)
    assert bed.subscription().cursor.cursor_properties == {"a": "b", "c": "d"}
