"""Keep-alive, and the check before an owner is evicted. The clock jumps over the half minutes."""

from __future__ import annotations

import pytest

from pulsarium.broker.clock import Clock
from pulsarium.broker.config import Config
from pulsarium.broker.session.liveness import Liveness
from tests.broker.wire import TOPIC, Bed, Shared, Type, Wire, frame_of, plain


async def silent_until(wire: Wire, bed: Bed, seconds: float, since: float) -> None:
    """Expect no frame until just before `seconds` have passed since `since`."""
    await wire.quiet(since + seconds - bed.broker.clock.monotonic() - 0.01)


@pytest.mark.req("W-12")
async def test_a_ping_every_half_minute_whatever_else_is_said(bed: Bed, wire: Wire) -> None:
    started = bed.broker.clock.monotonic()
    for number in range(1, 5):
        await silent_until(wire, bed, 30 * number, started)
        await wire.expect(Type.PING, within=0.1)
        await wire.send(Type.PONG if number % 2 else Type.PING)
        if number % 2 == 0:
            await wire.expect(Type.PONG)


@pytest.mark.req("W-12")
async def test_silence_for_two_intervals_closes(bed: Bed, wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    started = bed.broker.clock.monotonic()
    await silent_until(wire, bed, 30, started)
    await wire.expect(Type.PING, within=0.1)
    await silent_until(wire, bed, 60, started)
    assert await wire.closed(0.1) == []
    assert "no answer to PING" in caplog.text


@pytest.mark.req("W-12")
@pytest.mark.parametrize("sign", [frame_of(Type.PONG), frame_of(Type.FLOW, consumer_id=9, messagePermits=1), b"\0"])
async def test_any_bytes_are_a_sign_of_life(bed: Bed, wire: Wire, sign: bytes) -> None:
    for _ in range(3):
        await wire.expect(Type.PING, within=31)
        await wire.quiet(25)
        await wire.write(sign)


@pytest.mark.req("W-12", "W-06")
async def test_without_connect_one_interval_is_enough(bed: Bed, caplog: pytest.LogCaptureFixture) -> None:
    wire = bed.dial()
    await wire.alive()
    await wire.quiet(29.9)
    assert await wire.closed(0.2) == []
    assert "no CONNECT" in caplog.text


@pytest.mark.req("W-12")
async def test_clients_of_version_0_are_not_pinged_nor_closed(bed: Bed) -> None:
    old = await bed.connect(0)
    await old.quiet(1000)
    await old.alive()


@pytest.mark.req("W-12", "P-02")
async def test_but_they_are_asked_whether_they_live(bed: Bed, wire: Wire) -> None:
    old = await bed.connect(0)
    await old.producer(producer_name="p")
    await wire.write(wire.numbered(Type.PRODUCER, topic=TOPIC, producer_id=0, producer_name="p"))
    await old.expect(Type.PING)
    await old.send(Type.PONG)
    assert (await wire.reply(1)).type == Type.ERROR


@pytest.mark.req("W-12")
@pytest.mark.serving(Config(keepAliveIntervalSeconds=3))
async def test_the_interval_is_configured(wire: Wire) -> None:
    await wire.quiet(2.9)
    await wire.expect(Type.PING, within=0.2)
    await wire.quiet(2.9)
    assert await wire.closed(0.2) == []


@pytest.mark.req("W-12")
@pytest.mark.serving(Config(keepAliveIntervalSeconds=0))
async def test_keep_alive_may_be_off(bed: Bed) -> None:
    wire, silent = await bed.connect(), bed.dial()
    await wire.quiet(10_000)
    await silent.quiet(10_000)
    await silent.connect()


@pytest.mark.req("W-12", "B-18")
async def test_messages_of_a_dead_client_go_to_others(bed: Bed, wire: Wire) -> None:
    other = await bed.connect()
    for consumer in (wire, other):
        await consumer.subscribe(type=Shared)
    await wire.flow(10)
    sender = await bed.connect()
    await sender.producer()
    await sender.publish(plain(b"a"), plain(b"b"))
    await wire.messages(2)
    await other.flow()
    for living in (sender, other):
        await living.expect(Type.PING, within=31)
        await living.send(Type.PONG)
    assert [r.command.type for r in await wire.closed(61)] == [Type.PING]
    await other.expect(Type.PING)
    assert await other.payloads(2) == [b"a", b"b"]


# Liveness alone


class Connection:
    """A connection that Liveness watches."""

    paused = False

    def __init__(self) -> None:
        self.pings = 0
        self.closed = ""
        self.liveness: Liveness | None = None

    def ping(self, *, unasked: bool) -> bool:
        self.pings += 1
        return True

    def close(self, reason: str) -> None:
        self.closed = reason
        assert self.liveness is not None
        self.liveness.stop()


def watch(clock: Clock, timeout_ms: int = 5000) -> tuple[Connection, Liveness]:
    connection = Connection()
    connection.liveness = liveness = Liveness(connection, clock, 0, timeout_ms)
    return connection, liveness


async def test_several_that_ask_share_one_ping(bed: Bed) -> None:
    connection, liveness = watch(bed.broker.clock)
    answers: list[bool] = []
    liveness.check(answers.append)
    liveness.check(answers.append)
    assert (connection.pings, answers) == (1, [])
    liveness.heard()
    assert answers == [True, True]
    liveness.check(answers.append)
    assert connection.pings == 2
    liveness.stop()
    assert answers == [True, True, False]
    assert connection.closed == ""


async def test_an_answer_may_ask_again(bed: Bed) -> None:
    connection, liveness = watch(bed.broker.clock)
    answers: list[bool] = []

    def once_more(alive: bool) -> None:
        answers.append(alive)
        if len(answers) == 1:
            liveness.check(once_more)

    liveness.check(once_more)
    liveness.heard()
    assert answers == [True]
    liveness.heard()
    assert (connection.pings, answers) == (2, [True, True])


async def test_no_check_where_there_is_no_time_for_it(bed: Bed) -> None:
    connection, liveness = watch(bed.broker.clock, timeout_ms=0)
    answers: list[bool] = []
    liveness.check(answers.append)
    assert (connection.pings, answers) == (0, [True])
