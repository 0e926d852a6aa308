from __future__ import annotations

import random
import socket
import sys
import textwrap
from itertools import count
from pathlib import Path

import pytest

from pulsarium.proto.framing import FrameDecoder
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand
from yardsticks.bench.brokers import CONNECT, Broker, BrokerError, Launch, running
from yardsticks.bench.measure import measure_start
from yardsticks.servers import free_port

# Stands in for `pulsarium serve`: it answers any bytes with a CONNECTED, and says that it is ready.
PRETENDER = """
    import json, os, socket, sys
    options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
    listener = socket.create_server(("127.0.0.1", int(options["--port"])))
    urls = {"service_url": "pulsar://127.0.0.1:" + options["--port"] + "/", "admin_url": "http://127.0.0.1:1"}
    connection, _ = listener.accept()
    connection.recv(100)
    connection.sendall(bytes.fromhex("0000000f 0000000b 0803 1a07 0a03 782e79 2015"))
    with open(options["--ready-file"], "w") as file:
        json.dump({**urls, "pid": os.getpid()}, file)
    print("some log line", flush=True)
    print("pulsarium ready", urls["service_url"], urls["admin_url"], flush=True)
    listener.accept()  # the bench closes the first connection with bytes unread, so that reading on may fail
"""


@pytest.fixture
def pretender(tmp_path: Path) -> list[str]:
    script = tmp_path / "pretender.py"
    script.write_text(textwrap.dedent(PRETENDER))
    return [sys.executable, "-S", str(script)]


def test_a_launch_is_timed_to_connected_and_to_the_ready_line(pretender: list[str]) -> None:
    launch = Launch(pretender)
    try:
        assert 0 < launch.connect_seconds < 30
        assert 0 < launch.ready_seconds < 30
        with socket.create_connection(("127.0.0.1", int(launch.broker.service_url.rpartition(":")[2]))):
            pass
    finally:
        launch.stop()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", int(launch.broker.service_url.rpartition(":")[2])))


def test_a_start_includes_the_idle_memory(pretender: list[str]) -> None:
    start = measure_start(pretender, idle_seconds=0)
    assert start.idle.resident >= start.idle.anonymous > 0


def test_a_broker_that_does_not_start_shows_its_log() -> None:
    with pytest.raises(BrokerError, match=r"(?s)exited with 3.*no such option"):
        Launch([sys.executable, "-S", "-c", "import sys; print('no such option', file=sys.stderr); sys.exit(3)"])


def test_the_connect_frame_is_one() -> None:
    [(command, trailing)] = FrameDecoder().feed(CONNECT)
    connect = BaseCommand.FromString(command)
    assert (connect.type, trailing) == (BaseCommand.CONNECT, b"")
    assert (connect.connect.client_version, connect.connect.protocol_version) == ("bench", 21)


def test_naming_a_running_broker() -> None:
    expected = Broker("pulsar://localhost:6650", "http://localhost:8080", 42)
    assert running("pulsar://localhost:6650, http://localhost:8080/, 42") == expected


@pytest.mark.parametrize(
    "text",
    ["", "pulsar", "pulsar://localhost:6650,http://localhost:8080", "localhost,http://x,1", "pulsar://x,http://y,z"],
)
def test_naming_it_wrongly(text: str) -> None:
    with pytest.raises(BrokerError, match="does not have the form"):
        running(text)


def test_a_free_port_can_be_taken() -> None:
    with socket.create_server(("127.0.0.1", free_port())):
        pass


def test_a_free_port_is_given_once_although_no_server_listens_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    given = free_port(2)
    tried = count(given - 1)
    monkeypatch.setattr(random.SystemRandom, "randrange", lambda *_: next(tried))
    assert free_port(2) > given + 1
