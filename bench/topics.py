"""The program of topics created over REST, on bare sockets: the number a second."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

from bench.accounting import cpu_seconds
from bench.work import Done, Timed, Work, one_by_one

READ = 64 * 1024
CLEANING = 8  # connections that delete the topics


class RestError(RuntimeError):
    """A request was not answered with 204. The text is the answer."""


class Requests:
    """A keep-alive connection that makes one request at a time."""

    def __init__(self, admin_url: str) -> None:
        url = urlsplit(admin_url)
        self._host = f"{url.hostname}:{url.port}"
        self.socket = socket.create_connection((url.hostname, url.port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, method: str, path: str) -> None:
        """Make a request without a body, and expect 204."""
        head = f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Length: 0\r\n"
        self.socket.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            more = self.socket.recv(READ)
            if not more:
                break
            answer += more
        if answer.split(maxsplit=2)[1:2] != [b"204"]:
            raise RestError(answer.decode(errors="replace"))


@contextmanager
def connected(admin_url: str, connections: int) -> Iterator[list[Requests]]:
    with ExitStack() as stack:
        each = [Requests(admin_url) for _ in range(connections)]
        for requests in each:
            stack.callback(requests.socket.close)
        yield each


def create(work: Work, connections: int) -> Timed:
    """Create `count` topics without partitions, and delete them afterwards."""
    paths = [f"/admin/v2/{work.topic.replace('://', '/')}-{number}" for number in range(work.count)]

    def timed() -> Done:
        with connected(work.admin_url, connections) as each:
            begin, broker, own = time.perf_counter(), cpu_seconds(work.pid), time.process_time()
            done = in_turn(each, paths, "PUT")
            seconds = time.perf_counter() - begin
            broker, own = cpu_seconds(work.pid) - broker, time.process_time() - own
        with connected(work.admin_url, CLEANING) as each:
            in_turn(each, paths, "DELETE")
        latencies = [seconds for part in done for seconds in part.latencies]
        return Done(work.count, latencies, seconds=seconds, cpu=own, broker_cpu=broker)

    return timed


def in_turn(each: Sequence[Requests], paths: Sequence[str], method: str) -> list[Done]:
    """Divide the paths among the connections, each of which makes one request after the other."""

    def work(place: int) -> Done:
        mine = paths[place :: len(each)]
        rest = iter(mine)
        return one_by_one(len(mine), lambda: each[place].ask(method, next(rest)))

    with ThreadPoolExecutor(len(each)) as pool:
        return list(pool.map(work, range(len(each))))
