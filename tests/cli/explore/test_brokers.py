"""The brokers of the runs of an exploration."""

from __future__ import annotations

import click
import pytest
import trio

from pulsarium import client as pulsar
from pulsarium.broker.config import Config, ServeOptions
from pulsarium.broker.lab.explore.search import ExploreSettings, RunOutcome, Search
from pulsarium.broker.server import open_broker
from pulsarium.broker.testing.proxy import proxy_options
from pulsarium.broker.testing.shared_broker import SharedBroker
from pulsarium.cli.explore.brokers import behind_a_proxy
from pulsarium.cli.explore.main import explore
from pulsarium.cli.explore.run import Exploration
from pulsarium.cli.refusal import RunRefused
from pulsarium.cli.run import RunningBrokers
from tests.capture.captures import small
from tests.cli.admin.answering import Server, running

server = pytest.fixture(running, name="server")


def test_the_topics_of_a_run_are_deleted_with_the_token_of_the_environment(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULSARIUM_TOKEN", "a-token")
    with click.Context(explore):
        brokers = behind_a_proxy("pulsar://127.0.0.1", server.url, {}, (), sure=False, deletes=True)
    brokers.clean(RunOutcome("", (), records=small().records))
    [(method, path, headers, _)] = server.seen
    assert (method, path.partition("?")[0]) == ("DELETE", "/admin/v2/persistent/public/default/t")
    assert headers["Authorization"] == "Bearer a-token"


def test_a_topic_is_deleted_at_the_broker_that_owns_it(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULSARIUM_TOKEN", "a-token")
    server.answers["/admin/v2/persistent/public/default/t"] = 307, {"Location": f"{server.url}/owner"}, b""
    with click.Context(explore):
        brokers = behind_a_proxy("pulsar://127.0.0.1", server.url, {}, (), sure=False, deletes=True)
    brokers.clean(RunOutcome("", (), records=small().records))
    assert [(method, path, headers["Authorization"]) for method, path, headers, _ in server.seen[1:]] == [
        ("DELETE", "/owner", "Bearer a-token")
    ]


class Meeting:
    """Runs that end once each of two has opened its topic."""

    output = ""

    def __init__(self, *topics: str) -> None:
        self.numbers = list[int]()
        self._topics = [*topics]
        self._opened = [trio.Event() for _ in topics]

    async def run(self, number: int, broker: RunningBrokers, seconds: float) -> str:
        """Open a topic."""
        self.numbers.append(number)
        topic = self._topics.pop()
        opened = self._opened[len(self._topics)]
        async with pulsar.connect(broker.service_url) as client, client.create_producer(topic):
            opened.set()
            for each in self._opened:
                await each.wait()
        return ""

    def close(self) -> None:
        """Do nothing."""


async def explored(*topics: str) -> list[int]:
    """Explore two runs at once in front of a broker, and return their numbers."""
    application = Meeting(*topics)
    options = ServeOptions(config=Config(brokerServicePort=0, webServicePort=0))
    async with open_broker(options, web_when_asked=True) as broker:
        shared = SharedBroker(options=proxy_options(broker.service_url))
        search = Search(ExploreSettings(2, 0, only=["duplicate"], rates={"duplicate": 0}))
        await Exploration(shared.begin, search, lambda: application, timeout=60, jobs=2).run()
    return application.numbers


async def test_two_runs_at_once_that_open_one_topic_of_one_broker_are_refused() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        await explored("t", "t")
    assert caught.group_contains(RunRefused, match="persistent://public/default/t on one broker.*leave out --jobs")


async def test_two_runs_at_once_with_topics_of_their_own_have_their_numbers() -> None:
    assert sorted(await explored("t", "u")) == [1, 2]
