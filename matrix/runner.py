"""Run cells: columns in parallel, the cells of a column one after another."""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, Final
from urllib.parse import quote

from pulsarium.capture.file import SUFFIX
from pulsarium.conformance.material import Material, make
from pulsarium.matrix.brokers import Address, Broker, Given, Mask, Served
from pulsarium.matrix.build import build
from pulsarium.matrix.cell import Cell, Column, Outcome, Result
from pulsarium.matrix.clients import CLIENTS
from pulsarium.matrix.program import Hung, Program
from pulsarium.matrix.rest import call, capturing, compressions, topic_path
from pulsarium.matrix.scenarios import Scenario

GIVEN: Final = "given"
"""Name of the profile of a given broker."""
_NOT_AS_RELEASED: Final = "pip"
"""Profile that behaves sensibly where the released broker does not."""
_COMPACTION_SECONDS: Final = 20.0
_LOG_BYTES: Final = 1 << 20

Report = Callable[[Result], None]


@dataclass(frozen=True)
class Run:
    """Settings of a run: every scenario with every client on every profile with every mask.

    given: a running broker to use, without profiles and masks.
    folder: for logs and captures.
    """

    scenarios: Sequence[Scenario]
    clients: Sequence[str]
    profiles: Sequence[str]
    masks: Sequence[Mask]
    folder: Path
    jobs: int = 2
    given: Address | None = None

    @property
    def cells(self) -> int:
        return len(self.scenarios) * len(self.columns())

    def columns(self) -> list[Column]:
        return [
            Column(client, profile, mask.name)
            for profile in ([GIVEN] if self.given else self.profiles)
            for mask in ([Mask("none")] if self.given else self.masks)
            for client in self.clients
        ]


def run(what: Run, report: Report = lambda result: None) -> list[Result]:
    """Run all cells, and return the results in the matrix's order.

    Several threads call `report` with each result as it arrives.
    """
    what.folder.mkdir(parents=True, exist_ok=True)
    material = make(what.folder / "material")
    reasons = {client: _ready(client) for client in what.clients}
    stopping = Event()
    with ThreadPoolExecutor(what.jobs) as pool:
        columns = [
            pool.submit(lambda one: _Column(what, one, material, report, stopping).results(reasons[one.client]), column)
            for column in what.columns()
        ]
        try:
            found = [result for column in columns for result in column.result()]
        except BaseException:
            # After Ctrl-C each column ends with its current cell, and stops its broker.
            stopping.set()
            raise
    place = {scenario.name: number for number, scenario in enumerate(what.scenarios)}
    return sorted(found, key=lambda result: place[result.cell.scenario])


def _ready(name: str) -> str:
    """Build the client's program, and return why it cannot run, or ""."""
    client = CLIENTS[name]
    reason = client.missing()
    if not reason:
        try:
            build(client)
        except OSError as error:
            return str(error)
    return reason


