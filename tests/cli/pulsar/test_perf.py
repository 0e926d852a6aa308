"""`bin/pulsar-perf`: its lines, and its options on a broker."""

from __future__ import annotations

import json
import re
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulsarium.broker.testing import PulsarBroker, running
from pulsarium.cli.pulsar import perf
from pulsarium.cli.pulsar.perf import Latencies, Tally


@pytest.fixture(scope="module")
def broker() -> Iterator[PulsarBroker]:
    with running() as broker:
        yield broker


class Program:
    """Runs of pulsar-perf against a broker."""

    def __init__(self, url: str, home: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self._home = home
        self._capfd = capfd
        (home / "conf").mkdir()
        (home / "conf/client.conf").write_text(f"brokerServiceUrl={url}\n")

    def run(self, *arguments: str, status: int = 0) -> str:
        return "".join(self.said(*arguments, status=status))

    def said(self, *arguments: str, status: int = 0) -> tuple[str, str]:
        """Run it; return stdout and stderr."""
        with pytest.raises(SystemExit) as ended:
            perf.main(self._home, arguments)
        out, err = self._capfd.readouterr()
        assert ended.value.code == status, out + err
        return out, err


@pytest.fixture
def program(
    broker: PulsarBroker, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Program:
    monkeypatch.setenv("PULSAR_CLIENT_CONF", str(tmp_path / "conf/client.conf"))
    return Program(broker.service_url, tmp_path, capfd)


@pytest.fixture
def topic() -> str:
    return f"persistent://public/default/{uuid.uuid4()}"


def counted(out: str) -> int:
    """Return the messages of the summary."""
    found = re.search(r"^Aggregated throughput stats --- ([0-9]+) records", out, re.MULTILINE)
    assert found, out
    return int(found[1])


def test_what_it_produces_is_consumed_and_read(program: Program, topic: str) -> None:
    sent = program.run("produce", "-r", "0", "-m", "500", "-s", "10", "-n", "2", "-z", "LZ4", topic)
    assert (counted(sent), "records sent" in sent) == (500, True)
    assert "Aggregated latency stats --- Latency: mean:" in sent
    for read in (("consume", "-ss", "a,b", "-sp", "Earliest", "-st", "Shared"), ("read", "-q", "10")):
        assert counted(program.run(*read, "-m", "100", topic)) == 100


def test_several_topics_have_numbers_behind_the_name(program: Program, broker: PulsarBroker, topic: str) -> None:
    program.run("produce", "-r", "0", "-m", "10", "-t", "2", "-bd", topic)
    with urllib.request.urlopen(f"{broker.admin_url}/admin/v2/persistent/public/default", timeout=60) as answer:
        assert {f"{topic}-0", f"{topic}-1"} <= set(json.loads(answer.read()))


def test_a_run_ends_after_its_duration(program: Program, topic: str) -> None:
    assert counted(program.run("produce", "-time", "1", topic)) >= 0  # a busy machine may need a second to connect


def test_reports_come_while_a_run_goes_on(program: Program, topic: str) -> None:
    out = program.run("produce", "-r", "100", "-m", "150", "-i", "1", topic)
    assert re.search(
        r"^Throughput produced: +[0-9]+ msg --- +[0-9.]+ msg/s --- .*failure +0\.0 msg/s", out, re.MULTILINE
    )
    assert counted(out) == 150


def test_the_content_of_a_message_comes_from_a_file(program: Program, topic: str, tmp_path: Path) -> None:
    (tmp_path / "payload").write_bytes(bytes(125_000))
    out = program.run("produce", "-m", "1", "-f", str(tmp_path / "payload"), topic)
    assert counted(out) == 1


def test_more_topics_than_names_are_refused(program: Program) -> None:
    out = program.run("produce", "-t", "3", "one", "two", status=2)
    assert "--num-topics 3: 2 topics are named; leave the option out" in out


def keys(topic: str, admin_url: str) -> set[str]:
    """Return the keys of the first three entries of a topic."""
    base = f"{admin_url}/admin/v2/{topic.replace('://', '/')}/examinemessage?initialPosition=earliest&messagePosition="
    answers = [urllib.request.urlopen(f"{base}{number}", timeout=60) for number in (1, 2, 3)]
    return {answer.headers["X-Pulsar-partition-key"] for answer in answers}


def test_messages_have_keys_of_the_asked_kind(program: Program, broker: PulsarBroker, topic: str) -> None:
    for mode in ("autoIncrement", "random"):
        program.run("produce", "-m", "3", "-r", "0", "-bd", "-mk", mode, f"{topic}-{mode}")
    assert keys(f"{topic}-autoIncrement", broker.admin_url) == {"0", "1", "2"}
    assert len(keys(f"{topic}-random", broker.admin_url)) == 3


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("produce -txn -nmt 5 t", "--txn-enable: messages of transactions are not measured here; leave the option out"),
        ("consume --txn-enable t", "--txn-enable: messages of transactions are not measured here"),
        ("transaction --topics-c t", "pulsar-perf transaction does not exist; use consume, produce, read"),
    ],
)
def test_what_it_does_not_measure_is_refused(program: Program, line: str, said: str) -> None:
    assert said in program.run(*line.split(), status=2)


def test_a_histogram_that_is_not_written_is_told(program: Program, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "latencies"
    _, err = program.said("produce", "-m", "1", "--histogram-file", str(file), topic)
    assert err == f"--histogram-file {file} has no effect here: the last lines have the latencies\n"
    assert not file.exists()


@pytest.mark.parametrize("option", ["--max-connections", "--num-io-threads", "--num-test-threads"])
def test_an_option_about_threads_is_told_to_have_no_effect(program: Program, topic: str, option: str) -> None:
    _, err = program.said("produce", "-m", "1", option, "4", topic)
    assert err == f"{option} has no effect here: one thread with one connection does the work\n"


def test_the_lines_are_those_of_pulsar_perf() -> None:
    now = [100.0]
    tally = Tally("produced", 0, lambda: now[0])
    for milliseconds in (1.0, 2.0, 3.0):
        tally.add(125_000, milliseconds)
    tally.fail()
    now[0] = 102.0
    latency = (
        "Latency: mean:   2.000 ms - med:   2.000 - 95pct:   3.000 - 99pct:   3.000 - 99.9pct:   3.000 "
        "- 99.99pct:   3.000 - Max:   3.000"
    )
    rates = "     1.5 msg/s ---      1.5 Mbit/s"
    assert tally.report() == f"Throughput produced:        3 msg --- {rates} --- failure      0.5 msg/s --- {latency}"
    assert tally.summary() == [
        f"Aggregated throughput stats --- 3 records sent --- {rates}",
        f"Aggregated latency stats --- {latency}",
    ]


def test_a_report_has_only_the_messages_since_the_last_one() -> None:
    now = [0.0]
    tally = Tally("received", 0, lambda: now[0])
    tally.add(1, 1.0)
    now[0] = 1.0
    tally.report()
    now[0] = 2.0
    line = tally.report()
    assert line.startswith("Throughput received:        1 msg ---      0.0 msg/s")
    assert "Max:   0.000" in line


def test_quantiles_are_those_of_the_counted_latencies() -> None:
    latencies = Latencies()
    for each in range(1, 101):
        latencies.add(float(each))
    assert str(latencies).startswith("mean:  50.500 ms - med:  50.000 - 95pct:  95.000 - 99pct:  99.000")
