"""Run scenarios with many clients: columns side by side, the scenarios of a column one after another.

A column is a release of a client on a profile behind a mask, a limit of the protocol version. Each column has brokers
of its own. With a given broker the columns come one after another.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock
from typing import Any, Final

from pulsarium.broker.lab.proxy.upstream import Upstream
from pulsarium.conformance.clients import Release
from pulsarium.conformance.run import Result, Runner, Verdict
from pulsarium.conformance.scenario import SCENARIOS, Scenario
from pulsarium.conformance.side import GivenSides, OurSides, given_broker, our_brokers

CELLS: Final = "conformance.jsonl"
"""Name of the file that receives each result as it comes."""
NO_MASK: Final = "none"
_OWN_NAMESPACE: Final = re.compile(r"public/conformance-[0-9a-f]{10}")
"""Namespaces of scenarios, which differ in each run: equal reasons shall be equal texts."""


@dataclass(frozen=True)
class Column:
    """A client on a profile behind a mask. `client` is its name, such as java@2.11.4, or "" for a command."""

    client: str
    profile: str
    mask: str = NO_MASK

    def __str__(self) -> str:
        parts = [self.client or "client", self.profile, *([self.mask] if self.mask != NO_MASK else [])]
        return "-".join(parts).replace("@", "-")


def limit_of(mask: str) -> int | None:
    """Return the highest protocol version of a mask: 19 for "v19", None for "none". Raise `ValueError`."""
    if mask == NO_MASK:
        return None
    if not mask.startswith("v") or not mask[1:].isdigit() or int(mask[1:]) > 22:
        raise ValueError(f"unknown mask {mask}: use none, or v0 to v22")
    return int(mask[1:])


@dataclass(frozen=True)
class Cell:
    """A result in a column.

    title: the client's name and version. log, capture: paths below the folder of the run, or "".
    """

    column: Column
    title: str
    scenario: str
    verdict: Verdict
    reason: str = ""
    seconds: float = 0.0
    rules: Sequence[str] = ()
    needs: Sequence[str] = ()
    log: str = ""
    capture: str = ""

    @classmethod
    def of(cls, column: Column, title: str, result: Result, folder: Path) -> Cell:
        log, capture = (path.relative_to(folder).as_posix() if path else "" for path in (result.log, result.capture))
        reason = _OWN_NAMESPACE.sub("public/conformance", " ".join(result.reason.split()))
        told = result.scenario.name, result.verdict, reason, round(result.seconds, 3)
        return cls(column, title, *told, tuple(result.rules), tuple(sorted(result.needs)), log, capture)

    @property
    def is_bad(self) -> bool:
        return self.verdict in (Verdict.FAIL, Verdict.ERROR)

    def row(self) -> dict[str, Any]:
        """Return a JSON object."""
        own = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "column"}
        return {"client": self.column.client, "profile": self.column.profile, "mask": self.column.mask, **own}

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Cell:
        own = {name: row[name] for name in cls.__dataclass_fields__ if name not in ("column", "verdict")}
        own |= {name: tuple(row[name]) for name in ("rules", "needs")}
        return cls(Column(row["client"], row["profile"], row["mask"]), verdict=Verdict(row["verdict"]), **own)


def read_cells(folder: Path) -> list[Cell]:
    """Return the results that a run has written to its folder."""
    return [Cell.of_row(json.loads(line)) for line in (folder / CELLS).read_text("utf-8").splitlines()]


@dataclass(frozen=True)
class Given:
    """A running broker."""

    url: str
    admin_url: str

    def __post_init__(self) -> None:
        """Raise `ValueError` for a URL that the kit cannot take."""
        Upstream.plain(self.url)


@dataclass(frozen=True)
class Run:
    """Settings of a run.

    clients: releases, which are prepared. command: an adapter in their place. folder: for all files. jobs: number of
    columns at a time. brokers: number of brokers of each cluster. proxied: whether
    clients reach these through proxies. given: a running broker of the one profile.
    """

    scenarios: Sequence[Scenario]
    folder: Path
    clients: Sequence[Release] = ()
    command: Sequence[str] = ()
    profiles: Sequence[str] = ("pulsar-5.0",)
    masks: Sequence[str] = (NO_MASK,)
    jobs: int = 1
    brokers: int = 2
    proxied: bool = False
    given: Given | None = None
    stopping: Event = field(default_factory=Event)

    def columns(self) -> list[tuple[Column, Release | None]]:
        """Return each column with its client, or None for a command."""
        clients: Sequence[Release | None] = self.clients or [None]
        return [
            (Column(client.name if client else "", profile, mask), client)
            for profile in self.profiles
            for mask in self.masks
            for client in clients
        ]

    def sides(self, column: Column, folder: Path) -> AbstractContextManager[GivenSides | OurSides]:
        """Return the brokers of a column."""
        if self.given:
            return given_broker(self.given.url, self.given.admin_url, folder)
        return our_brokers(column.profile, limit_of(column.mask), number=self.brokers, proxied=self.proxied)


def run(what: Run, report: Callable[[Cell], None] = lambda cell: None) -> list[Cell]:
    """Run all columns, write and report each cell as it arrives, and return all cells in the order of the columns.

    Several threads call `report`, one at a time.
    """
    lock = Lock()
    runners: list[Runner] = []
    with (what.folder / CELLS).open("w", encoding="utf-8") as file:

        def arrived(cell: Cell) -> None:
            with lock:
                file.write(json.dumps(cell.row(), ensure_ascii=False) + "\n")
                file.flush()
                report(cell)

        with ThreadPoolExecutor(1 if what.given else what.jobs) as pool:
            columns = [
                pool.submit(_column, what, column, client, arrived, runners) for column, client in what.columns()
            ]
            try:
                return [cell for column in columns for cell in column.result()]
            except BaseException:
                what.stopping.set()
                for each in runners:
                    each.kill()
                raise


def _column(
    what: Run, column: Column, client: Release | None, report: Callable[[Cell], None], runners: list[Runner]
) -> list[Cell]:
    if what.stopping.is_set():
        return []
    folder = what.folder / str(column)
    folder.mkdir(exist_ok=True)
    cells: list[Cell] = []
    with what.sides(column, folder) as sides:
        command, environment = (client.command, client.environment) if client else (what.command, {})
        runner = Runner(command, sides, column.profile, folder, environment)
        runners.append(runner)

        def arrived(result: Result) -> None:
            if runner.is_killed:
                return
            cell = Cell.of(column, client.title if client else _title(runner), result, what.folder)
            cells.append(cell)
            report(cell)

        runner.run(_until(what.stopping, what.scenarios), arrived)
    return cells


def _until(stopping: Event, scenarios: Iterable[Scenario]) -> Iterable[Scenario]:
    for each in scenarios:
        if stopping.is_set():
            return
        yield each


def _title(runner: Runner) -> str:
    return f"{runner.client.name} {runner.client.version}".strip() if runner.client else "unknown client"


def in_order(cells: Iterable[Cell]) -> list[Cell]:
    """Sort cells by their scenarios, in the order of the table of scenarios."""
    place = {name: number for number, name in enumerate(SCENARIOS)}
    return sorted(cells, key=lambda cell: place.get(cell.scenario, len(place)))
