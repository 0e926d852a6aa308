"""Connections that send much give way to others, after each slice of their work."""

from __future__ import annotations

import math

import pytest

from pulsarium.broker.net import slices
from pulsarium.broker.session import gate
from pulsarium.broker.session.session import Session, sessions_of
from pulsarium.proto.commands import CommandSpec
from pulsarium.proto.framing import frame
from pulsarium.proto.topic_name import TopicName
from tests.broker.commands.minimal import at_work, command_of, name_of
from tests.broker.session.session import used_much
from tests.broker.wire import Bed, Shared, Type, frame_of, plain
from yardsticks.bench.minimal import FROM_CLIENTS

FLOOD = 20
"""Frames of a flood. A connection that gives way has handled fewer of them when another is served."""

FLOODS = [spec for spec in FROM_CLIENTS if spec.type != Type.CONNECT]


@pytest.fixture
def one_frame_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make slices so short that each frame takes a whole one, and forget no use, however slow the machine is."""
    monkeypatch.setattr(slices, "SLICE", 0)
    monkeypatch.setattr(slices, "HALF_LIFE", math.inf)
    monkeypatch.setattr(gate, "LONGEST_RUN", 1)


def session_of(bed: Bed) -> Session:
    """Return the session of the only connection."""
    (session,) = sessions_of(bed.broker)
    return session


def flood_of(spec: CommandSpec) -> bytes:
    entry = plain(b"a") if spec.type == Type.SEND else b""
    return frame(command_of(spec).SerializeToString(), entry) * FLOOD


@pytest.mark.parametrize("spec", FLOODS, ids=name_of)
async def test_a_client_that_pings_is_answered_before_the_flood_of_another_ends(
    bed: Bed, one_frame_a_slice: None, spec: CommandSpec
) -> None:
    greedy = await at_work(bed, spec)
    session = session_of(bed)
    used_much(bed)
    polite = await bed.connect()
    await greedy.write(flood_of(spec))
    await polite.alive()
    assert session.gate.waits or session.closed


async def test_a_ping_does_not_wait_behind_the_floods_of_many(bed: Bed, one_frame_a_slice: None) -> None:
    crowd = [await bed.connect() for _ in range(10)]
    used_much(bed)
    polite = await bed.connect()
    for each in crowd:
        await each.write(frame_of(Type.PING) * FLOOD)
    await polite.alive()
    assert len([session for session in sessions_of(bed.broker) if session.gate.waits]) == len(crowd)
    assert [len(await each.rest()) for each in crowd] == [FLOOD] * len(crowd)


async def test_time_that_other_processes_of_the_machine_take_ends_no_slice(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire = await bed.connect()
    later: list[object] = []
    monkeypatch.setattr(slices, "SLICE", 1e-9)  # over at once, but for the processor's time, which stands still
    monkeypatch.setattr(slices, "thread_time", lambda: 0.0)
    monkeypatch.setattr(slices.FairQueue, "is_crowded", False)
    monkeypatch.setattr(bed.broker.turn, "next_slice", lambda *work: later.append(work))
    await wire.write(frame_of(Type.PING) * FLOOD)
    assert len(await wire.rest()) == FLOOD
    assert later == []


async def test_the_frames_of_a_connection_keep_their_order(bed: Bed, one_frame_a_slice: None) -> None:
    wire = await bed.connect()
    await wire.producer()
    sends = wire.sends(*[plain(b"%d" % number) for number in range(FLOOD)])
    await wire.write(sends + wire.numbered(Type.CLOSE_PRODUCER, producer_id=0) + frame_of(Type.PING))
    positions = await wire.receipts(FLOOD)
    assert positions == sorted(positions)
    await wire.expect(Type.SUCCESS)
    await wire.expect(Type.PONG)


async def test_bytes_that_are_no_frame_end_a_connection_after_the_frames_before_them(
    bed: Bed, one_frame_a_slice: None
) -> None:
    wire = await bed.connect()
    await wire.write(frame_of(Type.PING) * FLOOD + b"\xff" * 8)
    assert [each.command.type for each in await wire.closed()] == [Type.PONG] * FLOOD


@pytest.mark.parametrize("type", [Type.GET_TOPICS_OF_NAMESPACE, Type.WATCH_TOPIC_LIST])
async def test_a_pattern_over_many_topics_gives_way(bed: Bed, one_frame_a_slice: None, type: int) -> None:
    greedy = await bed.connect()
    used_much(bed)
    polite = await bed.connect()
    for number in range(FLOOD):
        bed.broker.topics.create(TopicName.parse(f"t{number}"))
    asked = {"namespace": "public/default", "topics_pattern": "public/default/t.*"}
    await greedy.write(greedy.numbered(type, **asked, **({"watcher_id": 1} if type == Type.WATCH_TOPIC_LIST else {})))
    await polite.alive()
    assert await greedy.rest(0) == []
    (answer,) = await greedy.rest()
    assert f"t{FLOOD - 1}" in str(answer.command)


async def test_the_end_of_a_connection_with_many_consumers_gives_way(bed: Bed, one_frame_a_slice: None) -> None:
    crowded = await bed.connect()
    used_much(bed)
    polite = await bed.connect()
    for consumer_id in range(FLOOD):
        await crowded.subscribe(consumer_id=consumer_id, type=Shared)
    await crowded.aclose()
    await polite.alive()
    subscription = bed.subscription()
    assert 0 < len(subscription.consumers) < FLOOD
    await polite.quiet()
    assert not subscription.consumers


async def test_topics_may_be_unloaded_while_their_consumers_leave(
    bed: Bed, one_frame_a_slice: None, caplog: pytest.LogCaptureFixture
) -> None:
    crowded = await bed.connect()
    used_much(bed)
    polite = await bed.connect()
    for consumer_id in range(FLOOD):
        await crowded.subscribe(consumer_id=consumer_id, type=Shared)
    await crowded.aclose()
    await polite.alive()
    bed.broker.topics.unload(bed.topic().name)
    await polite.quiet()
    assert "failed" not in caplog.text


async def test_delivery_to_many_subscriptions_gives_way(bed: Bed, one_frame_a_slice: None) -> None:
    crowded = await bed.connect()
    used_much(bed)
    polite = await bed.connect()
    for consumer_id in range(FLOOD):
        await crowded.subscribe(name=f"s{consumer_id}", consumer_id=consumer_id)
        await crowded.flow(10, consumer_id)
    await polite.producer()
    await polite.publish(plain(b"x"))
    await polite.alive()
    consumers = [consumer for each in bed.topic().subscriptions.values() for consumer in each.consumers]
    assert sum(consumer.messages_out for consumer in consumers) < FLOOD
    assert len(await crowded.rest()) == FLOOD
