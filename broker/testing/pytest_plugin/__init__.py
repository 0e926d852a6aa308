"""Fixtures for pytest, loaded wherever Pulsarium is installed: a broker, a namespace for each test, faults, clocks.

Every run of pytest imports this module, so it imports nothing of the broker until a test uses a fixture.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from pulsarium.broker.testing.pytest_plugin.explore import (
    BROKER,
    PROXY_ADMIN_URL,
    PROXY_URL,
    Explored,
    run_explored,
    upstream_of,
)
from pulsarium.broker.testing.pytest_plugin.marks import (
    HELP,
    MARKER,
    PROXY,
    broker_options,
    explores_a_proxy,
    marked,
    mistakes,
)

if TYPE_CHECKING:
    from pulsarium.broker.testing import (
        BrokerChecker,
        BrokerClock,
        BrokerNamespaceClock,
        CaptureLinter,
        FaultRule,
        NamespaceFaults,
        PulsarBroker,
        RemoteBroker,
    )
    from pulsarium.broker.testing.proxy import PulsarProxy
    from pulsarium.broker.testing.remote_lab import RemoteClock, RemoteRule

WRONG = pytest.StashKey[str]()
VARIABLE = "PULSARIUM_ADMIN_URL"  # `pulsarium exec` sets it; PULSAR_ADMIN_URL may name a real cluster
UNNAMED = getattr(pytest, "HIDDEN_PARAM", MARKER)  # pytest before 8.4 cannot hide a parameter in a test's name


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, and the finder that keeps pytest from rewriting the broker."""
    if _AsItIs not in sys.meta_path:
        sys.meta_path.insert(0, _AsItIs)
    parser.addini("pulsar_set", "broker.conf keys of the fixture pulsar_broker, one key=value a line", type="linelist")
    parser.addoption("--pulsar-url", metavar="URL", help="Use the Pulsarium broker at this http://host:port.")
    parser.addini("pulsar_admin_url", "http://host:port of a running broker, as --pulsar-url", default="")
    parser.addini(PROXY_URL, "URL of the broker behind the fixture pulsar_proxy, pulsar://host:port", default="")
    parser.addini(PROXY_ADMIN_URL, "http://host:port of the broker behind pulsar_proxy", default="")
    parser.addini(
        "pulsar_profile", "profile of the fixture pulsar_broker, as of pulsarium serve --profile", default="pip"
    )
    parser.addini("pulsar_pip", "proposals of the fixture pulsar_broker, as of pulsarium serve --pip", type="args")


class _AsItIs:
    """Find the broker's modules before pytest's importer does.

    pytest rewrites the assertions of whole distributions of plugins, which would make a broker start slowly.
    """

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        return PathFinder.find_spec(name, path, target) if name.startswith("pulsarium.") else None


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark. Raise `UsageError` for options that contradict each other."""
    config.addinivalue_line("markers", HELP)
    _url(config)


def pytest_unconfigure() -> None:
    """Remove the finder."""
    if _AsItIs in sys.meta_path:
        sys.meta_path.remove(_AsItIs)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """End the run when a mark cannot take effect, also when its test is deselected."""
    wrong = mistakes(items)
    if wrong and not hasattr(config, "workerinput"):
        raise pytest.UsageError("\n".join(f"{item.nodeid}: {said}" for said, item in wrong.items()))
    for said, item in wrong.items():  # a worker of pytest-xdist cannot report why it ends, so its test fails
        item.stash[WRONG] = said


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail a test whose mark is wrong."""
    if WRONG in item.stash:
        pytest.fail(item.stash[WRONG], pytrace=False)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a marked test the broker of its options, for `pulsar_broker` is otherwise one broker for the whole run."""
    fixture = PROXY if explores_a_proxy(metafunc.fixturenames) else BROKER
    if fixture not in metafunc.fixturenames:
        return  # a mark of this name may belong to another plugin
    asked = marked(metafunc.definition)
    options = Explored[Any](asked.options) if asked.exploration else asked.options if fixture == BROKER else None
    if options:
        metafunc.parametrize(fixture, [options], indirect=True, ids=[UNNAMED], scope="session")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a test with the mark's option `explore` again and again."""
    asked = marked(item)
    if WRONG in item.stash or not asked.exploration or not isinstance(item, pytest.Function):
        return None
    if not {BROKER, PROXY} & {*item.fixturenames}:
        return None  # a mark of this name may belong to another plugin
    run_explored(item, nextitem, asked)
    return True


