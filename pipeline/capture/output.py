"""Tables and pictures in a folder: all of them, or the folder stays as it was."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from matplotlib.figure import Figure
from pyspark.sql import DataFrame

from pulsarium.pipeline.capture import plots
from pulsarium.pipeline.capture.captures import Captures, differences

Tell = Callable[[str], None]
_OLD = ".old"
_CHANGED = "differences"


def write(run: Captures, folder: str | Path, against: Captures | None = None, tell: Tell = lambda what: None) -> None:
    """The tables as Parquet (`frames.parquet`, ...) and the pictures as SVG; other files there are left alone.

    `against`: an earlier run; what changed since is written as `differences.parquet`, which goes without one. `tell`
    hears what is next.
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
        tables[_CHANGED] = differences(against, run)
    with beside(target, [f"{_CHANGED}.parquet"]) as new:  # of an earlier comparison: it says nothing of this run
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
def beside(target: Path, replaces: Iterable[str] = ()) -> Iterator[Path]:
    """A folder in `target` whose contents take their places there when the block has ended without an error; what is
    named in `replaces` and was not made goes."""
    new = Path(tempfile.mkdtemp(prefix=".pulsarium-", dir=target))
    try:
        yield new
        names = {path.name for path in new.iterdir()} | set(replaces)
        _exchange(sorted(names), target, new, new / _OLD)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _exchange(names: Sequence[str], target: Path, new: Path, old: Path) -> None:
    """Moves what is new into `target`, and what was there to `old`; all of it back when that comes to no end."""
    old.mkdir()
    made = [name for name in names if (new / name).exists()]
    try:
        for name in names:
            if (target / name).exists():
                (target / name).rename(old / name)  # a folder cannot be renamed onto one that is not empty
            if name in made:
                (new / name).rename(target / name)
    except BaseException:  # Ctrl-C, too, may come between any two of them
        for name in made:
            if not (new / name).exists():
                (target / name).rename(new / name)
        for path in old.iterdir():
            path.rename(target / path.name)
        raise
