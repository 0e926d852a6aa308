"""`explore`: a test that runs again and again with a broker that makes legal choices."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from pulsarium import client as pulsar
from pulsarium.broker.lab.explore.script import ScriptError
from pulsarium.broker.testing import PulsarBroker, running
from pulsarium.broker.testing.explore import Explored, explore
from pulsarium.broker.testing.http import Http
from pulsarium.broker.testing.proxy import PulsarProxy

COUNT = 4
Handled = Callable[[list[bytes]], None]


def application(check: Handled) -> Callable[[PulsarBroker | PulsarProxy], None]:
    """Return a test of a program that publishes and consumes at least once. `check` judges the handled messages."""

    async def run(broker: PulsarBroker | PulsarProxy) -> list[bytes]:
        handled: list[bytes] = []
        with trio.fail_after(60):
            async with (
                pulsar.connect(broker.service_url) as connected,
                connected.create_producer("orders") as producer,
                connected.subscribe("orders", "billing", initial_position=pulsar.InitialPosition.Earliest) as consumer,
            ):
                for number in range(COUNT):
                    await producer.send(b"%d" % number)
                while len({*handled}) < COUNT:
                    message = await consumer.receive()
                    handled.append(message.data())
                    await consumer.acknowledge(message)
        return handled

    return lambda broker: check(trio.run(run, broker))


def each_at_least_once(handled: list[bytes]) -> None:
    assert {*handled} == {b"%d" % number for number in range(COUNT)}


def each_once(handled: list[bytes]) -> None:
    assert len(handled) == COUNT, "an order was handled twice"


@pytest.mark.heavy
def test_an_application_that_expects_duplicates_passes() -> None:
    search = explore(application(each_at_least_once), runs=25, seed=3, failures=None)
    assert search.done == 25
    assert search.coverage.covered > 5


def test_an_application_that_expects_none_gets_the_least_script(tmp_path: Path) -> None:
    failures = tmp_path / "failures"
    with pytest.raises(Explored) as caught:
        explore(application(each_once), runs=100, only=["duplicate"], rates={"duplicate": 0.5}, failures=failures)
    text = str(caught.value)
    assert [*map(str, caught.value.finding.script)] == ["duplicate SEND 0"]
    assert '@pytest.mark.pulsar(explore=["duplicate SEND 0"])' in text
    assert "an order was handled twice" in text
    assert "did=duplicated" in text
    assert isinstance(caught.value.__cause__, AssertionError)


def test_a_script_that_failed_is_run_first_next_time(tmp_path: Path) -> None:
    failures = tmp_path / "failures"
    failures.write_text('{"of": "t", "script": ["duplicate SEND 1"]}\n{"of": "t", "script": ["gone SEND 1"]}\n')
    made: list[int] = []

    def check(handled: list[bytes]) -> None:
        made.append(len(handled))

    explore(application(check), runs=1, failures=failures, name="t")
    assert made == [COUNT + 1, COUNT]


def test_a_given_script_is_run_once() -> None:
    with pytest.raises(Explored, match="handled twice"):
        explore(application(each_once), script=["duplicate SEND 2"])
    explore(application(each_once), script=["unload SEND 3"])


def test_a_wrong_script_is_refused() -> None:
    with pytest.raises(ScriptError, match="no kind 'twice'"):
        explore(application(each_once), script=["twice SEND 2"])


def test_a_test_that_fails_without_any_choice_has_an_empty_script() -> None:
    def fails(broker: PulsarBroker) -> None:
        raise RuntimeError("broken")

    with pytest.raises(Explored, match="fails also when the broker chooses nothing"):
        explore(fails, runs=5, failures=None)


def test_in_front_of_a_running_broker_a_bug_is_found_and_the_topics_of_each_run_are_deleted(tmp_path: Path) -> None:
    failures = tmp_path / "failures"
    failures.write_text('{"of": "", "script": ["unload SEND 1"]}\n')  # which no proxy can do
    with running() as broker:
        often = {"duplicate": 0.5}
        with pytest.raises(Explored, match="handled twice") as caught:
            explore(
                application(each_once),
                proxy=broker.service_url,
                proxy_admin_url=broker.admin_url,
                delete_topics=True,
                only=often,
                rates=often,
                failures=failures,
            )
        left = Http(broker.admin_url).call("GET", "/admin/v2/persistent/public/default")
    assert [*map(str, caught.value.finding.script)] == ["duplicate SEND 0"]
    assert left == []


@pytest.mark.parametrize(
    ("url", "options", "says"),
    [
        ("pulsar://localhost", {"script": ["unload SEND 1"]}, "only a broker of Pulsarium can do unload"),
        ("pulsar://localhost", {"delete_topics": True}, "proxy_admin_url=URL"),
        ("pulsar://8.8.8.8", {}, "yes_not_production=True"),
        ("localhost", {}, "pulsar://HOST:PORT"),
    ],
)
def test_what_cannot_be_in_front_of_a_broker_is_refused(url: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        explore(application(each_once), proxy=url, failures=None, **options)