def _url(config: pytest.Config) -> str:
    """Return the URL of a broker that runs elsewhere, or "" for brokers of this process.

    Raise `UsageError` when options ask for another broker than the one that the command line or the ini file names.
    """
    asked: str = config.getoption("--pulsar-url") or config.getini("pulsar_admin_url")
    own = ("pulsar_set", "pulsar_profile", "pulsar_pip")
    changed = [name for name in own if config.getini(name) not in ([], "pip")]
    if asked and changed:
        raise pytest.UsageError(
            f"{' and '.join(changed)} cannot change the broker at {asked}: start that broker with these options"
        )
    return asked or ("" if changed else os.environ.get(VARIABLE, ""))


class _Brokers:
    """The brokers of a run: the one that runs elsewhere, and one for each set of options."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._url = _url(config)
        self._running: dict[str, PulsarBroker | RemoteBroker] = {}
        self._stack = ExitStack()

    def get(self, options: Mapping[str, Any]) -> PulsarBroker | RemoteBroker:
        from pulsarium.broker.testing import RemoteBroker, running

        if self._url and not options:
            if self._url not in self._running:
                self._running[self._url] = RemoteBroker(self._url)
            return self._running[self._url]
        asked = broker_options(self._config, options)
        key = repr(sorted(asked.items()))
        if key not in self._running:
            self._running[key] = self._stack.enter_context(running(**asked))
        return self._running[key]

    def stop(self) -> None:
        self._stack.close()


@pytest.fixture(scope="session")
def _pulsar_brokers(pytestconfig: pytest.Config) -> Iterator[_Brokers]:
    brokers = _Brokers(pytestconfig)
    yield brokers
    brokers.stop()


@pytest.fixture(scope="session")
def pulsar_broker(_pulsar_brokers: _Brokers, request: pytest.FixtureRequest) -> PulsarBroker | RemoteBroker:
    """Start a broker on free ports, in memory and in its own thread, for the whole run.

    Under `pulsarium exec -- pytest`, or with --pulsar-url, all processes of the run use the broker that runs already.

    Mark a test that needs other options. Tests with the same options share a broker:

        @pytest.mark.pulsar(profile="pulsar-4.2", set={"maxMessageSize": 1024})

    For all tests, use the ini options pulsar_set, pulsar_profile and pulsar_pip. To run one test on several brokers:

        @pytest.mark.parametrize("pulsar_broker", [{"brokers": 1}, {"brokers": 3}], indirect=True)
    """
    options: Mapping[str, Any] | Explored[PulsarBroker] = getattr(request, "param", {})
    if isinstance(options, Explored):
        return options.now
    return _pulsar_brokers.get(options)


@pytest.fixture(scope="session")
def pulsar_proxy(pytestconfig: pytest.Config, request: pytest.FixtureRequest) -> Iterator[PulsarProxy]:
    """Run a proxy with the lab in front of any Pulsar, for the whole run. An explored test has a new one in each run.

    The ini options pulsar_proxy_url and pulsar_proxy_admin_url name the broker, or else the environment variables
    PULSAR_PROXY_URL and PULSAR_PROXY_ADMIN_URL.
    """
    from pulsarium.broker.testing.proxy import proxying

    asked: Explored[PulsarProxy] | None = getattr(request, "param", None)
    if asked is not None:
        yield asked.now
        return
    url, admin_url = upstream_of(pytestconfig)
    with proxying(url, admin_url) as proxy:
        yield proxy


@pytest.fixture
def pulsar_namespace(pulsar_broker: PulsarBroker | RemoteBroker, request: pytest.FixtureRequest) -> Iterator[str]:
    """Create the test's own namespace, `public/<name of the test>`, and delete it when the last client has left.

    Set its policies by their names in the REST API: @pytest.mark.pulsar(policies={"deduplicationEnabled": True}).
    """
    policies = marked(request.node).policies
    namespace = pulsar_broker.create_namespace(request.node.name.replace("/", "-"), **policies)
    yield namespace
    pulsar_broker.delete_namespace(namespace)


@pytest.fixture
def pulsar_topic(pulsar_namespace: str) -> str:
    """Return the name of the test's own topic, which the first client creates."""
    return f"persistent://{pulsar_namespace}/topic"


