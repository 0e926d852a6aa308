"""A session without a socket: it receives bytes, and its own bytes wait for the test."""

from __future__ import annotations

import pytest

from pulsarium.broker.session.outgoing import HIGH_WATER, MOST_WAITING
from pulsarium.broker.session.session import sessions_of
from tests.broker.session.session import Full, full
from tests.broker.wire import TOPIC, Bed, Earliest, Exclusive, Shared, Type, frame_of, plain

__all__ = ["full"]  # the fixture


@pytest.mark.parametrize("type", [Exclusive, Shared])
async def test_messages_stop_where_nobody_takes_them(bed: Bed, full: Full, type: int) -> None:
    sender = await bed.connect()
    await sender.producer()
    size = 10_000
    for _ in range(5):
        await sender.publish(*[plain(bytes(size))] * 100)
    full.give(
        frame_of(
            Type.SUBSCRIBE,
            topic=TOPIC,
            subscription="s",
            subType=type,
            consumer_id=0,
            request_id=1,
            initialPosition=Earliest,
        )
    )
    assert full.take() == [Type.SUCCESS]
    full.give(frame_of(Type.FLOW, consumer_id=0, messagePermits=50))
    received = len(full.take())  # from here on, no block of the cache ends exactly where the room ends
    full.give(frame_of(Type.FLOW, consumer_id=0, messagePermits=1000))
    while full.session.outgoing.size:
        assert full.session.outgoing.size < HIGH_WATER + 20_000
        kinds = full.take()
        assert set(kinds) == {Type.MESSAGE}
        received += len(kinds)
    assert received == 500


async def test_a_client_that_only_asks_is_not_read_for_ever(full: Full, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_WAITING < 16 << 20
    monkeypatch.setattr("pulsarium.broker.session.outgoing.MOST_WAITING", 100_000)
    ask = frame_of(Type.LOOKUP, topic=TOPIC, request_id=1)
    requests = 0
    while full.session.may_read:
        full.give(ask * 10)
        requests += 10
        assert full.session.outgoing.size < 110_000
    answered = len(full.take())
    assert requests - 10 < answered < requests  # some requests wait until the session has room
    assert answered + len(full.take()) == requests
    assert full.session.may_read


async def test_a_session_closes_once(bed: Bed, full: Full, caplog: pytest.LogCaptureFixture) -> None:
    full.session.close("first")
    full.session.close("second")
    full.give(frame_of(Type.PING))
    assert "first" in caplog.text
    assert "second" not in caplog.text
    assert full.session.room == 0


async def test_a_fault_in_a_handler_closes_its_connection_only(
    bed: Bed, full: Full, caplog: pytest.LogCaptureFixture
) -> None:
    def faulty(session: object, cmd: object, trailing: bytes) -> None:
        raise ValueError("a fault in the broker")

    other = await bed.connect()
    (session,) = sessions_of(bed.broker)
    session.gate.handlers = {**session.gate.handlers, Type.PING: faulty}
    await other.send(Type.PING)
    assert await other.closed() == []
    assert "a fault in the broker" in caplog.text
    assert "a command failed in the broker" in caplog.text
    full.give(frame_of(Type.LOOKUP, topic=TOPIC, request_id=1))
    assert full.take() == [Type.LOOKUP_RESPONSE]
