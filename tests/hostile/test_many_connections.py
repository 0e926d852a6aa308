"""Thousands of connections that say nothing, and a process that has no file descriptor left."""

from __future__ import annotations

import socket
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.broker.wire import Type, frame_of
from tests.foreign.deadline import eventually
from tests.hostile.process import Served, serving

STATUS = Path("/proc/self/status")
pytestmark = pytest.mark.skipif(not STATUS.exists(), reason="looks into /proc, which is Linux's")

CONNECT = frame_of(Type.CONNECT, client_version="idle", protocol_version=21)
PING = frame_of(Type.PING)
GET = b"GET /admin/v2/tenants HTTP/1.1\r\nHost: x\r\n\r\n"
MOST_MEMORY = 48 << 10  # bytes of an idle connection


def connected(served: Served) -> socket.socket:
    client = socket.create_connection(served.address, timeout=30)
    client.sendall(CONNECT)
    assert client.recv(4096)
    return client


def ping_seconds(client: socket.socket, times: int = 50) -> float:
    """The median time of an answer."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        client.sendall(PING)
        assert client.recv(4096)
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def idle_connections(home: Path, count: int) -> None:
    with serving(home) as served, connected(served) as other:
        alone = ping_seconds(other)
        files, before = served.files, served.memory
        with ExitStack() as stack:
            half = [stack.enter_context(connected(served)) for _ in range(count // 2)]
            silent = [stack.enter_context(socket.create_connection(served.address)) for _ in range(count - len(half))]
            eventually(lambda: served.files >= files + len(half) + len(silent), what="all are served")
            growth = (served.memory - before) / count
            spent = served.cpu_seconds
            assert ping_seconds(other) < 3 * alone + 0.002
            assert served.cpu_seconds - spent < 0.5  # nobody asks the idle ones
            print(f"{count} idle connections: {growth / 1024:.1f} KiB each, {alone * 1e6:.0f} us a PING before")
            assert growth < MOST_MEMORY
        eventually(lambda: served.files <= files, what="all are let go")
        most = served.memory
        with ExitStack() as stack:  # as many again take the place of those
            for _ in range(count):
                stack.enter_context(socket.create_connection(served.address))
            eventually(lambda: served.files >= files + count, what="all are served again")
        eventually(lambda: served.files <= files, what="all are let go again")
        assert served.memory < most + count * MOST_MEMORY // 4  # what was freed is used again
        assert ping_seconds(other) < 3 * alone + 0.002


def test_hundreds_of_idle_connections(tmp_path: Path) -> None:
    idle_connections(tmp_path, 500)


@pytest.mark.heavy
def test_thousands_of_idle_connections(tmp_path: Path) -> None:
    idle_connections(tmp_path, 5_000)


def test_it_takes_all_the_files_it_may_have(tmp_path: Path) -> None:
    """As a JVM does: the soft limit is for programs that still use select."""
    with serving(tmp_path, files=(64, 1024)) as served, ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(connected(served))


def test_idle_http_connections_of_one_address_leave_room_for_others(tmp_path: Path) -> None:
    with serving(tmp_path) as served, ExitStack() as stack:
        pooled = stack.enter_context(socket.create_connection(served.web_address, timeout=30))
        assert status(pooled) == b"HTTP/1.1 200"
        for _ in range(2_100):  # more than a port serves
            stack.enter_context(socket.create_connection(served.web_address, timeout=30))
        other = socket.create_connection(served.web_address, timeout=10, source_address=("127.0.0.2", 0))
        with other:
            assert status(other) == b"HTTP/1.1 200"
        assert status(pooled) == b"HTTP/1.1 200"


def status(client: socket.socket) -> bytes:
    """The first words of an answer."""
    client.sendall(GET)
    return client.recv(4096)[:12]


@contextmanager
def too_many(address: tuple[str, int], served: Served) -> Iterator[None]:
    """Connections until the broker has no file descriptor left, and some more that it cannot accept."""
    with ExitStack() as stack:
        for _ in range(120):
            stack.enter_context(socket.create_connection(address, timeout=30))
        eventually(lambda: "cannot accept connections" in served.log.read_text(), what="it says that it is full")
        yield


@pytest.mark.parametrize("web", [False, True], ids=["binary", "http"])
def test_without_a_file_descriptor_left_it_goes_on(tmp_path: Path, web: bool) -> None:
    """It neither spins nor ends; who is there is served, and who comes when others have gone is so too."""
    with serving(tmp_path, files=(100, 100)) as served, connected(served) as other:
        address = served.web_address if web else served.address
        with socket.create_connection(served.web_address, timeout=30) as http:
            http.sendall(GET)  # what it opens for HTTP is open
            assert http.recv(4096).startswith(b"HTTP/1.1 200")
        with too_many(address, served):
            spent, start = served.cpu_seconds, time.monotonic()
            for _ in range(20):
                ping_seconds(other)
            eventually(lambda: time.monotonic() - start > 0.5, what="half a second passes")
            assert served.cpu_seconds - spent < 0.4
        assert served.log.read_text().count("cannot accept connections") <= 3  # once each time, not ten times a second
        with connected(served):
            pass
