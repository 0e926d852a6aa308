"""Links that stay open: first tries, backoff, and the end of trying."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import pytest
from anyio.abc import TaskGroup
from trio.testing import MockClock

from pulsarium.client.connection.brokers import Brokers
from pulsarium.client.connection.connection import Connection
from pulsarium.client.connection.link import _NEXT, Link, LinkEvent, LinkState
from pulsarium.client.connection.service_url import BrokerAddress, BrokerUrls
from pulsarium.client.connection.waiting import Backoff, WaitingLog
from pulsarium.client.errors import (
    AlreadyClosed,
    ConnectError,
    OperationNotSupported,
    ProducerBusy,
    PulsarError,
    ServiceUnitNotReady,
    TopicNotFound,
    WrongProtocol,
)
from pulsarium.client.statistics import LinkCounts
from tests.client.both import run_on

LOSS = ConnectError("cut")
OWNER = BrokerUrls("pulsar://b:6650", "")
PROXY = BrokerAddress("proxy", 6650)


class FakeConnection:
    is_lost = False
    address = "a:6650"

    def __init__(self, proxy: BrokerAddress | None = None) -> None:
        self.proxy = proxy


class FakeBrokers:
    """Brokers that refuse as many tries as a test says. Their backoff has no jitter."""

    operation_timeout = 10.0
    patiently = Brokers.patiently

    def __init__(self, tasks: TaskGroup) -> None:
        self.waiting = WaitingLog()
        self.task_group = tasks
        self.unreachable = 0  # number of tries that still fail
        self.proxy: BrokerAddress | None = None
        self.named: list[tuple[BrokerUrls, BrokerAddress | None]] = []  # connections that were made without a lookup
        self.lookups = 0

    def new_backoff(self) -> Backoff:
        return Backoff(jitter=lambda: 0.0)

    async def connect_to(self, topic: str, cluster: BrokerUrls | None = None) -> FakeConnection:
        await anyio.lowlevel.checkpoint()
        if self.unreachable:
            self.unreachable -= 1
            raise ConnectError("nobody there")
        self.lookups += 1
        return FakeConnection(self.proxy)

    async def connect_to_broker(self, broker: BrokerUrls, proxy: BrokerAddress | None) -> FakeConnection:
        await anyio.lowlevel.checkpoint()
        self.named.append((broker, proxy))
        if broker != OWNER:
            raise OperationNotSupported("not this way")
        return FakeConnection(proxy)


class Opened:
    """An opening that records its times, and first raises `errors`."""

    def __init__(self, *errors: PulsarError) -> None:
        self.errors = list(errors)
        self.at: list[float] = []
        self.failed: list[PulsarError] = []

    async def open(self, connection: Connection) -> None:
        await anyio.lowlevel.checkpoint()
        self.at.append(round(anyio.current_time(), 3))
        if self.errors:
            raise self.errors.pop(0)


@asynccontextmanager
async def linking(opened: Opened) -> AsyncIterator[tuple[Link, FakeBrokers, Callable[[], list[float]]]]:
    """Yield a link, its brokers, and a function that returns the seconds from the start to each opening."""
    async with anyio.create_task_group() as tasks:
        brokers = FakeBrokers(tasks)
        link = Link(cast(Brokers, brokers), "t", opened.open, LinkCounts(), on_failed=opened.failed.append)
        start = anyio.current_time()
        yield link, brokers, lambda: [round(at - start, 2) for at in opened.at]
        await link.aclose()


def jumping(test: Any) -> Callable[[], None]:
    def run() -> None:
        run_on("trio", test, jump=True)

    run.__name__ = test.__name__
    return run


def test_the_backoff_doubles_up_to_its_most_and_begins_anew_after_success() -> None:
    backoff = Backoff(jitter=lambda: 0.0)
    delays = [backoff.next() for _ in range(12)]
    assert delays[:4] == [0.1, 0.2, 0.4, 0.8]
    assert delays[-2:] == [60.0, 60.0]
    backoff.worked(0.1)  # no success, but a broker answered
    assert [backoff.next(), backoff.next()] == [1.6, 3.2]
    backoff.worked(0.11)
    assert [backoff.is_first, backoff.next(), backoff.is_first] == [True, 0.1, False]
    assert Backoff(jitter=lambda: 1.0).next() == pytest.approx(0.09)


def test_the_table_says_where_every_event_leads() -> None:
    assert set(_NEXT) == set(LinkState)
    assert all(_NEXT[state][LinkEvent.END] is LinkState.ENDED for state in LinkState)
    assert set(_NEXT[LinkState.ENDED].values()) == {LinkState.ENDED}
    assert {state for state in LinkState if _NEXT[state].get(LinkEvent.OPENED) is LinkState.OPEN} == {LinkState.OPENING}
    assert all(LinkEvent.LOSE in _NEXT[state] for state in LinkState)  # LOSE may come in any state


@jumping
async def test_transient_errors_are_retried() -> None:
    opened = Opened(ConnectError("lost"), ConnectError("lost"))
    async with linking(opened) as (link, brokers, times):
        brokers.unreachable = 1
        await link.start()
        assert times() == [0.1, 0.3, 0.7]


@jumping
async def test_the_first_opening_has_a_time_limit() -> None:
    async with linking(Opened()) as (link, brokers, _):
        brokers.unreachable = 1000
        start = anyio.current_time()
        with pytest.raises(ConnectError, match="nobody there"):
            await link.start()
        assert 6 < anyio.current_time() - start < 10


@pytest.mark.parametrize("error", [ProducerBusy("taken"), WrongProtocol("HTTP answers there")], ids=["refusal", "HTTP"])
async def test_lasting_errors_are_raised_at_once(autojump_clock: MockClock, error: PulsarError) -> None:
    async with linking(Opened(error)) as (link, _, times):
        with pytest.raises(type(error)):
            await link.start()
        assert times() == [0]


@jumping
async def test_an_open_link_outlives_another_protocol_at_the_port() -> None:
    """A gateway may answer in HTTP while the broker behind it starts."""
    opened = Opened()
    async with linking(opened) as (link, _, times):
        await link.start()
        opened.errors += [WrongProtocol("HTTP answers there")] * 2
        link.lost(LOSS)
        await link.connection()
        assert times() == [0, 0.1, 0.3, 0.7]
        assert opened.failed == []


@jumping
async def test_a_link_opens_again_after_each_loss() -> None:
    opened = Opened()
    async with linking(opened) as (link, brokers, times):
        await link.start()
        first = link.current
        link.lost(LOSS)
        assert link.current is None
        assert await link.connection() is not first
        assert times() == [0, 0.1]
        await anyio.sleep(0.9)
        brokers.unreachable = 2
        link.lost(LOSS)
        await link.connection()
        assert times() == [0, 0.1, 1.7]  # 0.1 + 0.2 + 0.4 later


@jumping
async def test_a_link_that_is_lost_at_once_waits_longer_each_time() -> None:
    """The delay grows also where the broker names an owner each time."""
    for owner, expected in ((None, [0.1, 0.3, 0.7]), (OWNER, [0, 0.2, 0.6])):
        opened = Opened()
        async with linking(opened) as (link, _, times):
            await link.start()
            for _ in range(3):
                link.lost(LOSS, owner)
                await link.connection()
            assert times() == [0, *expected]


@pytest.mark.parametrize("proxy", [None, PROXY], ids=["direct", "through a proxy"])
async def test_a_link_opens_at_the_owner_that_the_broker_names(
    autojump_clock: MockClock, proxy: BrokerAddress | None
) -> None:
    """The link opens at the named owner at once, without a lookup (PIP-307), and through the proxy of its lookup."""
    opened = Opened()
    async with linking(opened) as (link, brokers, times):
        brokers.proxy = proxy
        await link.start()
        for _ in range(2):
            await anyio.sleep(1)
            link.lost(LOSS, OWNER)
            await link.connection()
        assert times() == [0, 1, 2]
        assert brokers.named == [(OWNER, proxy)] * 2
        assert brokers.lookups == 1
        link.lost(LOSS)
        await link.connection()
        assert brokers.lookups == 2


@jumping
async def test_an_owner_that_cannot_be_reached_is_looked_up() -> None:
    opened = Opened()
    async with linking(opened) as (link, brokers, times):
        await link.start()
        link.lost(LOSS, BrokerUrls("", "pulsar+ssl://b"))
        await link.connection()
        assert times() == [0, 0]
        assert brokers.lookups == 2


@jumping
async def test_an_owner_that_refuses_is_asked_once() -> None:
    opened = Opened()
    async with linking(opened) as (link, brokers, times):
        await link.start()
        opened.errors.append(ServiceUnitNotReady("not mine"))
        link.lost(LOSS, OWNER)
        await link.connection()
        assert times() == [0, 0, 0.2]
        assert len(brokers.named) == 1
        assert brokers.lookups == 2


@jumping
async def test_a_broker_that_says_busy_still_has_the_old_one() -> None:
    opened = Opened()
    async with linking(opened) as (link, _, times):
        await link.start()
        opened.errors.append(ProducerBusy("the old one is still there"))
        link.lost(LOSS)
        await link.connection()
        assert times() == [0, 0.1, 0.3]
        assert opened.failed == []


@jumping
async def test_some_failures_are_for_good() -> None:
    opened = Opened()
    async with linking(opened) as (link, _, times):
        await link.start()
        opened.errors.append(TopicNotFound("deleted"))
        link.lost(LOSS)
        with pytest.raises(TopicNotFound, match="deleted"):
            await link.connection()
        await anyio.sleep(100)
        assert times() == [0, 0.1]
        assert [type(error) for error in opened.failed] == [TopicNotFound]


@jumping
async def test_lost_while_it_opens() -> None:
    opened = Opened()
    async with linking(opened) as (link, _, times):
        await link.start()
        open_it = opened.open

        async def open_and_lose(connection: Connection) -> None:
            await open_it(connection)
            if len(opened.at) == 2:
                link.lost(LOSS)

        link._open = open_and_lose
        link.lost(LOSS)
        await link.connection()
        assert times() == [0, 0.1, 0.3]


@jumping
async def test_closed_as_soon_as_it_is_open() -> None:
    opened = Opened()
    async with linking(opened) as (link, _, times):
        await link.start()
        open_it = opened.open

        async def open_and_close(connection: Connection) -> None:
            await open_it(connection)
            link.close_nowait()
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()

        link._open = open_and_close
        link.lost(LOSS)
        with pytest.raises(AlreadyClosed):
            await link.connection()
        assert times() == [0, 0.1]


@jumping
async def test_an_answer_that_cannot_come_any_more_is_not_waited_for() -> None:
    opened = Opened()
    async with linking(opened) as (link, _, times):
        await link.start()
        open_it = opened.open

        async def open_and_wait(connection: Connection) -> None:
            await open_it(connection)
            if len(opened.at) == 2:
                link.lost(LOSS)
                await anyio.sleep_forever()

        link._open = open_and_wait
        link.lost(LOSS)
        with anyio.fail_after(60):
            await link.connection()
        assert times() == [0, 0.1, 0.3]


@jumping
async def test_closed_while_it_waits() -> None:
    async with linking(Opened()) as (link, brokers, _):
        await link.start()
        brokers.unreachable = 1000
        link.lost(LOSS)
        async with anyio.create_task_group() as tasks:

            async def wait() -> None:
                with pytest.raises(AlreadyClosed):
                    await link.connection()

            tasks.start_soon(wait)
            await anyio.sleep(5)
            await link.aclose()
        tries = brokers.unreachable
        await anyio.sleep(500)
        assert brokers.unreachable == tries
