"""Measure how long a piece of work holds a broker's loop: its longest step, and how long a bystander's PINGs wait."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from yardsticks.bench.accounting import MB, Peak, Pulse, cpu_seconds, memory
from yardsticks.bench.brokers import Broker, launched
from yardsticks.bench.pressure.pieces import Piece
from yardsticks.bench.report import PARTS, Figure, in_markdown
from yardsticks.bench.wire import Connection
from yardsticks.bench.work import percentile
from yardsticks.servers import ROOT

LONGEST_STEP_MS = 50
LONGEST_PONG_MS = 100
"""Target for the 99th percentile."""

SETTLE_SECONDS = 0.5  # after the work's answer, for what the broker does a moment later


class Step(NamedTuple):
    """A step of a broker's loop: milliseconds of CPU without garbage collection, those of it, and a place in code."""

    work: float
    collection: float
    place: str


class Steps:
    """The steps of a broker's loop. A broker that was started without `watched` does not note them."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._seen = 0

    def new(self) -> list[Step]:
        """Return the steps since the last call."""
        if self._file is None:
            return [Step(math.nan, math.nan, "-")]
        with self._file.open("rb") as file:
            file.seek(self._seen)
            whole = [line for line in file.read().splitlines(keepends=True) if line.endswith(b"\n")]
        self._seen += sum(map(len, whole))
        words = (line.decode().split() for line in whole)
        return [Step(float(work), float(collection), place) for work, collection, place in words]


@dataclass(frozen=True)
class Held:
    """Result of one round of a piece of work.

    The fields are the longest step, the longest garbage collection in milliseconds, the milliseconds that PONGs took,
    and the seconds, the CPU seconds and the megabytes of the work itself.
    """

    step: Step
    collection: float
    pongs: Sequence[float]
    seconds: float
    cpu: float
    megabytes: float


def measure(pieces: Sequence[Piece], scale: float, rounds: int, on: Broker | None) -> dict[Piece, list[Held]]:
    found: dict[Piece, list[Held]] = {piece: [] for piece in pieces}
    for _ in range(rounds):
        for (prepare, count), alike in groupby(pieces, lambda piece: (piece.prepare, piece.count)):
            scaled = max(1, int(count * scale))
            with broker_or(on) as (broker, steps):
                connection = prepare(broker, scaled)
                for piece in alike:
                    found[piece].append(once(broker, steps, piece, connection, scaled))
                connection.socket.close()
    return found


@contextmanager
def broker_or(on: Broker | None) -> Iterator[tuple[Broker, Steps]]:
    """Yield a broker that runs already, or a new one that notes its steps."""
    if on is not None:
        yield on, Steps(None)
        return
    with TemporaryDirectory(prefix="pulsarium-bench-") as folder:
        file = Path(folder, "steps")
        watched = (sys.executable, "-P", "-m", "yardsticks.bench.pressure.watched", str(file), "serve", "--with-parent")
        with launched([*watched, "--set", "transactionCoordinatorEnabled=true"], ROOT, kept=True) as launch:
            yield launch.broker, Steps(file)


def once(broker: Broker, steps: Steps, piece: Piece, connection: Connection, count: int) -> Held:
    anonymous = memory(broker.pid).anonymous / MB
    steps.new()
    with Pulse(broker.service_url) as pulse, Peak(broker.pid) as peak:
        begin, cpu = time.perf_counter(), cpu_seconds(broker.pid)
        piece.work(broker, connection, count)
        seconds, cpu = time.perf_counter() - begin, cpu_seconds(broker.pid) - cpu
        time.sleep(SETTLE_SECONDS)
    came = steps.new() or [Step(0, 0, "-")]
    collection = max(each.collection for each in came)
    waits = [wait * 1000 for wait in pulse.waits]
    return Held(max(came), collection, waits, seconds, cpu, peak.megabytes - anonymous)


def figures(piece: Piece, rounds: Sequence[Held]) -> tuple[Figure, Figure]:
    """Return the figures with targets: the longest step of all rounds, and the p99 of PONGs."""
    step = max(each.step.work for each in rounds)
    runs = {"pulsarium": [] if math.isnan(step) else [step]}
    pongs = {"pulsarium": [percentile(each.pongs, 99) for each in rounds]}
    return (
        Figure(f"{piece.name}.step", PARTS, f"{piece.title}: longest step", "ms", 0, runs, LONGEST_STEP_MS),
        Figure(f"{piece.name}.pong", PARTS, f"{piece.title}: p99 of PONGs", "ms", 1, pongs, LONGEST_PONG_MS),
    )


def missed(found: dict[Piece, list[Held]]) -> bool:
    return any(figure.met is False for piece, rounds in found.items() for figure in figures(piece, rounds))


def table(found: dict[Piece, list[Held]]) -> str:
    """Return a Markdown table, and the places of steps that are too long."""
    head = ["ms of CPU", f"longest step, <= {LONGEST_STEP_MS}", "garbage collection", "PONG p50"]
    head += [f"p99, <= {LONGEST_PONG_MS}", "longest", "seconds", "CPU s", "MB more"]
    rows, places = [head], []
    for piece, rounds in found.items():
        step, pong = figures(piece, rounds)
        rows.append(
            [
                piece.title,
                told(step),
                _shown(max(each.collection for each in rounds), 0),
                f"{median(median(each.pongs) for each in rounds):.1f}",
                told(pong),
                f"{max(max(each.pongs) for each in rounds):.0f}",
                f"{median(each.seconds for each in rounds):.2f}",
                f"{median(each.cpu for each in rounds):.2f}",
                f"{max(each.megabytes for each in rounds):.0f}",
            ]
        )
        if step.met is False:
            longest = max(each.step for each in rounds)
            places.append(f"{piece.title}: {longest.work:.0f} ms, mostly in {longest.place}")
    return "\n".join([in_markdown(rows), *(["", "Steps that are too long:", *places] if places else [])])


def told(figure: Figure) -> str:
    """Return a figure, and whether it misses its target."""
    value = figure.median("pulsarium")
    return "-" if value is None else f"{_shown(value, figure.digits)}{'' if figure.met else ' MISSED'}"


def _shown(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}f}"
