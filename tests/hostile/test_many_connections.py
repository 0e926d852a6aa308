"""Thousands of idle connections, and a process that has no file descriptor left."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.broker.wire import Bed, Type, Wire, frame_of
from tests.foreign.deadline import eventually
from tests.hostile.process import Served, serving

STATUS = Path("/proc/self/status")
pytestmark = pytest.mark.skipif(not STATUS.exists(), reason="looks into /proc, which is Linux's")

CONNECT = frame_of(Type.CONNECT, client_version="idle", protocol_version=21)
PING = frame_of(Type.PING)
GET = b"GET /admin/v2/tenants HTTP/1.1\r\nHost: x\r\n\r\n"
MOST_MEMORY = 48 << 10  # bytes of an idle connection
LONG = 200.0  # seconds, of a busy machine


def connected(served: Served) -> socket.socket:
    client = socket.create_connection(served.address, timeout=30)
    client.sendall(CONNECT)
    assert client.recv(4096)
    return client


def ping(client: socket.socket) -> None:
    client.sendall(PING)
    assert client.recv(4096)


class Steps(trio.abc.Instrument):
    """A counter of the steps that the event loop takes."""

    number = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.number += 1


async def steps_of_a_ping(wire: Wire) -> int:
    await trio.testing.wait_all_tasks_blocked()
    steps = Steps()
    trio.lowlevel.add_instrument(steps)
    await wire.alive()
    await trio.testing.wait_all_tasks_blocked()
    trio.lowlevel.remove_instrument(steps)
    return steps.number


async def test_a_ping_costs_the_same_among_hundreds_of_idle_connections(bed: Bed) -> None:
    wire = await bed.connect()
    alone = await steps_of_a_ping(wire)
    for _ in range(250):
        await bed.connect()
        bed.dial()
    assert await steps_of_a_ping(wire) == alone


def idle_connections(home: Path, count: int) -> None:
    # The usual keep-alive would end the first connections before a busy machine has opened the last.
    with serving(home, "--set", "keepAliveIntervalSeconds=3600") as served, connected(served) as other:
        with socket.create_connection(served.web_address, timeout=30) as web:
            assert status(web) == b"HTTP/1.1 200"  # HTTP opens after the ready line, and takes memory and files
            opened = served.files
        eventually(lambda: served.files < opened, what="the HTTP connection is let go", seconds=LONG)
        files, before = served.files, served.memory
        with ExitStack() as stack:
            half = [stack.enter_context(connected(served)) for _ in range(count // 2)]
            silent = [stack.enter_context(socket.create_connection(served.address)) for _ in range(count - len(half))]
            eventually(lambda: served.files >= files + len(half) + len(silent), what="all are served", seconds=LONG)
            growth = (served.memory - before) / count
            ping(other)
            print(f"{count} idle connections: {growth / 1024:.1f} KiB each")
            assert growth < MOST_MEMORY
        eventually(lambda: served.files <= files, what="all are let go", seconds=LONG)
        most = served.memory
        with ExitStack() as stack:  # the same number of new connections
            for _ in range(count):
                stack.enter_context(socket.create_connection(served.address))
            eventually(lambda: served.files >= files + count, what="all are served again", seconds=LONG)
        eventually(lambda: served.files <= files, what="all are let go again", seconds=LONG)
        assert served.memory < most + count * MOST_MEMORY // 4  # the new connections use the freed memory
        ping(other)


@pytest.mark.timeout(2 * LONG)
def test_hundreds_of_idle_connections(tmp_path: Path) -> None:
    idle_connections(tmp_path, 500)


@pytest.mark.heavy
def test_thousands_of_idle_connections(tmp_path: Path) -> None:
    idle_connections(tmp_path, 5_000)


def test_the_broker_raises_its_soft_limit_of_files(tmp_path: Path) -> None:
    """A JVM also raises its soft limit, which is meant for programs that still use select."""
    with serving(tmp_path, files=(64, 1024)) as served, ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(connected(served))


def test_idle_http_connections_of_one_address_leave_room_for_others(tmp_path: Path) -> None:
    with serving(tmp_path) as served, ExitStack() as stack:
        pooled = stack.enter_context(socket.create_connection(served.web_address, timeout=30))
        assert status(pooled) == b"HTTP/1.1 200"
        for _ in range(2_100):  # more than a port serves
            stack.enter_context(socket.create_connection(served.web_address, timeout=30))
        other = socket.create_connection(served.web_address, timeout=30, source_address=("127.0.0.2", 0))
        with other:
            assert status(other) == b"HTTP/1.1 200"
        assert status(pooled) == b"HTTP/1.1 200"


def status(client: socket.socket) -> bytes:
    """Send a request, and return the version and the status of the answer."""
    client.sendall(GET)
    return client.recv(4096)[:12]


@contextmanager
def too_many(address: tuple[str, int], served: Served) -> Iterator[None]:
    """Open connections until the broker has no file descriptor left, and some more that it cannot accept."""
    with ExitStack() as stack:
        for _ in range(120):
            stack.enter_context(socket.create_connection(address, timeout=30))
        eventually(lambda: "cannot accept connections" in served.log.read_text(), what="it says that it is full")
        yield


@pytest.mark.parametrize("web", [False, True], ids=["binary", "http"])
def test_without_a_file_descriptor_left_it_goes_on(tmp_path: Path, web: bool) -> None:
    """The broker serves existing connections, and new ones once others have closed.

    tests/broker/net/test_accepting.py tests that the broker does not spin meanwhile.
    """
    with serving(tmp_path, files=(100, 100)) as served, connected(served) as other:
        address = served.web_address if web else served.address
        with socket.create_connection(served.web_address, timeout=30) as http:
            http.sendall(GET)  # makes the broker open all files that HTTP needs
            assert http.recv(4096).startswith(b"HTTP/1.1 200")
        with too_many(address, served):
            ping(other)
        assert served.log.read_text().count("cannot accept connections") <= 3  # not ten times a second
        with connected(served):
            pass
