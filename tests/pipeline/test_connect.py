"""Clients of Spark Connect, which need no Java, and a server in its own process."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyspark
import pytest

from tests.foreign.broker_process import Address
from tests.foreign.deadline import eventually
from yardsticks.servers import free_port

from .conftest import SPARK_TIMEOUT
from .source.topics import flat, numbers, publish, values

pytestmark = pytest.mark.timeout(SPARK_TIMEOUT)

CLIENT = Path(__file__).with_name("connect_client.py")
EXAMPLE = Path(__file__).parents[2] / "examples" / "python" / "spark_connect.py"
MAIN = "org.apache.spark.sql.connect.service.SparkConnectServer"

Run = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a server as `start-connect-server.sh` does, and yield its URL."""
    folder, port = tmp_path_factory.mktemp("connect"), free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    options = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    home = Path(pyspark.__file__).parent
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [str(home / "bin" / "spark-submit"), "--master", "local[2]", "--class", MAIN, *options, "spark-internal"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=os.environ | {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable},
            start_new_session=True,
        )
    try:
        eventually(partial(answers, process, port), what="a server of Spark Connect", seconds=SPARK_TIMEOUT / 2)
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def answers(process: subprocess.Popen[bytes], port: int) -> bool:
    assert process.poll() is None, "the server ended"
    with socket.socket() as attempt:
        return attempt.connect_ex(("127.0.0.1", port)) == 0


def without_java(*program: str) -> str:
    """Run a program that finds no Java, and return its output."""
    environment = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"} | {"PATH": ""}
    done = subprocess.run(
        [sys.executable, "-P", *program], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def run(server: str, broker: Address, topic: str) -> Run:
    """Return a function that runs a program of connect_client.py on a topic and returns its findings."""

    def run(program: str, **given: Any) -> dict[str, Any]:
        where = {"service.url": broker.service_url, "admin.url": broker.admin_url, "topic": topic}
        options = {"server": server, "where": where, "target": {**where, "topic": given.pop("target", None)}, **given}
        found: dict[str, Any] = json.loads(without_java(str(CLIENT), program, json.dumps(options)))
        return found

    return run


def test_the_session_of_a_client_stays_the_session_of_its_process(run: Run) -> None:
    assert run("settings") == {"same": True, "zone": "UTC", "partitions": "3"}


def test_a_client_writes_a_topic_and_reads_it(run: Run) -> None:
    found = run("table", rows=1000)
    assert sorted(found["values"]) == list(range(1000))
    assert found["keys"] == {str(digit): 100 for digit in range(10)}


def test_a_stream_of_a_client_copies_each_message_once(
    run: Run, broker: Address, topic: str, deduplicated: str, checkpoint: str
) -> None:
    publish(broker, topic, numbers(300))
    assert run("stream", target=deduplicated, checkpoint=checkpoint) == {"rows": 300, "lag": "0"}
    publish(broker, topic, numbers(200, first=300))
    assert run("stream", target=deduplicated, checkpoint=checkpoint) == {"rows": 200, "lag": "0"}
    assert sorted(flat(values(broker, deduplicated))) == sorted(numbers(500))


def test_a_client_uses_tables_views_and_options(run: Run) -> None:
    assert run("sql")["rows"] == [["Ada", 3, None], ["Bob", 3, None], ["Eve", None, None], [None, None, "?"]]


def test_an_error_at_the_client_is_its_reason(run: Run, topic: str) -> None:
    said = run("missing")["error"]
    assert f"topic {topic} does not exist" in said.splitlines()[0]
    assert "Traceback" not in said
    assert "JVM stacktrace" not in said


def test_the_example_of_spark_connect_runs(server: str, broker: Address, tmp_path: Path) -> None:
    text = EXAMPLE.read_text()
    for old, new in (("sc://localhost:15002", server), ("pulsar://localhost:6650", broker.service_url)):
        assert old in text
        text = text.replace(old, new)
    (tmp_path / EXAMPLE.name).write_text(text)
    assert "three apples" in without_java(str(tmp_path / EXAMPLE.name))