@pytest.fixture
def pulsar_client(pulsar_broker: PulsarBroker | RemoteBroker) -> Iterator[Any]:
    """Connect the official client (`pip install pulsar-client`) to `pulsar_broker`, and close it after the test."""
    from pulsar import AlreadyClosed, Client, ConsoleLogger, LoggerLevel

    client = Client(pulsar_broker.service_url, logger=ConsoleLogger(LoggerLevel.Warn))
    yield client
    with suppress(AlreadyClosed):  # the test may close the client
        client.close()


@pytest.fixture
def pulsar_faults(
    pulsar_broker: PulsarBroker | RemoteBroker, request: pytest.FixtureRequest
) -> Iterator[NamespaceFaults[FaultRule] | NamespaceFaults[RemoteRule]]:
    """Return the faults of the test's own namespace. Its rules are removed after the test.

    A rule acts on other tests of the broker only with `everywhere=True`.
    """
    faults = pulsar_broker.faults.of(_own_namespace(request))
    yield faults
    faults.clear()


def _own_namespace(request: pytest.FixtureRequest) -> str | None:
    """Return the namespace of a test that uses one of its own, or None."""
    if "pulsar_namespace" not in request.fixturenames:
        return None
    namespace: str = request.getfixturevalue("pulsar_namespace")
    return namespace


@pytest.fixture
def pulsar_clock(
    pulsar_broker: PulsarBroker | RemoteBroker, request: pytest.FixtureRequest
) -> Iterator[BrokerClock | BrokerNamespaceClock | RemoteClock]:
    """Return the clock of the test's own namespace, or of `pulsar_broker` in a test without `pulsar_namespace`.

    Tests with their own namespaces steer their clocks without each other. The clock is reset after the test.
    """
    from pulsarium.broker.testing import ClockError

    own, broker = _own_namespace(request), pulsar_broker.clock
    clock = broker if own is None else broker.of(own)
    yield clock
    with suppress(ClockError):  # the test may delete its namespace
        clock.reset()


@pytest.fixture
def pulsar_linter(
    pulsar_broker: PulsarBroker | RemoteBroker, request: pytest.FixtureRequest
) -> Iterator[CaptureLinter]:
    """Check the connections that the test opens. The test fails when a client breaks a rule of the protocol.

    The connections are those that use the test's own namespace, or all in a test without `pulsar_namespace`.
    """
    from pulsarium.broker.testing import CaptureLinter

    linter = CaptureLinter(pulsar_broker.captures, _own_namespace(request))
    linter.start()
    yield linter
    linter.stop()
    linter.assert_clean()


@pytest.fixture
def pulsar_checker(
    pulsar_broker: PulsarBroker | RemoteBroker, request: pytest.FixtureRequest
) -> Iterator[BrokerChecker]:
    """Record what clients experience. The test fails when that breaks a promise of Pulsar: loss, duplicates, order.

    The record has the topics of the test's own namespace, or all in a test without `pulsar_namespace`.
    """
    checker = pulsar_broker.checker.of(_own_namespace(request))
    checker.start()
    yield checker
    checker.stop()
    checker.assert_kept()
