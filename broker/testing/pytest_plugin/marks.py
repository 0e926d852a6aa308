"""Check the marks `@pytest.mark.pulsar(...)` of collected tests: their options, and whether they take effect.

Every run of pytest imports this module, so it imports nothing of the broker.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

import pytest

MARKER: Final = "pulsar"
POLICIES: Final = "policies"
OPTIONS: Final = (  # options of `running`; tests/broker/testing/test_marks.py compares them
    *("set", "profile", "max_protocol_version", "separate_publish_times", "pip", "brokers", "config", "data"),
    *("durability", "port", "http_port", "toxiproxy_port"),
)
EXPLORE: Final = "explore"
IN_FRONT: Final = ("proxy", "proxy_admin_url", "delete_topics", "token", "yes_not_production")
EXPLORATION: Final = (EXPLORE, "seed", "only", "without", "rates", *IN_FRONT)
PROXY: Final = "pulsar_proxy"
FIXTURES: Final = ("pulsar_broker", "pulsar_namespace")  # the other fixtures of a broker use one of these
HELP: Final = (
    f"{MARKER}({POLICIES}={{...}}, **options): set policies of pulsar_namespace by their names in the "
    f"REST API, and options of pulsar_broker ({', '.join(OPTIONS)}, as in pulsarium.broker.running). Tests with the "
    f"same options share a broker. {EXPLORE}=N runs the test N times, each time with a new broker that does what "
    f"Pulsar may do; {EXPLORE}=[decision, ...] repeats one such run. {', '.join(EXPLORATION[1:])} are options of the "
    f"exploration, as in pulsarium explore. A test with the fixture {PROXY} has a new proxy in each run, and "
    f"{', '.join(IN_FRONT)} are for such a test."
)
_KNOWN: Final = (POLICIES, *OPTIONS, *EXPLORATION)


class Marked(NamedTuple):
    """Options of the broker, policies of the namespace, and options of the exploration, or {} without one."""

    options: dict[str, Any]
    policies: Mapping[str, object]
    exploration: dict[str, Any]


def marked(node: pytest.Item | pytest.Function) -> Marked:
    """Return what the marks of a test say. The nearest mark overrides the others."""
    options: dict[str, Any] = {}
    for mark in reversed(list(node.iter_markers(MARKER))):
        options |= mark.kwargs
    exploration: dict[str, Any] = {name: options.pop(name) for name in EXPLORATION if name in options}
    return Marked(options, options.pop(POLICIES, {}), exploration)


def explores_a_proxy(fixtures: Collection[str]) -> bool:
    """Return whether an exploration of a test with these fixtures runs in front of a broker."""
    return PROXY in fixtures and not any(name in fixtures for name in FIXTURES)


def broker_options(config: pytest.Config, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of `running`: those of a test over those of the ini file."""
    lines = [line.partition("=") for line in config.getini("pulsar_set")]
    keys = {key.strip(): value.strip() for key, _, value in lines}
    of_all = {"profile": config.getini("pulsar_profile"), "pip": config.getini("pulsar_pip")}
    return {**of_all, **options, "set": {**keys, **options.get("set", {})}}


def mistakes(items: list[pytest.Item]) -> dict[str, pytest.Item]:
    """Return the mistakes in the marks of these tests, each with the first test that has it."""
    found: dict[str, pytest.Item] = {}
    for item in items:
        for mark in item.iter_markers(MARKER):
            for wrong in _wrong(mark, getattr(item, "fixturenames", ())):
                found.setdefault(wrong, item)
    return found


