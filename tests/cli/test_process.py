"""`pulsarium serve` as a process: ports, signals, the ready file, what it leaves behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

COMMAND = (sys.executable, "-P", "-m", "pulsarium", "serve")
FREE = ("--port", "0", "--http-port", "0")
# BaseCommand{type: CONNECT, connect{client_version: "test", protocol_version: 21}}, with both lengths before it.
CONNECT = bytes.fromhex("00000010 0000000c 0802 1208 0a04 74657374 2015")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a folder that is working directory, home and place for temporary files of a process."""
    home = tmp_path / "home"
    home.mkdir()
    return home


def environment(home: Path) -> dict[str, str]:
    places = {name: str(home) for name in ("HOME", "TMPDIR", "SQLITE_TMPDIR", "XDG_CACHE_HOME", "XDG_DATA_HOME")}
    return {**os.environ, **places, "PYTHONDONTWRITEBYTECODE": "1"}


@contextmanager
def serving(home: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """Yield a broker that is ready, and its two URLs. Its stderr goes to a file beside `home`."""
    log = home.parent / "stderr"
    with (
        log.open("w") as stderr,
        subprocess.Popen(
            [*COMMAND, *FREE, "--with-parent", *options],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            cwd=home,
            env=environment(home),
        ) as process,
    ):
        try:
            assert process.stdout is not None
            words = process.stdout.readline().split()
            assert words[:2] == ["pulsarium", "ready"], log.read_text()
            yield process, words[2], words[3]
        finally:
            process.kill()


def ended(home: Path, *options: str) -> tuple[int, str, str]:
    """Run a broker that must fail to start, and return its exit code, stdout and stderr."""
    run = subprocess.run(
        [*COMMAND, *options], check=False, capture_output=True, text=True, cwd=home, env=environment(home)
    )
    return run.returncode, run.stdout, run.stderr


def connected(service_url: str) -> socket.socket:
    """Return the socket of a client that has received CONNECTED."""
    url = urlsplit(service_url)
    client = socket.create_connection((url.hostname, url.port), timeout=30)
    client.sendall(CONNECT)
    assert client.recv(4096)[8:10] == bytes.fromhex("0803")  # BaseCommand.type CONNECTED
    return client


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_it_with_ten_clients(number: signal.Signals, home: Path) -> None:
    with serving(home) as (process, service_url, _), ExitStack() as clients:
        for _ in range(10):
            clients.enter_context(connected(service_url))
        process.send_signal(number)
        assert process.wait(30) == 0
    assert "Traceback" not in (home.parent / "stderr").read_text()


@pytest.mark.parametrize("durability", ["none", "os", "fsync"])
def test_a_signal_stops_it_with_data(durability: str, home: Path, tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "data"), "--durability", durability)
    with serving(home, *data) as (process, service_url, _), connected(service_url):
        process.terminate()
        assert process.wait(30) == 0
    assert "Traceback" not in (home.parent / "stderr").read_text()


def test_the_ready_file_says_what_the_ready_line_says(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    with serving(home, "--ready-file", str(path)) as (process, service_url, admin_url):
        broker = {"service_url": service_url, "admin_url": admin_url}
        assert json.loads(path.read_text()) == {**broker, "brokers": [broker], "pid": process.pid}
        assert (urlsplit(service_url).scheme, urlsplit(admin_url).scheme) == ("pulsar", "http")
        for url in (service_url, admin_url):
            socket.create_connection((urlsplit(url).hostname, urlsplit(url).port), timeout=30).close()
        process.terminate()
        assert process.wait(30) == 0
    assert not path.exists()


def test_a_snapshot_of_the_end_begins_the_next_run(home: Path) -> None:
    with serving(home, "--export-on-exit", "last.snapshot") as (process, _, admin_url):
        path = f"{admin_url}/admin/v2/persistent/public/default"
        urllib.request.urlopen(urllib.request.Request(f"{path}/kept", method="PUT"), timeout=30).close()
        process.terminate()
        assert process.wait(30) == 0
    with serving(home, "--restore", "last.snapshot") as (process, _, admin_url):
        path = f"{admin_url}/admin/v2/persistent/public/default"
        with urllib.request.urlopen(path, timeout=30) as answer:
            assert json.loads(answer.read()) == ["persistent://public/default/kept"]
        process.terminate()
        assert process.wait(30) == 0


@pytest.mark.parametrize("option", ["--port", "--http-port"])
def test_a_busy_port_names_port_and_option(option: str, home: Path) -> None:
    other = "--http-port" if option == "--port" else "--port"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, out, err = ended(home, option, str(port), other, "0")
    message = f"port {port} is in use; choose another with {option} N, or {option} 0 for a free one"
    assert (code, out) == (1, "")
    assert err.splitlines()[-1] == f"pulsarium: {message}"
    assert "Traceback" not in err


def test_nothing_is_left_on_disk(home: Path) -> None:
    with serving(home) as (process, service_url, _):
        with connected(service_url):
            pass
        process.terminate()
        assert process.wait(30) == 0
    assert list(home.rglob("*")) == []


def test_a_data_directory_has_one_user(home: Path, tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    with serving(home, "--data", data) as (process, _, _):
        code, out, err = ended(home, *FREE, "--data", data)
        assert (code, out) == (1, "")
        assert err.splitlines()[-1].startswith("pulsarium: ")
        assert f"in use by another pulsarium (pid {process.pid})" in err
        assert "Traceback" not in err


def test_a_wrong_value_is_one_line(home: Path) -> None:
    code, out, err = ended(home, "--set", "brokerServicePort=x")
    assert (code, out) == (2, "")
    assert err == "pulsarium: --set: brokerServicePort: 'x' is not a whole number from 0 to 65535\n"


def test_json_log_lines(home: Path) -> None:
    with serving(home, "--log-format", "json") as (process, service_url, _):
        with connected(service_url):
            pass
        process.terminate()
        assert process.wait(30) == 0
    lines = [json.loads(line) for line in (home.parent / "stderr").read_text().splitlines()]
    assert {"level", "logger", "message", "time"} <= set.intersection(*(set(line) for line in lines))
    assert "stopping" in [line["message"] for line in lines]


def test_a_directory_of_a_killed_process_is_free(home: Path, tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    with serving(home, "--data", data) as (process, _, _):
        process.kill()
        process.wait(30)
    with serving(home, "--data", data) as (process, _, _):
        process.terminate()
        assert process.wait(30) == 0


@pytest.mark.parametrize("kind", ["no database", "damaged", "below a file"])
def test_a_data_directory_that_cannot_be_served_is_one_line(kind: str, home: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    database = data / "pulsarium.db"
    if kind in ("no database", "damaged"):
        data.mkdir()
        database.write_bytes((b"SQLite format 3\0" if kind == "damaged" else b"dear diary\n") * 5000)
    else:
        data.touch()
        data = data / "below"
    before = database.read_bytes() if database.exists() else b""
    code, out, err = ended(home, *FREE, "--data", str(data))
    assert (code, out) == (1, "")
    assert err.splitlines()[-1].startswith("pulsarium: ")
    assert str(data) in err
    assert "Traceback" not in err
    assert not before or database.read_bytes() == before
