"""Run scripts/bench echo: compare a PING to the broker with a round trip to a Python server that does nothing."""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import trio

from bench.accounting import cpu_seconds
from bench.brokers import ROOT, Launch, pulsarium_command
from bench.raw_driver import PING, READ, Connection
from bench.report import percentile
from bench.work import one_by_one
from pulsarium.proto.framing import frame

ABOUT = """\
Measures round trips of one client, one after the other, as the raw programs make them: to a server that only calls
recv and send, to a server that makes the same two calls in trio's loop, and a PING to the broker. No server in Python
can cost less than the first two. Servers take turns. Figures are medians of the rounds after a warm-up round.
"""
COUNT, ROUNDS = 10_000, 3
REQUEST = frame(PING)
"""A frame of a PING's size."""


def serve_socket() -> None:
    """Send back what one connection sends, with blocking calls."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        connection, _ = listener.accept()
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while data := connection.recv(READ):
                connection.sendall(data)


async def serve_trio() -> None:
    """Send back what one connection sends, with the same two calls in trio's loop."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    print(listener.socket.getsockname()[1], flush=True)
    async with await listener.accept() as stream, listener:
        while data := await stream.receive_some(READ):
            await stream.send_all(data)


SERVERS: dict[str, Callable[[], None]] = {"socket": serve_socket, "trio": lambda: trio.run(serve_trio)}


@dataclass
class Server:
    """A server to measure: `ask` makes one round trip, `pid` is its process."""

    name: str
    pid: int
    ask: Callable[[], object]


@contextmanager
def echoing(name: str) -> Iterator[Server]:
    """Start one of SERVERS in a process of its own, and connect to it."""
    command = [sys.executable, "-P", "-m", "bench.echo", name]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline())
            with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

                def ask() -> None:
                    connection.sendall(REQUEST)
                    left = len(REQUEST)
                    while left:
                        left -= len(connection.recv(left))

                yield Server(f"{name} echo", process.pid, ask)
        finally:
            process.kill()


@contextmanager
def broker() -> Iterator[Server]:
    """Start a broker, and connect to it."""
    launch = Launch(pulsarium_command())
    try:
        connection = Connection(launch.broker.service_url)

        def ask() -> None:
            connection.socket.sendall(REQUEST)
            connection.read()

        with connection.socket:
            yield Server("PING to the broker", launch.broker.pid, ask)
    finally:
        launch.stop()


@dataclass(frozen=True)
class Trip:
    """Microseconds of one round trip: its median time, and the server's CPU."""

    time: float
    cpu: float


def measure(server: Server, count: int) -> Trip:
    before = cpu_seconds(server.pid)
    done = one_by_one(count, server.ask)
    spent = cpu_seconds(server.pid) - before
    return Trip(percentile(done.latencies, 50) * 1e6, spent / count * 1e6)


def run(count: int, rounds: int) -> dict[str, list[Trip]]:
    """Return the trips of each server, by its name."""
    with echoing("socket") as plain, echoing("trio") as looped, broker() as real:
        servers = (plain, looped, real)
        for server in servers:
            measure(server, count)
        trips: dict[str, list[Trip]] = {server.name: [] for server in servers}
        for _ in range(rounds):
            for server in servers:
                trips[server.name].append(measure(server, count))
    return trips


def shown(trips: dict[str, list[Trip]]) -> str:
    """Return a Markdown table."""
    lines = ["| one round trip | us | server CPU, us | a second, at most |", "|---|--:|--:|--:|"]
    for name, those in trips.items():
        time, cpu = statistics.median(trip.time for trip in those), statistics.median(trip.cpu for trip in those)
        lines.append(f"| {name} | {time:.0f} | {cpu:.0f} | {1e6 / time:,.0f} |")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("bench echo", description=ABOUT, formatter_class=layout)
    parser.add_argument(
        "--count", type=int, default=COUNT, metavar="N", help=f"round trips of a round (default: {COUNT})"
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help=f"counted rounds (default: {ROUNDS})")
    options = parser.parse_args(arguments)
    print(shown(run(options.count, options.rounds)))
    return 0


if __name__ == "__main__":
    SERVERS[sys.argv[1]]()
