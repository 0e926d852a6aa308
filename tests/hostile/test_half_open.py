"""Clients that send requests and read no answers. Their memory is bounded, and keep-alive closes their connections."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from pulsarium.broker.config import Config
from pulsarium.broker.session.outgoing import MOST_WAITING
from pulsarium.broker.session.session import sessions_of
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.held import HeldStorage
from tests.broker.loopback import listening, until
from tests.broker.session.session import Full, full
from tests.broker.wire import TOPIC, Bed, Type, frame_of, plain

__all__ = ["full"]

MB = 1 << 20
DEFINITION = b'{"type":"record","name":"R","doc":"%s","fields":[]}' % (b"x" * MB)
ASK = frame_of(Type.GET_SCHEMA, topic=TOPIC, request_id=1)
TOPICS = frame_of(Type.GET_TOPICS_OF_NAMESPACE, namespace="public/default", request_id=1)


async def schema_of_a_megabyte(bed: Bed) -> None:
    sender = await bed.connect()
    await sender.producer(schema={"name": "s", "schema_data": DEFINITION, "type": pb.Schema.Avro})


async def test_short_questions_with_long_answers(full: Full, bed: Bed) -> None:
    """The broker reads hundreds of requests at once, and answers only a bufferful until the client reads."""
    await schema_of_a_megabyte(bed)
    full.give(ASK * 500)
    assert full.session.outgoing.size < MOST_WAITING + 2 * MB
    assert not full.session.may_read
    answered = full.take()
    assert MOST_WAITING // MB - 1 < len(answered) < 20
    while len(answered) < 500:
        assert full.session.outgoing.size < MOST_WAITING + 2 * MB
        found = full.take()
        assert found
        answered += found
    assert answered == [Type.GET_SCHEMA_RESPONSE] * 500
    assert full.session.may_read


async def test_they_wait_for_a_commit_and_are_bounded_too() -> None:
    """The broker also counts the bytes of answers that wait for the commit of an earlier message."""
    storage = HeldStorage()
    async with listening(storage=storage) as loopback:
        wire = await loopback.connect()
        await wire.producer(schema={"name": "s", "schema_data": DEFINITION, "type": pb.Schema.Avro})
        (session,) = sessions_of(loopback.broker)
        storage.holding = True
        await wire.write(wire.sends(plain(b"x")) + ASK * 100)
        await until(lambda: not session.may_read)
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert session._promised < MOST_WAITING + 2 * MB
        assert not session.may_read
        storage.release()
        await wire.expect(Type.SEND_RECEIPT)
        for _ in range(100):
            await wire.expect(Type.GET_SCHEMA_RESPONSE)
        await wire.alive()


@pytest.mark.req("W-12")
async def test_keep_alive_ends_it(full: Full, bed: Bed, caplog: pytest.LogCaptureFixture) -> None:
    """The broker reads no PONG from this client. It would wait longer only for a client over a publish limit."""
    await schema_of_a_megabyte(bed)
    full.give(ASK * 500)
    assert not full.session.may_read
    await trio.sleep(61)
    assert full.session.closed
    assert "no answer to PING" in caplog.text
    assert not full.session.gate._waiting


async def test_others_have_their_turn_between_long_answers() -> None:
    async with listening() as loopback:
        greedy, other = await loopback.connect(), await loopback.connect()
        await greedy.producer(schema={"name": "s", "schema_data": DEFINITION, "type": pb.Schema.Avro})
        await greedy.write(ASK * 200)
        await other.alive()  # the greedy client has read nothing yet, so the broker has not answered all its requests
        for _ in range(200):
            await greedy.expect(Type.GET_SCHEMA_RESPONSE)


async def test_a_half_open_watcher_does_not_hold_up_others(full: Full, bed: Bed) -> None:
    """The broker still sends updates to the watcher, until keep-alive closes its connection."""
    full.give(
        frame_of(Type.WATCH_TOPIC_LIST, namespace="public/default", topics_pattern=".*", request_id=1, watcher_id=1)
    )
    assert full.take() == [Type.WATCH_TOPIC_LIST_SUCCESS]
    other = await bed.connect()
    for number in range(50):
        await other.producer(f"persistent://public/default/t{number}", producer_id=number)
    assert full.take() == [Type.WATCH_TOPIC_UPDATE] * 50


@pytest.mark.req("W-12")
async def test_a_peer_that_vanished_is_found_out_and_owes_nothing(mock_clock: MockClock) -> None:
    """The peer never sends a FIN. After two keep-alive intervals, its subscription is free for other consumers."""
    async with listening(Config(keepAliveIntervalSeconds=3)) as loopback:
        gone = await loopback.connect(receive_buffer=4096)
        await gone.producer()
        await gone.write(gone.sends(*[plain(bytes(MB))] * 4))
        await gone.subscribe(initialPosition=pb.CommandSubscribe.Earliest)
        await gone.flow()
        while loopback.broker.sessions:  # the peer neither reads nor writes
            mock_clock.jump(3)
            await trio.testing.wait_all_tasks_blocked(0.001)
        other = await loopback.connect()
        await other.subscribe()
