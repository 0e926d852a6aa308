"""Run a test of pytest again and again, each time with a broker that does what Pulsar is allowed to do.

Every run of pytest imports this module, so it imports nothing of the broker until a test is explored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from pulsarium.broker.testing.pytest_plugin.marks import EXPLORE, Marked, broker_options

if TYPE_CHECKING:
    from pulsarium.broker.testing import PulsarBroker


@dataclass(eq=False)  # pytest creates the fixture pulsar_broker again for an unequal parameter
class Explored:
    """The parameter of the fixture pulsar_broker in an explored test: the options, and the broker of this run."""

    options: Mapping[str, Any]
    running: PulsarBroker | None = None

    @property
    def broker(self) -> PulsarBroker:
        """Return the broker of this run."""
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
    explore(
        lambda broker: _run(item, broker),
        options=options_of(**broker_options(item.config, asked.options)),
        name=item.nodeid,
        failures=_failures(item.config),
        **options,
    )


def _failures(config: pytest.Config) -> Path | None:
    """Return the file of scripts that failed before, in pytest's cache. Without a cache there is none."""
    cache = getattr(config, "cache", None)
    return None if cache is None else cache.mkdir("pulsarium") / "explore-failures"


def _run(item: pytest.Function, broker: PulsarBroker) -> None:
    """Run the test once, with fixtures of its own."""
    __tracebackhide__ = True
    again = _again(item, broker)
    hook = item.ihook
    try:
        hook.pytest_runtest_setup(item=again)
        hook.pytest_runtest_call(item=again)
    except pytest.fail.Exception as failed:
        raise AssertionError(str(failed)) from failed  # an outcome of pytest is no Exception
    finally:
        hook.pytest_runtest_teardown(item=again, nextitem=item)


def _again(item: pytest.Function, broker: PulsarBroker) -> pytest.Function:
    """Return a copy of the test with new fixtures and this broker."""
    spec = item.callspec
    asked = spec.params["pulsar_broker"]
    assert isinstance(asked, Explored)
    params = {**spec.params, "pulsar_broker": Explored(asked.options, broker)}
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
