"""The same test files in each way that the docs offer: alone, with workers, under `pulsarium exec`, and with a URL."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from pulsarium.broker.testing import running
from tests.broker.testing.conftest import PYTEST

EXAMPLES = Path(__file__).parents[3] / "examples" / "python"
EXEC = (sys.executable, "-P", "-m", "pulsarium", "exec", "--")
WORKERS = ("-pxdist", "-n2")
EVERYTHING = """
import pytest
from pulsarium.testing import Mask


def test_what_the_docs_say_about_waiting(pulsar_broker, pulsar_client, pulsar_topic):
    consumer = pulsar_client.subscribe(pulsar_topic, "s")
    producer = pulsar_client.create_producer(pulsar_topic)
    producer.send(b"paid")
    pulsar_broker.assert_produced(pulsar_topic, [b"paid"])
    pulsar_broker.assert_delivered(pulsar_topic, "s", 1)
    consumer.acknowledge(consumer.receive(30_000))
    pulsar_broker.assert_acked(pulsar_topic, "s", 1, timeout=60)
    pulsar_broker.assert_acked(pulsar_topic, "s")
    assert pulsar_broker.why(pulsar_topic, "s").reason == "caught-up"
    with pytest.raises(AssertionError, match="has 1 message, not 0"):
        pulsar_broker.assert_produced(pulsar_topic, 0)


def test_a_linter_and_a_checker(pulsar_linter, pulsar_checker, pulsar_client, pulsar_topic):
    consumer = pulsar_client.subscribe(pulsar_topic, "s")
    pulsar_client.create_producer(pulsar_topic).send(b"a")
    consumer.receive(30_000)
    assert pulsar_checker.tally().kept["permits-exceeded"] == 1
    assert [each for each in pulsar_linter.violations() if each.side == "client"] == []


def test_a_capture_and_a_mask(pulsar_broker, pulsar_client, pulsar_topic):
    with pulsar_broker.captures.start() as capture, pulsar_broker.masks.add(Mask(), client_version="nobody*") as mask:
        pulsar_client.create_producer(pulsar_topic).send(b"a")
    assert (len(capture.records()) > 3, mask.hits) == (True, 0)


def test_a_clock_and_faults(pulsar_client, pulsar_topic, pulsar_clock, pulsar_faults):
    pulsar_clock.freeze()
    sent = pulsar_faults.observe("SEND")
    pulsar_client.create_producer(pulsar_topic).send(b"a")
    sent.wait(1)
    assert pulsar_clock.frozen


@pytest.mark.pulsar(explore=2)
def test_explored(pulsar_client, pulsar_topic):
    consumer = pulsar_client.subscribe(pulsar_topic, "s")
    pulsar_client.create_producer(pulsar_topic).send(b"a")
    assert consumer.receive(30_000).data() == b"a"


@pytest.mark.parametrize("pulsar_broker", [{"brokers": 1}, {"brokers": 3}], indirect=True)
def test_several_brokers(pulsar_broker, pulsar_topic):
    assert len(pulsar_broker.service_urls) in (1, 3)
"""
FILES = {
    "test_payments": ((EXAMPLES / "test_payments.py").read_text(), 2),
    "test_scaling": ((EXAMPLES / "test_scaling.py").read_text(), 1),
    "test_everything": (EVERYTHING, 7),
}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running() as broker:
        yield f"--pulsar-url={broker.admin_url}"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize(
    ("before", "options"),
    [((), ()), ((), WORKERS), (EXEC, ()), (EXEC, WORKERS), ((), ("URL",))],
    ids=["alone", "workers", "exec", "exec with workers", "url"],
)
def test_a_test_file_passes_in_each_way_of_the_docs(
    pytester: pytest.Pytester, url: str, file: str, before: Sequence[str], options: Sequence[str]
) -> None:
    source, tests = FILES[file]
    pytester.makepyfile(**{file: source})
    given = [url if option == "URL" else option for option in options]
    pytester.run(*before, *PYTEST, *given).assert_outcomes(passed=tests)
