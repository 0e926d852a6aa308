"""Tables and pictures in a folder: all of them, or the folder stays as it was."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from matplotlib.figure import Figure
from pyspark.sql import DataFrame

from pulsarium.pipeline.capture import plots
from pulsarium.pipeline.capture.captures import Captures, differences

Tell = Callable[[str], None]


def write(run: Captures, folder: str | Path, against: Captures | None = None, tell: Tell = lambda what: None) -> None:
    """The tables as Parquet (`frames.parquet`, ...) and the pictures as SVG; other files there are left alone.

    `against`: an earlier run; what changed since is written as `differences.parquet`. `tell` hears what is next.
    The folder is of this machine, or one that the workers share with it.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    tables = {
        "frames": run.frames,
        "exchanges": run.exchanges,
        "violations": run.violations,
        "matrix": run.matrix,
        "latencies": run.latencies,
    }
    if against is not None:
        tables["differences"] = differences(against, run)
    with beside(target) as new:
        for name, table in tables.items():
            tell(f"{name}.parquet")
            table.write.parquet(str(new / f"{name}.parquet"))
        for name, draw in pictures(run).items():
            tell(f"{name}.svg")
            draw().savefig(new / f"{name}.svg")


def pictures(run: Captures) -> dict[str, Callable[[], Figure]]:
    """What can be drawn, by name."""
    return {
        "matrix": lambda: plots.matrix(_rows(run.matrix)),
        "latencies": lambda: plots.latencies(_rows(run.latencies)),
        "frames": lambda: plots.over_time(_rows(run.over_time)),
    }


def _rows(table: DataFrame) -> list[plots.Row]:
    return [row.asDict() for row in table.collect()]


@contextmanager
def beside(target: Path) -> Iterator[Path]:
    """A folder in `target` whose contents take their places there when the block has ended without an error."""
    new = Path(tempfile.mkdtemp(prefix=".pulsarium-", dir=target))
    try:
        yield new
        _exchange(sorted(new.iterdir()), target, new / "old")
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _exchange(made: Sequence[Path], target: Path, old: Path) -> None:
    """Moves what was made into `target`, and what was there to `old`; all of it back when one cannot be moved."""
    old.mkdir()
    placed: list[Path] = []
    try:
        for path in made:
            place = target / path.name
            if place.exists():
                place.rename(old / path.name)  # a folder cannot be renamed onto one that is not empty
            path.rename(place)
            placed.append(path)
    except OSError:
        for path in placed:
            (target / path.name).rename(path)
        for path in old.iterdir():
            path.rename(target / path.name)
        raise
