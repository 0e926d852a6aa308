from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator

import pytest

from yardsticks.bench.drivers.topics import RestError, create
from yardsticks.bench.work import Work

TOPIC = "persistent://public/default/t"


class Recorder:
    """An HTTP server that gives its answers in order, then always 204, and records the request lines."""

    def __init__(self, *answers: str) -> None:
        self.asked: list[str] = []
        self._answers = list(answers)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as requests:
            for line in requests:
                if b" HTTP/1.1" in line:
                    self.asked.append(line.decode().removesuffix(" HTTP/1.1\r\n"))
                elif line == b"\r\n":
                    status = self._answers.pop(0) if self._answers else "204 No Content"
                    connection.sendall(f"HTTP/1.1 {status}\r\nServer: x\r\n\r\n".encode())


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    made = Recorder()
    yield made
    made.close()


@pytest.mark.parametrize("connections", [1, 8])
def test_topics_are_created_and_gone_afterwards(recorder: Recorder, connections: int) -> None:
    done = create(Work("", TOPIC, 10, 0, os.getpid(), recorder.url), connections)()
    assert (done.operations, len(done.latencies)) == (10, 10)
    paths = [f"/admin/v2/persistent/public/default/t-{number}" for number in range(10)]
    assert sorted(recorder.asked[:10]) == [f"PUT {path}" for path in paths]
    assert sorted(recorder.asked[10:]) == [f"DELETE {path}" for path in paths]


def test_a_refusal_is_told(recorder: Recorder) -> None:
    recorder._answers.append("409 Conflict")
    with pytest.raises(RestError, match="409 Conflict"):
        create(Work("", TOPIC, 2, 0, os.getpid(), recorder.url), 1)()
