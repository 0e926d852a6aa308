"""Faults inside the broker: the connection or the request with the fault ends, and the broker serves all others.

Faults of timers, of housekeeping, of dispatch and of a commit's callbacks are tested in tests/broker/test_clock.py and
test_turn.py, and faults of REST handlers in tests/broker/web/http/. The tests here check what protects
other connections.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
import trio
import trio.testing

from pulsarium.broker.lab.lab import Lab
from pulsarium.broker.lab.tap import Taps
from pulsarium.broker.model import upkeep
from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger
from pulsarium.broker.model.subscription.base import Subscription
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.session.outgoing import OutgoingFrames
from pulsarium.broker.session.session import Session, Sessions, sessions_of
from pulsarium.broker.session.transport import SocketTransport
from pulsarium.broker.web.http import connection
from pulsarium.proto.commands import Direction
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.held import HeldStorage
from tests.broker.loopback import Loopback, listening
from tests.broker.web.http.served import TENANTS, answer, served
from tests.broker.wire import Bed, Earliest, Shared, Type, Wire, plain, serving


def fault(*_: object, **__: object) -> Any:
    raise RuntimeError("a fault in the broker")


@contextmanager
def once(owner: Any, name: str) -> Iterator[None]:
    """Make the first call of a method raise an error. All later calls work as usual."""
    as_ever = getattr(owner, name)
    calls = iter([fault])

    def call(*args: Any, **named: Any) -> Any:
        return next(calls, as_ever)(*args, **named)

    with patch.object(owner, name, call):
        yield


async def end(loopback: Loopback, wire: Wire) -> None:
    """Wait until the broker closes a connection, and hang up."""
    await wire.closed()
    await loopback.hang_up(wire)


async def goes_on(loopback: Loopback, other: Wire) -> None:
    """Check that the broker still serves an existing connection and a new one."""
    await other.publish(plain(b"x"))
    newcomer = await loopback.connect()
    await newcomer.producer()
    await newcomer.publish(plain(b"y"))


PARTS: dict[str, tuple[Any, str]] = {
    "writing": (SocketTransport, "_write"),
    "what waits": (OutgoingFrames, "take"),
    "room again": (Session, "drained"),
    "reading": (Session, "receive"),
    "the end": (Session, "ended"),
    "the model's part in the end": (Subscription, "remove_consumer"),
    "opening": (Taps, "opened"),
    "storing": (ManagedLedger, "append_run"),
}


@pytest.mark.parametrize("part", PARTS)
async def test_a_connection_ends_alone(part: str, caplog: pytest.LogCaptureFixture) -> None:
    async with listening() as loopback:
        taps = loopback.broker.cluster.attached(Lab).taps
        loopback.broker.cluster.attached(Sessions).opened.append(lambda session: taps.opened(session))  # noqa: PLW0108 -- the fault is put in later
        other = await loopback.connect()
        await other.producer()
        with once(*PARTS[part]):
            wire = await loopback.dial()
            try:
                await wire.connect()
                await wire.subscribe(name=part)
                await wire.producer()
                await wire.publish(plain(b"z"))
                await wire.stream.send_eof()  # type: ignore[attr-defined]
            except (AssertionError, trio.BrokenResourceError):
                pass
            await end(loopback, wire)
        await loopback.sessions(1)
        assert "a fault in the broker" in caplog.text
        await goes_on(loopback, other)


class Tap:
    """A faulty observer that a lab puts between a session and its transport."""

    held = 0
    may_read = True

    def __init__(self, name: str) -> None:
        setattr(self, name, fault)

    def incoming(self, frames: Any) -> Any:
        return frames

    def outgoing(self, data: bytes) -> list[bytes]:
        return [data]

    def ended(self) -> None: ...

    def closed(self, sender: Direction, reason: str) -> None: ...


@pytest.mark.parametrize("name", ["incoming", "outgoing", "ended", "closed"])
async def test_an_observer_of_the_lab(name: str, caplog: pytest.LogCaptureFixture) -> None:
    async with listening() as loopback:
        other = await loopback.connect()
        await other.producer()
        (old,) = sessions_of(loopback.broker)
        wire = await loopback.connect()
        (session,) = sessions_of(loopback.broker) - {old}
        session.outgoing.tap = Tap(name)
        await wire.send(Type.PING)
        await wire.stream.send_eof()  # type: ignore[attr-defined]
        await end(loopback, wire)
        await loopback.sessions(1)
        assert "a fault in the broker" in caplog.text
        await goes_on(loopback, other)


async def test_a_fault_at_one_consumer_frees_the_rest_of_its_connection(
    bed: Bed, caplog: pytest.LogCaptureFixture
) -> None:
    wire = await bed.connect()
    for number in range(3):
        await wire.subscribe(name=f"s{number}", consumer_id=number)
    await wire.producer(producer_name="p")
    with once(Subscription, "remove_consumer"):
        await wire.aclose()
        await trio.testing.wait_all_tasks_blocked()
    assert "a fault in the broker" in caplog.text
    other = await bed.connect()
    await other.subscribe(name="s1")
    await other.producer(producer_name="p")


async def test_a_store_that_raises_at_once(caplog: pytest.LogCaptureFixture, autojump_clock: object) -> None:
    """The broker treats the exception like a commit that fails later, and stores later messages."""
    storage = HeldStorage()
    async with serving(storage=storage) as bed:
        wire = await bed.connect()
        await wire.producer()
        with once(storage, "commit"):
            await wire.write(wire.sends(plain(b"lost")))
            assert (await wire.expect(Type.SEND_ERROR)).error == pb.PersistenceError
        assert "a fault in the broker" in caplog.text
        other = await bed.connect()
        await other.producer()
        await other.publish(plain(b"kept"))


async def test_a_fault_of_a_dispatcher_ends_one_connection_only(
    bed: Bed, wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    """The subscription delivers again with the next event that dispatches, such as a publish or a FLOW."""
    await wire.subscribe(type=Shared, initialPosition=Earliest)
    await wire.producer()
    with once(PersistentSubscription, "dispatch"):
        await wire.flow()
        await wire.alive()
    assert "a fault in the broker" in caplog.text
    await wire.publish(plain(b"x"))
    await wire.flow()
    assert await wire.payloads(1) == [b"x"]


@pytest.mark.parametrize("what", ["trim", "compact", "check_backlog"])
async def test_a_fault_of_upkeep_in_one_topic_spares_the_others(
    what: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, autojump_clock: object
) -> None:
    """The check of the topic that was loaded first fails each time that it runs."""
    check = getattr(upkeep, what)
    spared = []

    def check_all_but_one(topic: PersistentTopic) -> None:
        if topic.name.local_name == "faulty":
            fault()
        check(topic)
        spared.append(topic.name.local_name)

    monkeypatch.setattr(upkeep, what, check_all_but_one)
    async with serving() as bed:
        wire = await bed.connect()
        for number, name in enumerate(["faulty", "spared"]):
            await wire.producer(f"persistent://public/default/{name}", producer_id=number)
        for _ in range(20):
            await trio.sleep(29)
            await wire.send(Type.PONG)
        assert caplog.text.count("a periodic check of a topic failed") == len(spared) > 1
        assert set(spared) == {"spared"}
        await wire.rest()
        await wire.publish(plain(b"x"))


async def test_an_answer_of_http_that_cannot_be_made(caplog: pytest.LogCaptureFixture) -> None:
    async with served() as http, await http.connect() as good, await http.connect() as bad:
        with once(connection, "gathered"):
            await bad.send_all(b"GET /admin/v2/tenants HTTP/1.1\r\nHost: x\r\n\r\n")
            assert bytes(await bad.receive_some(1 << 16)).startswith(b"HTTP/1.1 500")
        assert (await answer(good))[1] == TENANTS


async def test_a_fault_of_one_topic_keeps_no_broker_from_ending(
    autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    """A fault while one topic is unloaded affects neither the other topics nor another broker."""
    async with serving(brokers=2) as bed:
        wire = await bed.connect()
        for number in range(3):
            await wire.ask(Type.LOOKUP, topic=f"persistent://public/default/t{number}", authoritative=True)
            await wire.producer(f"persistent://public/default/t{number}", producer_id=number)
        with once(bed.broker.topics, "unload"):
            bed.broker.stop()
        assert "a fault in the broker" in caplog.text
        assert not sessions_of(bed.broker)
        other = await bed.connect(broker=1)
        await other.ask(Type.LOOKUP, topic="persistent://public/default/t2", authoritative=True)
        await other.producer("persistent://public/default/t2")
        await other.publish(plain(b"x"))
