"""Run a test of pytest again and again, each time with a broker that does what Pulsar is allowed to do.

Every run of pytest imports this module, so it imports nothing of the broker until a test is explored.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Generic, Literal, TypeVar

import pytest

from pulsarium.broker.testing.pytest_plugin.marks import EXPLORE, PROXY, Marked, broker_options, explores_a_proxy

R = TypeVar("R")
BROKER: Final = "pulsar_broker"
PROXY_URL: Final = "pulsar_proxy_url"
PROXY_ADMIN_URL: Final = "pulsar_proxy_admin_url"


@dataclass(eq=False)  # pytest creates the fixture pulsar_broker again for an unequal parameter
class Explored(Generic[R]):
    """The parameter of the fixture in an explored test: the options, and the broker or the proxy of this run."""

    options: Mapping[str, Any]
    running: R | None = None

    @property
    def now(self) -> R:
        """Return the broker or the proxy of this run."""
        if self.running is None:
            raise RuntimeError("the mark's option explore needs a test that this plugin runs itself")
        return self.running


def run_explored(item: pytest.Function, nextitem: pytest.Item | None, asked: Marked) -> None:
    """Run a test with many plans, and report it as one test."""
    hook = item.ihook
    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    _report(item, "setup", lambda: None)
    _report(item, "call", lambda: _explore(item, asked))
    _report(item, "teardown", lambda: _leave(item, nextitem))
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


class _End(pytest.Item):
    """A test without fixtures. Its teardown ends the fixtures of the module and the session that are needed no more."""

    def runtest(self) -> None:
        """Do nothing."""


def _leave(item: pytest.Function, nextitem: pytest.Item | None) -> None:
    end: _End = _End.from_parent(_parent(item), name=item.name)
    item.ihook.pytest_runtest_setup(item=end)
    item.ihook.pytest_runtest_teardown(item=end, nextitem=nextitem)


def _report(item: pytest.Item, when: Literal["setup", "call", "teardown"], work: Callable[[], object]) -> None:
    call = pytest.CallInfo.from_call(work, when, reraise=(pytest.exit.Exception, KeyboardInterrupt))
    report = item.ihook.pytest_runtest_makereport(item=item, call=call)
    item.ihook.pytest_runtest_logreport(report=report)


def _explore(item: pytest.Function, asked: Marked) -> None:
    """Run the test with each plan. Raise the failure of a run with its least script."""
    __tracebackhide__ = True
    from pulsarium.broker.testing.explore import explore
    from pulsarium.broker.testing.starting import options_of

    options = {name: value for name, value in asked.exploration.items() if name != EXPLORE}
    runs = asked.exploration[EXPLORE]
    options |= {"runs": runs} if isinstance(runs, int) else {"script": runs}
    options |= {"name": item.nodeid, "failures": _failures(item.config)}
    if explores_a_proxy(item.fixturenames):
        url, admin_url = upstream_of(item.config, options.get("proxy", ""))
        options = {"proxy_admin_url": admin_url, **options, "proxy": url}
        explore(lambda proxy: _run(item, PROXY, proxy), **options)
    else:
        broker = options_of(**broker_options(item.config, asked.options))
        explore(lambda broker: _run(item, BROKER, broker), options=broker, **options)


def upstream_of(config: pytest.Config, url: str = "") -> tuple[str, str | None]:
    """Return `url` with no admin URL, or else the URLs of the broker of the ini file, or of the environment.

    Fail the test when none is named.
    """
    if url:
        return url, None
    named, admin_url = (
        config.getini(name) or os.environ.get(name.upper(), "") for name in (PROXY_URL, PROXY_ADMIN_URL)
    )
    if not named:
        pytest.fail(
            "pulsar_proxy has no broker: set the ini option pulsar_proxy_url, or PULSAR_PROXY_URL, to pulsar://HOST:PORT",
            pytrace=False,
        )
    return named, admin_url or None


def _failures(config: pytest.Config) -> Path | None:
    """Return the file of scripts that failed before, in pytest's cache. Without a cache there is none."""
    cache = getattr(config, "cache", None)
    return None if cache is None else cache.mkdir("pulsarium") / "explore-failures"


def _run(item: pytest.Function, fixture: str, running: object) -> None:
    """Run the test once, with fixtures of its own."""
    __tracebackhide__ = True
    again = _again(item, fixture, running)
    hook = item.ihook
    try:
        hook.pytest_runtest_setup(item=again)
        hook.pytest_runtest_call(item=again)
    except pytest.fail.Exception as failed:
        raise AssertionError(str(failed)) from failed  # an outcome of pytest is no Exception
    finally:
        hook.pytest_runtest_teardown(item=again, nextitem=item)


def _again(item: pytest.Function, fixture: str, running: object) -> pytest.Function:
    """Return a copy of the test with new fixtures, of which this one is running."""
    spec = item.callspec
    asked = spec.params[fixture]
    assert isinstance(asked, Explored)
    params = {**spec.params, fixture: Explored(asked.options, running)}
    again: pytest.Function = type(item).from_parent(
        _parent(item),
        name=item.name,
        callspec=replace(spec, params=params),
        callobj=item.obj,
        originalname=item.originalname,
    )
    again.own_markers[:] = item.own_markers
    return again


def _parent(item: pytest.Item) -> pytest.Collector:
    parent = item.parent
    assert parent is not None  # only the session has none
    return parent
