"""Run processes of loads against a broker, and collect what they and the broker's gauges show."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.foreign.admin import Admin
from tests.foreign.broker_process import PULSARIUM, BrokerProcess
from tests.workers import Heard
from tests.workers import workers as workers_of

from .gauges import Gauges, Sample, Trend, left_over, objects_left, trends

SAMPLE_SECONDS = 1.0
LEAVE_SECONDS = 30.0  # in which the broker must release what the last client used
PATIENCE_SECONDS = 180.0  # in which a process of loads must account for all messages after its load
SETTINGS = {
    "transactionCoordinatorEnabled": "true",
    "managedLedgerCacheSizeMB": "2",  # so small that even on a busy machine the cache is soon full and must not grow
    "managedLedgerMaxEntriesPerLedger": "2000",  # so few that the broker often begins and deletes ledgers
    "managedLedgerMinLedgerRolloverTimeMinutes": "0",
    "retentionCheckIntervalInSeconds": "2",
    "brokerDeleteInactiveTopicsEnabled": "false",
    "forceDeleteNamespaceAllowed": "true",
    "statsUpdateFrequencyInSecs": "5",  # a short interval, because rates keep what existed in the last one
}
NAMESPACES: dict[str, dict[str, object]] = {
    "plain": {},
    "once": {"deduplication": True},
    "kept": {"retention": {"retentionTimeInMinutes": -1, "retentionSizeInMB": 4}},
    "expiring": {"messageTTL": 10},
}


@dataclass
class Told:
    """The last line of each process of loads."""

    lines: dict[str, dict[str, Any]] = field(default_factory=dict)

    def total(self, name: str) -> int:
        return sum(line[name] for line in self.lines.values())

    @property
    def violations(self) -> list[str]:
        return [each for line in self.lines.values() for each in line["violations"]]

    @property
    def streams(self) -> list[tuple[str, int, int, int]]:
        """Return the name of each stream, and how many messages were confirmed, seen, and seen again."""
        return [tuple(each) for line in self.lines.values() for each in line["streams"]]


@dataclass
class Outcome:
    """The figures of a run, and its violations."""

    start: Sample
    told: Told = field(default_factory=Told)
    samples: list[Sample] = field(default_factory=list)
    end: Sample | None = None
    trends: list[Trend] = field(default_factory=list)
    grown: dict[str, int] = field(default_factory=dict)  # new objects by type, from before the loads until after
    violations: list[str] = field(default_factory=list)


Tell = Callable[[Outcome, float], None]


@contextmanager
def broker(folder: Path, *options: str, memory: bool) -> Iterator[BrokerProcess]:
    """Run `pulsarium serve` with the settings of the loads and more options, and check that the broker exits with 0."""
    settings = [part for key, value in SETTINGS.items() for part in ("--set", f"{key}={value}")]
    data = [] if memory else ["--data", str(folder / "data")]
    process = BrokerProcess(folder, [*data, *settings, *options], command=PULSARIUM)
    try:
        yield process
        if process.stop(30.0) != 0:
            raise AssertionError(f"the broker ended badly:\n{process.tail()}")
    finally:
        if process.running:
            process.kill()


def prepare(admin_url: str) -> None:
    """Create a tenant with the namespaces of all loads."""
    admin = Admin(admin_url)
    admin.call("PUT", "/admin/v2/tenants/soak", {"allowedClusters": ["standalone"]})
    for name, policies in NAMESPACES.items():
        admin.create_namespace(f"soak/{name}")
        for policy, value in policies.items():
            admin.call("POST", f"/admin/v2/namespaces/soak/{name}/{policy}", value)


def clean(admin_url: str) -> None:
    """Delete the namespaces of all loads."""
    for name in NAMESPACES:
        Admin(admin_url).delete_namespace(f"soak/{name}")


def run(
    process: BrokerProcess, seconds: float, seed: int, workers: int, tell: Tell = lambda outcome, seconds: None
) -> Outcome:
    """Run the loads for so many seconds, call `tell` each second, and return the outcome."""
    address = process.address
    prepare(address.admin_url)
    gauges = Gauges(process.pid, address.admin_url)
    outcome = Outcome(gauges.sample(0))
    census = gauges.census()
    arguments = [address.service_url, address.admin_url, str(seed)]
    programs = [("yardsticks.soak.worker", f"w{number}") for number in range(workers)] + [
        ("yardsticks.soak.official", "official")
    ]
    with workers_of([[program, *arguments, prefix, str(seconds)] for program, prefix in programs]) as heard:
        _watch(outcome, gauges, heard, [prefix for _, prefix in programs], seconds, tell)
    outcome.violations += outcome.told.violations
    if len(outcome.told.lines) < len(programs) or not all(line["streams"] for line in outcome.told.lines.values()):
        outcome.violations.append("a process of loads did not come to its end")
    outcome.trends = trends([sample for sample in outcome.samples if sample.seconds <= seconds])
    outcome.violations += [
        f"{trend.name} grew from {trend.early:,.0f} to {trend.late:,.0f}, which is more than {trend.bound:,.0f}"
        for trend in outcome.trends
        if not trend.held
    ]
    clean(address.admin_url)
    _leave(outcome, gauges, census)
    return outcome


def _watch(outcome: Outcome, gauges: Gauges, heard: Heard, names: Sequence[str], seconds: float, tell: Tell) -> None:
    left = len(names)
    begin = time.monotonic()
    due = begin
    while left and time.monotonic() < begin + seconds + PATIENCE_SECONDS:
        try:
            said = heard.get(timeout=max(0.0, due - time.monotonic()))
        except queue.Empty:
            passed = time.monotonic() - begin
            outcome.samples.append(gauges.sample(passed))
            tell(outcome, passed)
            due += SAMPLE_SECONDS
            continue
        if said.line is None:
            left -= 1
        else:
            outcome.told.lines[names[said.program]] = said.line


def _leave(outcome: Outcome, gauges: Gauges, before: Mapping[str, int]) -> None:
    """Wait until the broker has released what clients and topics used, and record the rest as violations."""
    end = time.monotonic() + LEAVE_SECONDS
    never = threading.Event()
    while True:
        outcome.end = gauges.sample(time.monotonic())
        after = gauges.census()
        left = [*left_over(outcome.start, outcome.end), *objects_left(before, after)]
        if not left or time.monotonic() >= end:
            break
        never.wait(SAMPLE_SECONDS)
    outcome.violations += left
    outcome.grown = {name: count - before.get(name, 0) for name, count in after.items() if count > before.get(name, 0)}
