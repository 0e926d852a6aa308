"""The program of topics created over REST, on bare sockets: the number a second."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

from yardsticks.bench.accounting import cpu_seconds
from yardsticks.bench.work import Done, Timed, Work, one_by_one

READ = 64 * 1024
CLEANING = 8  # connections that delete the topics


class RestError(RuntimeError):
    """A request was not answered with 204. The text is the answer."""


def create(work: Work, connections: int) -> Timed:
    """Create `count` topics without partitions, and delete them afterwards."""
    paths = [f"/admin/v2/{work.topic.replace('://', '/')}-{number}" for number in range(work.count)]

    def timed() -> Done:
        begin, broker, own = time.perf_counter(), cpu_seconds(work.pid), time.process_time()
        latencies = in_turn(work.admin_url, connections, "PUT", paths)
        seconds = time.perf_counter() - begin
        broker, own = cpu_seconds(work.pid) - broker, time.process_time() - own
        in_turn(work.admin_url, CLEANING, "DELETE", paths)
        return Done(work.count, latencies, seconds=seconds, cpu=own, broker_cpu=broker)

    return timed


def in_turn(admin_url: str, connections: int, method: str, paths: Sequence[str]) -> list[float]:
    """Divide the paths among connections, each of which makes one request after the other, and return the seconds."""
    url = urlsplit(admin_url)

    def work(place: int) -> list[float]:
        mine = paths[place::connections]
        rest = iter(mine)
        with socket.create_connection((url.hostname, url.port), timeout=60) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return one_by_one(len(mine), lambda: ask(connection, url.netloc, method, next(rest))).latencies

    with ThreadPoolExecutor(connections) as pool:
        return [seconds for each in pool.map(work, range(connections)) for seconds in each]


def ask(connection: socket.socket, host: str, method: str, path: str) -> None:
    """Make a request without a body, and expect 204."""
    head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n"
    connection.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode())
    answer = b""
    while b"\r\n\r\n" not in answer and (more := connection.recv(READ)):
        answer += more
    if answer.split(maxsplit=2)[1:2] != [b"204"]:
        raise RestError(answer.decode(errors="replace"))