def _wrong(mark: pytest.Mark, fixtures: Collection[str]) -> Iterator[str]:
    """Yield the mistakes of a mark.

    Another plugin may own a mark of this name. So a test without our fixtures is wrong only when all options are ours.
    """
    if explores_a_proxy(fixtures):
        others = sorted(mark.kwargs.keys() - {*EXPLORATION})
        is_ours = EXPLORE in mark.kwargs or (not mark.args and mark.kwargs.keys() <= {*_KNOWN})
        if others and is_ours:
            yield f"{', '.join(others)} of pytest.mark.{MARKER} has no effect on a test with {PROXY}: leave it out"
        yield from _wrong_in_front(mark.kwargs)
        yield from _wrong_exploration(mark.kwargs) if mark.kwargs.keys() & {*EXPLORATION} else ()
        return
    if not any(name in fixtures for name in FIXTURES):
        if mark.kwargs and not mark.args and mark.kwargs.keys() <= {*_KNOWN}:
            yield f"pytest.mark.{MARKER} has no effect on a test without the fixture {_needed(mark.kwargs)}: add it"
        return
    if mark.args:
        yield f"pytest.mark.{MARKER} takes its options by name, not {mark.args!r}"
    for name in mark.kwargs.keys() - {*_KNOWN}:
        yield f"pytest.mark.{MARKER} has no option {name!r}{_instead(name, _KNOWN)}"
    if POLICIES in mark.kwargs:
        if "pulsar_namespace" not in fixtures:
            yield (
                f"{POLICIES} of pytest.mark.{MARKER} have no effect on a test without the fixture pulsar_namespace: "
                "add it, or pulsar_topic"
            )
        yield from _wrong_policies(mark.kwargs[POLICIES])
    for name in sorted(mark.kwargs.keys() & {*IN_FRONT}):
        yield f"{name} of pytest.mark.{MARKER} has no effect on a test with a broker of its own: use {PROXY} alone"
    if mark.kwargs.keys() & {*EXPLORATION}:
        yield from _wrong_exploration(mark.kwargs)


def _needed(options: Mapping[str, object]) -> str:
    return "pulsar_namespace (or pulsar_topic)" if POLICIES in options else "pulsar_broker (or one that uses it)"


def _wrong_policies(policies: object) -> Iterator[str]:
    from pulsarium.broker.model.namespace.policies import is_readable
    from pulsarium.rest.policies import NAMESPACE_DEFAULTS

    if not isinstance(policies, Mapping):
        yield f"{POLICIES} of pytest.mark.{MARKER} must be a dict of names and values, not {policies!r}"
        return
    for name, value in policies.items():
        if name not in NAMESPACE_DEFAULTS:
            yield f"there is no policy {name!r} of a namespace{_instead(name, NAMESPACE_DEFAULTS)}"
        elif not is_readable(name, value):
            yield f"{value!r} is not a valid value of the policy {name!r}"


def _wrong_exploration(options: Mapping[str, Any]) -> Iterator[str]:
    from pulsarium.broker.testing.explore import wrong_arguments

    runs = options.get(EXPLORE)
    script: Collection[str] = ()
    if runs is None:
        alone = ", ".join(sorted(options.keys() & {*EXPLORATION}))
        yield f"{alone} of pytest.mark.{MARKER} has no effect without {EXPLORE}: add the number of runs, {EXPLORE}=200"
    elif isinstance(runs, (list, tuple)):
        script = runs
    elif not isinstance(runs, int) or runs < 1:
        yield f"{EXPLORE} of pytest.mark.{MARKER} must be a number of runs, or a list of decisions, not {runs!r}"
    if options.get("data") is not None:
        yield f"data of pytest.mark.{MARKER} has no effect with {EXPLORE}: each run has a new broker in memory"
    kinds = [kind for option in ("only", "without", "rates") for kind in options.get(option, ())]
    for wrong in wrong_arguments(script, kinds):
        yield f"{EXPLORE} of pytest.mark.{MARKER}: {wrong}"


def _wrong_in_front(options: Mapping[str, Any]) -> Iterator[str]:
    from pulsarium.broker.testing.shared_broker import only_broker

    for wrong in only_broker([*options.get("only", ()), *options.get("rates", ())]):
        yield f"{EXPLORE} of pytest.mark.{MARKER}: {wrong}"


def _instead(name: str, known: Collection[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""
