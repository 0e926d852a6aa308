"""A thousand wrong frames of all kinds: each closes its own connection, and none leaks memory."""

from __future__ import annotations

import gc
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
import trio

from pulsarium.broker.config import Config
from pulsarium.proto.framing import frame
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.loopback import Loopback, listening
from tests.broker.wire import Type, Wire, frame_of, plain

WARM_UP = 100
FRAMES = 1000
MOST_GROWTH = 2 << 20  # bytes of memory for FRAMES frames
ROUNDS = 3  # a leak takes memory in each round, an allocator only in some
LONG = 600.0  # seconds, because a busy machine takes long for so many connections
STATUS = Path("/proc/self/status")

pytestmark = pytest.mark.skipif(not STATUS.exists(), reason="RssAnon is Linux's")

CONNECT = frame_of(Type.CONNECT, client_version="wrong", protocol_version=21)
SEND = frame_of(Type.SEND, plain(b"x"), producer_id=0, sequence_id=0)
TRUNCATED = CONNECT + frame_of(Type.SEND, plain(bytes(100_000)), producer_id=0, sequence_id=0)[:-1]


def rss_anon() -> int:
    """Return the anonymous memory of this process in bytes."""
    gc.collect()
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith("RssAnon"))
    return int(line.split()[1]) * 1024


class Reasons(logging.Filter):
    """A counter of the broker's warnings about connections. It drops the records, which pytest would keep."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[bool] = Counter()  # whether a warning has the wanted reason -> number
        self.wanted = ""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno >= logging.WARNING:
            self.counts[self.wanted in record.getMessage()] += 1
        return False


@pytest.fixture
def reasons() -> Iterator[Reasons]:
    logger = logging.getLogger("pulsarium.session")
    reasons = Reasons()
    logger.addFilter(reasons)
    yield reasons
    logger.removeFilter(reasons)


KINDS = {
    "bad size": (CONNECT + b"\0\0\0\3\0\0\0\0", "frame of 3 bytes"),
    "bad command size": (CONNECT + b"\0\0\0\x08\0\0\0\x09xxxx", "command of 9 bytes"),
    "2 GB announced": (CONNECT + b"\x7f\xff\xff\xff\0\0\0\x10", "frame of 2147483647 bytes"),
    "just over the limit": (CONNECT + (5_253_117).to_bytes(4, "big") + bytes(1000), "frame of 5253117 bytes"),
    "unknown command": (CONNECT + frame(bytes([8, 69])), "unknown type"),
    "no command": (CONNECT + frame(b"\xff" * 40), "not a command"),
    "no body": (CONNECT + frame(bytes([8, Type.SUBSCRIBE])), "SUBSCRIBE"),
    "a broker's command": (CONNECT + frame_of(Type.SUCCESS, request_id=1), "SUCCESS"),
    "before CONNECT": (frame_of(Type.LOOKUP, topic="t", request_id=1), "before CONNECT"),
    "SEND without a producer": (CONNECT + SEND, "unknown producer"),
    "truncated": (TRUNCATED, "inside a frame"),
    "HTTP": (b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP is answered at http://"),
}


async def answered_over_http(wire: Wire) -> None:
    """Read the broker's HTTP answer until the connection ends."""
    with suppress(trio.BrokenResourceError):
        while await wire.stream.receive_some():
            pass
    wire.ended = True


async def provoke(kinds: list[str], reasons: Reasons) -> None:
    """Send wrong frames of these kinds in turn, each on a connection of its own. Fail if memory grows in each round."""
    async with listening(Config(keepAliveIntervalSeconds=3600), hangs=LONG) as loopback:
        other = await loopback.connect()
        await other.producer()
        await send_wrong(loopback, kinds, reasons, WARM_UP)
        rounds = await rounds_until_none_leaks(partial(send_wrong, loopback, kinds, reasons, FRAMES))
        await other.publish(plain(b"still here"))
    assert reasons.counts == {True: WARM_UP + FRAMES * rounds}


async def rounds_until_none_leaks(work: Callable[[], Awaitable[None]]) -> int:
    """Repeat work until a round takes no memory, and return the number of rounds. Fail if memory grows in each."""
    growth: list[int] = []
    while not growth or (growth[-1] >= MOST_GROWTH and len(growth) < ROUNDS):
        before = rss_anon()
        await work()
        growth.append(rss_anon() - before)
    assert growth[-1] < MOST_GROWTH, growth
    return len(growth)


async def send_wrong(loopback: Loopback, kinds: list[str], reasons: Reasons, count: int) -> None:
    """Send `count` wrong frames, and expect the broker to close each connection."""
    for number in range(count):
        data, reasons.wanted = KINDS[kinds[number % len(kinds)]]
        wire = await loopback.dial()
        await wire.write(data)
        if data is TRUNCATED:
            await wire.expect(Type.CONNECTED)
            await wire.stream.send_eof()  # type: ignore[attr-defined]
        if data.startswith(b"GET "):
            await answered_over_http(wire)
        answers = [received.command.type for received in await wire.closed()]
        assert answers in ([], [Type.CONNECTED])  # a reset may overtake CONNECTED
        await loopback.hang_up(wire)


@pytest.mark.timeout(LONG)
@pytest.mark.req("W-01", "W-05", "W-06", "W-10")
async def test_wrong_frames_close_only_their_own_connection(reasons: Reasons) -> None:
    await provoke(list(KINDS), reasons)


@pytest.mark.heavy
@pytest.mark.req("W-01", "W-05", "W-06", "W-10")
@pytest.mark.parametrize("kind", KINDS)
async def test_no_kind_of_wrong_frame_costs_memory(kind: str, reasons: Reasons) -> None:
    await provoke([kind], reasons)


@pytest.mark.req("W-02")
async def test_bad_checksums_are_answered_and_the_connection_stays(reasons: Reasons) -> None:
    good = plain(b"x" * 100)
    bad = good[:-1] + b"y"
    async with listening() as loopback:
        wire = await loopback.connect()
        await wire.producer()

        async def send_bad(count: int) -> None:
            for _ in range(count // 10):
                await wire.write(wire.sends(*[bad] * 10))
                for _ in range(10):
                    error = await wire.expect(Type.SEND_ERROR)
                    assert error.error == pb.ChecksumError

        await send_bad(WARM_UP)
        await rounds_until_none_leaks(partial(send_bad, FRAMES))
        assert (await wire.publish(good))[0].entry_id == 0
        assert not reasons.counts
