"""Run scenarios one after another, each with an adapter of its own, and judge them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from pulsarium.capture.file import SUFFIX, CaptureRecord, CaptureWriter, Header
from pulsarium.conformance.history import History, read
from pulsarium.conformance.material import make
from pulsarium.conformance.protocol import Adapter, AdapterFault, Client, ClientError, Unsupported, greet
from pulsarium.conformance.scenario import Failed, Scenario, Stage
from pulsarium.conformance.side import Side, SideFault, Sides, Unavailable
from pulsarium.proto.drafts import DRAFT_COMMANDS, DRAFT_FIELDS

BROKEN_RULE: Final = "the frames break the rule"
"""The first words of the reason of a scenario that passed but for a rule of the linter."""
_LOG_BYTES: Final = 1 << 20
_OF_PROTOCOL: Final = frozenset({*DRAFT_COMMANDS.values(), *DRAFT_FIELDS.values()})
"""Proposals that change the protocol, which clients must know."""


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
    """Result of a scenario.

    rules: the broken rules of the linter. needs: the operations and options. log, capture: files of the adapter's
    standard error and of all frames, or None.
    """

    scenario: Scenario
    verdict: Verdict
    reason: str = ""
    seconds: float = 0.0
    rules: Sequence[str] = ()
    needs: frozenset[str] = frozenset()
    log: Path | None = None
    capture: Path | None = None

    @property
    def is_bad(self) -> bool:
        return self.verdict in (Verdict.FAIL, Verdict.ERROR)


def matching(scenarios: Iterable[Scenario], names: Sequence[str]) -> list[Scenario]:
    """Return the scenarios with one of these names or globs, or all. Raise `ValueError` for a name that fits none."""
    known = list(scenarios)
    for name in names:
        if not any(fnmatchcase(each.name, name) for each in known):
            raise ValueError(f"no scenario is named {name}: see --list")
    return [each for each in known if not names or any(fnmatchcase(each.name, name) for name in names)]


def spec_of(profile: str) -> str:
    """Return the specification that a profile follows where texts of the specification contradict each other."""
    return "5.0-m1" if profile == "pulsar-5.0-m1" else "5.0"


class Runner:
    """Runs scenarios with the adapter of a command, on brokers with a profile.

    An adapter runs as many scenarios as it passes. After another verdict the next scenario gets a new one.
    """

    def __init__(
        self,
        command: Sequence[str],
        sides: Sides,
        profile: str,
        folder: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Make the keys and certificates in `folder`, which receives the logs and frames of the scenarios.

        `environment` has variables of the adapter.
        """
        self._command = command
        self._environment = environment or {}
        self._sides = sides
        self._spec = spec_of(profile)
        self._folder = folder
        self._log = folder / "adapter.log"
        self._material = make(folder / "material")
        self._adapter: Adapter | None = None
        self.client: Client | None = None
        self.is_killed = False

    def run(
        self, scenarios: Iterable[Scenario], report: Callable[[Result], None] = lambda result: None
    ) -> list[Result]:
        """Run scenarios, report each result as it arrives, and return all results."""
        results = []
        try:
            for each in scenarios:
                result = self.play(each)
                report(result)
                results.append(result)
        finally:
            self.stop()
        return results

    def play(self, scenario: Scenario) -> Result:
        """Run one scenario. The adapter stays for the next one."""
        begun, logged = time.monotonic(), self._log.stat().st_size if self._log.exists() else 0
        try:
            side = self._sides.side(self._material if scenario.secured else None, scenario.pip)
        except Unavailable as lack:
            return Result(scenario, Verdict.UNSUPPORTED, str(lack))
        side.begin()
        verdict, reason, needs = self._played(scenario, side)
        if verdict not in (Verdict.PASS, Verdict.UNSUPPORTED):
            self.stop()
        records = side.records()
        verdict, reason, rules = self._linted(scenario, verdict, reason, read(records))
        files = self._logged(scenario, logged), self._captured(scenario, records)
        return Result(scenario, verdict, reason, time.monotonic() - begun, rules, needs, *files)

    def _logged(self, scenario: Scenario, start: int) -> Path | None:
        """Copy the adapter's output of a scenario to a file of its own."""
        if not self._log.exists() or self._log.stat().st_size == start:
            return None
        path = self._folder / f"{scenario.name}.log"
        with self._log.open("rb") as log:
            log.seek(start)
            path.write_bytes(log.read(_LOG_BYTES))
        return path

    def _captured(self, scenario: Scenario, records: Sequence[CaptureRecord]) -> Path | None:
        """Write the frames of a scenario to a capture."""
        if not records:
            return None
        path = self._folder / f"{scenario.name}{SUFFIX}"
        with path.open("wb") as file:
            writer = CaptureWriter(file.write, Header(records[0].wall_ns, metadata={"scenario": scenario.name}))
            for each in records:
                writer.record(each)
        return path

    def _played(self, scenario: Scenario, side: Side) -> tuple[Verdict, str, frozenset[str]]:
        """Let the adapter play a scenario. Return the verdict, its reason, and what the scenario asked for."""
        needs: set[str] = set()
        try:
            adapter = self._started()
            assert self.client is not None
            if scenario.topics not in self.client.topics:
                raise Unsupported(f"the client has no {scenario.topics} topics")
            if scenario.pip in _OF_PROTOCOL and scenario.pip not in self.client.proposals:
                raise Unsupported(f"the client does not know PIP-{scenario.pip}")
            namespace = f"public/conformance-{uuid.uuid4().hex[:10]}"
            side.namespace(namespace)
            stage = Stage(adapter, self.client, side, self._spec, namespace, self._material, secured=scenario.secured)
            needs = stage.needs
            stage.client = stage.connect()
            try:
                scenario.run(stage)
            finally:
                if not adapter.has_ended:
                    stage.close_all()
        except Failed as failure:
            return Verdict.FAIL, str(failure), frozenset(needs)
        except (LookupError, ValueError, TypeError) as error:
            return Verdict.FAIL, f"the client's answer is not what the scenario reads: {error!r}", frozenset(needs)
        except ClientError as error:
            return Verdict.FAIL, f"the client failed: {error}", frozenset(needs)
        except (Unsupported, Unavailable) as lack:
            return Verdict.UNSUPPORTED, str(lack), frozenset(needs)
        except (AdapterFault, SideFault) as fault:
            return Verdict.ERROR, str(fault), frozenset(needs)
        return Verdict.PASS, "", frozenset(needs)

    def _started(self) -> Adapter:
        """Return the running adapter, or start one. Raise `AdapterFault`."""
        if self._adapter is None or self._adapter.has_ended:
            self.stop()
            self._adapter = Adapter(self._command, self._log, self._environment)
            self.client = greet(self._adapter)
        return self._adapter

    def stop(self) -> None:
        """Stop the adapter."""
        if self._adapter is not None:
            self._adapter.stop()
            self._adapter = None

    def kill(self) -> None:
        """Let the adapter end at once, from another thread. The result of its scenario says nothing then."""
        self.is_killed = True
        if self._adapter is not None:
            self._adapter.kill()

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
            verdict, reason = Verdict.FAIL, f"{BROKEN_RULE} {first.rule}: {first.detail}"
        return verdict, reason, tuple(broken)
