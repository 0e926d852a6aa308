"""Toxics on one direction of a connection, over streams in memory and in steered time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock, lockstep_stream_one_way_pair, memory_stream_one_way_pair, wait_all_tasks_blocked

from pulsarium.broker.lab.toxiproxy.link import LATE, ToxicLink
from pulsarium.broker.lab.toxiproxy.toxics import (
    EFFECTS,
    Bandwidth,
    Latency,
    LimitData,
    ResetPeer,
    Slicer,
    SlowClose,
    Timeout,
    Toxic,
    ToxicEffect,
    ToxicError,
)


def toxic(effect: ToxicEffect, name: str = "t", toxicity: float = 1.0) -> Toxic:
    return Toxic(name, "upstream", effect, toxicity)


class Line:
    """A link, the sender in front of it, and the receiver behind it, which notes the time of each piece."""

    def __init__(self, toxics: Sequence[Toxic]) -> None:
        self.resets = 0
        self.link = ToxicLink(toxics, self._reset)
        self.sender, self._source = lockstep_stream_one_way_pair()
        self._sink, self._receiver = memory_stream_one_way_pair()
        self.pieces: list[tuple[float, bytes]] = []
        self.ended: float | None = None
        self._began = trio.current_time()

    def _reset(self) -> None:
        self.resets += 1

    async def run(self, nursery: trio.Nursery) -> None:
        nursery.start_soon(self.link.carry, self._source, self._sink)
        while data := await self._receiver.receive_some(1 << 20):
            self.pieces.append((self.now, bytes(data)))
        self.ended = self.now

    @property
    def now(self) -> float:
        return round(trio.current_time() - self._began, 3)

    @property
    def received(self) -> bytes:
        return b"".join(piece for _, piece in self.pieces)


@asynccontextmanager
async def line(*effects: ToxicEffect) -> AsyncIterator[Line]:
    async with trio.open_nursery() as nursery:
        made = Line([toxic(effect, f"t{index}") for index, effect in enumerate(effects)])
        nursery.start_soon(made.run, nursery)
        await wait_all_tasks_blocked()
        yield made
        nursery.cancel_scope.cancel()


async def pause(seconds: float) -> None:
    await trio.sleep(seconds)
    await wait_all_tasks_blocked()


async def test_without_toxics_bytes_and_their_end_pass_at_once(autojump_clock: MockClock) -> None:
    async with line() as there:
        await there.sender.send_all(b"abc")
        await wait_all_tasks_blocked()
        await there.sender.aclose()
        await wait_all_tasks_blocked()
        assert (there.pieces, there.ended) == ([(0.0, b"abc")], 0.0)


async def test_latency_delays_each_piece_from_its_arrival(autojump_clock: MockClock) -> None:
    async with line(Latency(latency=500)) as there:
        await there.sender.send_all(b"a")
        await trio.sleep(0.2)
        await there.sender.send_all(b"b")
        await there.sender.aclose()
        await pause(2)
        assert (there.pieces, there.ended) == ([(0.5, b"a"), (0.7, b"b")], 0.7)


async def test_two_latencies_add_up(autojump_clock: MockClock) -> None:
    async with line(Latency(latency=500), Latency(latency=300)) as there:
        await there.sender.send_all(b"a")
        await pause(2)
        assert there.pieces == [(0.8, b"a")]


async def test_jitter_keeps_the_order_and_stays_in_its_range(autojump_clock: MockClock) -> None:
    async with line(Latency(latency=100, jitter=50)) as there:
        for number in range(50):
            await there.sender.send_all(bytes([number]))
            await trio.sleep(1)
        assert there.received == bytes(range(50))
        late = [at - number for number, (at, _) in enumerate(there.pieces)]
        assert min(late) >= 0.049
        assert max(late) <= 0.151
        assert max(late) - min(late) > 0.01


async def test_what_waits_for_its_time_is_bounded(autojump_clock: MockClock) -> None:
    async with line(Latency(latency=60_000)) as there:
        sent = 0
        with trio.move_on_after(30):
            while True:
                await there.sender.send_all(bytes(32 << 10))
                sent += 32 << 10
        assert LATE <= sent <= LATE + 4 * (32 << 10)


async def test_bandwidth_spreads_bytes_over_time(autojump_clock: MockClock) -> None:
    async with line(Bandwidth(rate=10)) as there:
        await there.sender.send_all(bytes(25_000))
        await pause(10)
        assert [at for at, _ in there.pieces][-1] == 2.5
        assert max(len(piece) for _, piece in there.pieces) == 1000
        assert len(there.received) == 25_000


async def test_no_bandwidth_holds_everything_until_the_toxic_goes(autojump_clock: MockClock) -> None:
    async with line(Bandwidth(rate=0)) as there:
        await there.sender.send_all(b"abc")
        await pause(3600)
        assert there.received == b""
        there.link.remove("t0")
        await there.sender.send_all(b"def")
        await wait_all_tasks_blocked()
        assert there.received == b"abcdef"


async def test_a_slow_close_delays_only_the_end(autojump_clock: MockClock) -> None:
    async with line(SlowClose(delay=1000)) as there:
        await there.sender.send_all(b"a")
        await there.sender.aclose()
        await pause(5)
        assert (there.pieces, there.ended) == ([(0.0, b"a")], 1.0)


async def test_a_timeout_loses_data_and_closes(autojump_clock: MockClock) -> None:
    async with line(Timeout(timeout=1000)) as there:
        await there.sender.send_all(b"a")
        await pause(5)
        assert not there.pieces
        assert there.ended == 1.0


async def test_a_timeout_of_0_closes_at_its_removal(autojump_clock: MockClock) -> None:
    async with line(Timeout(timeout=0)) as there:
        await there.sender.send_all(b"a")
        await pause(3600)
        assert there.ended is None
        there.link.remove("t0")
        await wait_all_tasks_blocked()
        assert not there.pieces
        assert there.ended == 3600.0


async def test_a_peer_is_reset_after_the_first_data(autojump_clock: MockClock) -> None:
    async with line(ResetPeer(timeout=500)) as there:
        await pause(2)
        assert not there.resets
        await there.sender.send_all(b"a")
        await pause(2)
        assert (there.resets, there.pieces, there.ended) == (1, [], 2.5)


async def test_a_slicer_makes_small_pieces(autojump_clock: MockClock) -> None:
    async with line(Slicer(average_size=10, size_variation=3, delay=1000)) as there:
        data = bytes(range(200))
        await there.sender.send_all(data)
        await pause(5)
        sizes = [len(piece) for _, piece in there.pieces]
        assert there.received == data
        assert all(7 <= size <= 13 for size in sizes[:-1])
        assert there.pieces[-1][0] == round((len(sizes) - 1) / 1000, 3)


async def test_limited_data_ends_the_connection_at_the_limit(autojump_clock: MockClock) -> None:
    async with line(LimitData(bytes=5)) as there:
        await there.sender.send_all(b"abc")
        await wait_all_tasks_blocked()
        await there.sender.send_all(b"defg")
        await wait_all_tasks_blocked()
        assert (there.received, there.ended) == (b"abcde", 0.0)


async def test_a_changed_limit_counts_what_has_passed(autojump_clock: MockClock) -> None:
    async with line(LimitData(bytes=100)) as there:
        await there.sender.send_all(b"abc")
        await wait_all_tasks_blocked()
        there.link.change(toxic(LimitData(bytes=5), "t0"))
        await there.sender.send_all(b"defg")
        await wait_all_tasks_blocked()
        assert (there.received, there.ended) == (b"abcde", 0.0)


async def test_a_changed_latency_lets_what_waits_go_first(autojump_clock: MockClock) -> None:
    async with line(Latency(latency=60_000)) as there:
        await there.sender.send_all(b"a")
        await pause(1)
        there.link.change(toxic(Latency(latency=500), "t0"))
        await there.sender.send_all(b"b")
        await pause(5)
        assert there.pieces == [(1.0, b"a"), (1.5, b"b")]


async def test_toxics_come_and_go_while_bytes_pass_and_no_byte_is_lost_or_reordered(autojump_clock: MockClock) -> None:
    effects: list[Callable[[], ToxicEffect]] = [
        lambda: Latency(latency=30, jitter=20),
        lambda: Bandwidth(rate=500),
        lambda: Slicer(average_size=40, size_variation=9),
        lambda: Bandwidth(rate=0),
        lambda: SlowClose(delay=10),
    ]
    async with line() as there:
        sent = bytearray()
        for step in range(80):
            piece = bytes([step]) * (1 + step * 37 % 300)
            await there.sender.send_all(piece)
            sent += piece
            there.link.add(toxic(effects[step % len(effects)](), str(step)))
            await trio.sleep(0.01 * (step % 4))
            if step >= 2:
                there.link.remove(str(step - 2))
        await there.sender.aclose()
        there.link.remove("78")
        there.link.remove("79")
        await pause(60)
        assert there.received == bytes(sent)
        assert there.ended is not None


async def test_a_removed_toxic_leaves_no_stage_behind(autojump_clock: MockClock) -> None:
    async with line() as there:
        for _ in range(50):
            there.link.add(toxic(Latency(latency=10)))
            await pause(1)
            there.link.remove("t")
            await pause(1)
        assert not there.link._stages
        await there.sender.send_all(b"a")
        await wait_all_tasks_blocked()
        assert there.received == b"a"


async def test_toxicity_is_the_share_of_connections(autojump_clock: MockClock) -> None:
    reached = 0
    for _ in range(200):
        made = Line([toxic(Timeout(timeout=0), toxicity=0.3)])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(made.run, nursery)
            await made.sender.send_all(b"a")
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        reached += made.received == b"a"
    assert 100 < reached < 180


@pytest.mark.parametrize(
    ("kind", "attributes", "error"),
    [
        ("latency", {"latency": -1}, "latency is -1; it must be a whole number, 0 or more"),
        ("latency", {"jitter": "5"}, "jitter is '5'; it must be a whole number"),
        ("bandwidth", {"rate": 1.5}, "rate is 1.5; it must be a whole number"),
        ("limit_data", {"bytes": True}, "bytes is True; it must be a whole number"),
        ("slicer", {}, "average_size is 0; it must be 1 or more"),
    ],
)
def test_attributes_that_no_toxic_can_have(kind: str, attributes: dict[str, object], error: str) -> None:
    with pytest.raises(ToxicError, match=error):
        EFFECTS[kind](**attributes)
