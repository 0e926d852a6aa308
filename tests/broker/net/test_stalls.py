"""Work that holds the event loop is noticed, and named."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio
import trio.lowlevel

from pulsarium.broker.config import Config, ServeOptions
from pulsarium.broker.net import stalls
from pulsarium.broker.net.stalls import Stalls
from pulsarium.broker.server import open_broker, open_core


class Times:
    """The clocks of the machine, as a test sets them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = self.processor = 0.0
        monkeypatch.setattr(stalls, "perf_counter", lambda: self.now)
        monkeypatch.setattr(stalls, "thread_time", lambda: self.processor)
        monkeypatch.setattr(stalls, "LEAST", 0.1)

    def work(self, seconds: float) -> None:
        self.now += seconds
        self.processor += seconds


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> Times:
    return Times(monkeypatch)


def round_of(watch: Stalls, *work: Callable[[], None]) -> None:
    watch.after_io_wait(0)
    for each in work:
        each()
    watch.before_io_wait(0)


def test_a_long_round_is_a_stall_and_its_longest_work_is_named(times: Times, caplog: pytest.LogCaptureFixture) -> None:
    watch = Stalls()

    def flood() -> None:
        times.work(0.2)
        watch.took(0.2, "SEND of /127.0.0.1:4711")

    round_of(watch, flood, lambda: times.work(0.01))
    assert (watch.count, round(watch.seconds, 2)) == (1, 0.21)
    assert [stall.work for stall in watch.latest] == ["SEND of /127.0.0.1:4711"]
    assert 'milliseconds=210 longest_work="SEND of /127.0.0.1:4711"' in caplog.text


def test_a_short_round_is_no_stall(times: Times, caplog: pytest.LogCaptureFixture) -> None:
    watch = Stalls()
    for _ in range(10):
        round_of(watch, lambda: times.work(0.05))
    assert (watch.count, caplog.text) == (0, "")


def test_the_time_that_other_processes_take_is_no_stall(times: Times) -> None:
    watch = Stalls()

    def preempted() -> None:
        times.now += 1.0

    round_of(watch, preempted)
    assert watch.count == 0


def test_a_stall_of_many_small_pieces_names_none_of_them(times: Times) -> None:
    watch = Stalls()

    def piece() -> None:
        times.work(0.02)
        watch.took(0.02, "PING of /127.0.0.1:4711")

    round_of(watch, *[piece] * 10)
    assert [stall.work for stall in watch.latest] == ["many pieces of work"]


async def test_a_broker_with_ports_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stalls, "LEAST", 0)
    async with open_broker(ServeOptions(config=Config(brokerServicePort=0, webServicePort=0))) as running:
        await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()
        assert running.brokers[0].broker.turn.stalls.count


async def test_work_without_clients_is_not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command such as `pulsarium compact` opens a stopped broker's data, and nobody waits for its loop."""
    monkeypatch.setattr(stalls, "LEAST", 0)
    async with open_core(ServeOptions()) as broker:
        await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()
        assert not broker.turn.stalls.count
