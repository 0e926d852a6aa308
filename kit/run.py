"""Run scenarios one after another, each with an adapter of its own, and judge them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pulsarium.kit.adapter import OPERATIONS, Adapter, AdapterFault, ClientError, Unsupported
from pulsarium.kit.history import History, read
from pulsarium.kit.scenario import Failed, Scenario, Stage
from pulsarium.kit.side import Side, SideFault


class Verdict(StrEnum):
    """The verdict on a client in one scenario."""

    PASS = "pass"
    FAIL = "fail"
    UNSUPPORTED = "unsupported"
    """The client cannot do what the scenario needs."""
    ERROR = "error"
    """The adapter or the broker did not do its part, so that the scenario says nothing about the client."""


@dataclass(frozen=True)
class Result:
    """Result of a scenario. `rules` names the broken rules of the linter."""

    scenario: Scenario
    verdict: Verdict
    reason: str = ""
    seconds: float = 0.0
    rules: Sequence[str] = ()

    @property
    def is_bad(self) -> bool:
        return self.verdict in (Verdict.FAIL, Verdict.ERROR)


@dataclass(frozen=True)
class Client:
    """Name, version and operations of a client, from its adapter's answer to hello."""

    name: str
    version: str
    operations: frozenset[str]


def matching(scenarios: Iterable[Scenario], names: Sequence[str]) -> list[Scenario]:
    """Return the scenarios with one of these names or globs, or all. Raise `ValueError` for a name that fits none."""
    known = list(scenarios)
    for name in names:
        if not any(fnmatchcase(each.name, name) for each in known):
            raise ValueError(f"no scenario is named {name}: see --list")
    return [each for each in known if not names or any(fnmatchcase(each.name, name) for name in names)]


def greet(adapter: Adapter, seconds: float = 60.0) -> Client:
    """Return what an adapter says of itself. Raise `AdapterFault`."""
    try:
        told = adapter.begin("hello").wait(seconds)
    except (ClientError, Unsupported) as error:
        raise AdapterFault(f"hello was answered with {error}") from None
    operations = told.get("operations")
    if not isinstance(operations, list) or not set(operations) <= OPERATIONS.keys():
        raise AdapterFault(f"hello names unknown operations: {operations!r}")
    return Client(str(told.get("client", "?")), str(told.get("version", "")), frozenset(operations))


class Runner:
    """Runs scenarios with the adapter of a command."""

    def __init__(self, command: Sequence[str], side: Side, spec: str, folder: Path) -> None:
        self._command = command
        self._side = side
        self._spec = spec
        self._folder = folder
        self.client: Client | None = None

    def run(
        self, scenarios: Iterable[Scenario], report: Callable[[Result], None] = lambda result: None
    ) -> list[Result]:
        """Run scenarios, report each result as it arrives, and return all results."""
        results = []
        for each in scenarios:
            result = self._one(each)
            report(result)
            results.append(result)
        return results

    def _one(self, scenario: Scenario) -> Result:
        begun = time.monotonic()
        verdict, reason, rules = self._judged(scenario)
        return Result(scenario, verdict, reason, time.monotonic() - begun, rules)

    def _judged(self, scenario: Scenario) -> tuple[Verdict, str, Sequence[str]]:
        self._side.begin()
        try:
            adapter = Adapter(self._command, self._folder / f"{scenario.name}.log")
        except AdapterFault as fault:
            return Verdict.ERROR, str(fault), ()
        try:
            verdict, reason = self._played(scenario, adapter)
        finally:
            adapter.stop()
        return self._linted(scenario, verdict, reason, read(self._side.records()))

    def _played(self, scenario: Scenario, adapter: Adapter) -> tuple[Verdict, str]:
        try:
            self.client = greet(adapter)
            lacking = sorted(scenario.needs - self.client.operations)
            if lacking:
                return Verdict.UNSUPPORTED, f"the client has no {', '.join(lacking)}"
            namespace = f"public/kit-{uuid.uuid4().hex[:10]}"
            self._side.namespace(namespace)
            stage = Stage(adapter, self._side, self._spec, namespace, self.client.operations)
            stage.client = stage.connect()
            scenario.run(stage)
            stage.close_all()
        except Failed as failure:
            return Verdict.FAIL, str(failure)
        except ClientError as error:
            return Verdict.FAIL, f"the client failed: {error}"
        except Unsupported as lack:
            return Verdict.UNSUPPORTED, str(lack)
        except (AdapterFault, SideFault) as fault:
            return Verdict.ERROR, str(fault)
        return Verdict.PASS, ""

    def _linted(
        self, scenario: Scenario, verdict: Verdict, reason: str, history: History
    ) -> tuple[Verdict, str, Sequence[str]]:
        """Fail a scenario that passed when frames of the client break a rule of the linter."""
        broken: dict[str, Any] = {}
        for each in history.findings:
            if each.side == "client" and each.severity == "error" and each.rule not in scenario.may_break:
                broken.setdefault(each.rule, each)
        if verdict is Verdict.PASS and broken:
            first = next(iter(broken.values()))
            verdict, reason = Verdict.FAIL, f"the frames break the rule {first.rule}: {first.detail}"
        return verdict, reason, tuple(broken)