class _Column:
    """A client's program, and the brokers that it runs against."""

    def __init__(self, what: Run, column: Column, material: Material, report: Report, stopping: Event) -> None:
        self._what = what
        self._column = column
        self._material = material
        self._report = report
        self._stopping = stopping
        self._mask = Mask.named(column.mask)
        self._brokers: dict[bool, Broker] = {}
        client = CLIENTS[column.client]
        self._program = Program(client.command(), what.folder / f"{column}.log", client.environment)

    def results(self, not_ready: str) -> list[Result]:
        """Return the results of all cells. `not_ready` says why the client cannot run."""
        try:
            scenarios = itertools.takewhile(lambda _: not self._stopping.is_set(), self._what.scenarios)
            return [self._reported(scenario, not_ready) for scenario in scenarios]
        finally:
            self._program.close()
            for broker in self._brokers.values():
                broker.stop()

    def _reported(self, scenario: Scenario, not_ready: str) -> Result:
        column = self._column
        cell = Cell(scenario.name, column.client, column.profile, column.mask)
        if not_ready:
            result = Result(cell, Outcome.SKIPPED, not_ready)
        elif reason := self._unsupported(scenario):
            result = Result(cell, Outcome.UNSUPPORTED, reason)
        else:
            result = self._run(cell, scenario)
        self._report(result)
        return result

    def _unsupported(self, scenario: Scenario) -> str:
        if reason := scenario.not_in.get(self._column.client):
            return reason
        limit, needed = self._mask.max_protocol_version, scenario.protocols.get(self._column.client, scenario.protocol)
        if limit is not None and limit < needed:
            return f"needs protocol version {needed}"
        if scenario.secured and self._what.given:
            return "needs a broker with token authentication and TLS"
        return ""

    def _run(self, cell: Cell, scenario: Scenario) -> Result:
        log = self._what.folder / f"{cell.column}" / f"{scenario.name}.log"
        log.parent.mkdir(exist_ok=True)
        start = self._program.log.stat().st_size if self._program.log.exists() else 0
        capture = log.with_suffix(SUFFIX)
        for old in (log, capture):
            old.unlink(missing_ok=True)
        outcome, reason, seconds = Outcome.FAIL, "", 0.0
        try:
            address = self._broker(scenario.secured).address
            with capturing(address.admin_url, capture.absolute(), self._material.token if scenario.secured else ""):
                answer = self._ask(scenario, address)
            outcome, reason, seconds = Outcome(answer["outcome"]), answer.get("reason", ""), answer["seconds"]
        except Hung as error:
            outcome, reason = Outcome.TIMEOUT, str(error)
        except OSError as error:
            reason = str(error)
        if outcome is Outcome.PASS and scenario.compression and capture.exists():
            used = compressions(capture)
            if used != {scenario.compression}:
                outcome, reason = Outcome.FAIL, f"the client sent with compression {', '.join(sorted(used))}"
        if outcome.is_bad and cell.profile != _NOT_AS_RELEASED and (known := scenario.not_as_released.get(cell.client)):
            outcome, reason = Outcome.UNSUPPORTED, known
        self._cut(log, start)
        files = [str(file.relative_to(self._what.folder)) if file.exists() else "" for file in (capture, log)]
        return Result(cell, outcome, _one_line(reason), seconds, *files)

    def _broker(self, secured: bool) -> Broker:
        """Return the broker for a scenario, which starts on first use."""
        if self._what.given:
            return Given(self._what.given)
        if secured not in self._brokers:
            options = ["--profile", self._column.profile, *self._mask.options()]
            # Two brokers, so that some topics are not on the broker that a client asks first.
            options += self._material.options() if secured else ["--brokers", "2"]
            name = f"{self._column}.{'secured' if secured else 'brokers'}.log"
            self._brokers[secured] = Served(options, self._what.folder / name)
        return self._brokers[secured]

    def _ask(self, scenario: Scenario, address: Address) -> dict[str, Any]:
        """Prepare a namespace and a topic for the scenario, and let the program run it."""
        namespace = "public/default"
        if not scenario.secured:
            namespace = f"public/matrix-{uuid.uuid4().hex[:12]}"
            call(address.admin_url, "PUT", f"/admin/v2/namespaces/{namespace}", {})
            if scenario.deduplication:
                call(address.admin_url, "POST", f"/admin/v2/namespaces/{namespace}/deduplication", True)
        topic = f"persistent://{namespace}/{quote(scenario.name)}"
        if scenario.partitions:
            call(address.admin_url, "PUT", f"{topic_path(topic)}/partitions", scenario.partitions)
        request = {
            "scenario": scenario.name,
            "topic": topic,
            "namespace": namespace,
            "service_url": address.service_urls[0],
            "service_urls": list(address.service_urls),
            "http_url": address.http_urls[0],
            "http_urls": list(address.http_urls),
            "tls_url": address.tls_url,
            "https_url": address.https_url,
            **self._material.requested(),
        }
        return self._program.run(request, scenario.seconds, lambda asked: _do(asked, address.admin_url, topic))

    def _cut(self, log: Path, start: int) -> None:
        """Copy the program's output of this cell to the cell's own log."""
        if self._program.log.exists() and self._program.log.stat().st_size > start:
            with self._program.log.open("rb") as everything:
                everything.seek(start)
                log.write_bytes(everything.read(_LOG_BYTES))


def _do(asked: Mapping[str, Any], url: str, topic: str) -> None:
    """Do the admin work of a scenario. Raise `OSError`."""
    path = topic_path(topic)
    match asked["do"]:
        case "unload":
            call(url, "PUT", f"{path}/unload")
        case "terminate":
            call(url, "POST", f"{path}/terminate")
        case "compact":
            call(url, "PUT", f"{path}/compaction")
            _until(lambda: call(url, "GET", f"{path}/compaction")["status"] == "SUCCESS", _COMPACTION_SECONDS)
        case other:
            raise OSError(f"unknown work: {other}")


def _until(holds: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise OSError("the work did not finish in time")
        time.sleep(0.05)


def _one_line(text: str) -> str:
    return " ".join(text.split())[:400]


def failures(results: Iterable[Result]) -> list[Result]:
    return [result for result in results if result.outcome.is_bad]
