"""Write tables and pictures to a folder: all of them, or none."""

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
    """Write the tables as Parquet (`frames.parquet`, ...) and the pictures as SVG. Other files of the folder stay.

    `against` is an earlier run: the differences are written as `differences.parquet`. Without `against` an older file
    of that name is deleted. `tell` is called with the name of the next file. The folder is on this machine, or shared
    with the workers.
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
    with beside(target, [f"{_CHANGED}.parquet"]) as new:  # an older comparison is not of this run
        for name, table in tables.items():
            tell(f"{name}.parquet")
            table.write.parquet(str(new / f"{name}.parquet"))
        for name, draw in pictures(run).items():
            tell(f"{name}.svg")
            draw().savefig(new / f"{name}.svg")


def pictures(run: Captures) -> dict[str, Callable[[], Figure]]:
    """Return functions that draw the pictures, by the pictures' names."""
    return {
        "matrix": lambda: plots.matrix(_rows(run.matrix)),
        "latencies": lambda: plots.latencies(_rows(run.latencies)),
        "frames": lambda: plots.over_time(_rows(run.over_time)),
    }


def _rows(table: DataFrame) -> list[plots.Row]:
    return [row.asDict() for row in table.collect()]


@contextmanager
def beside(target: Path, replaces: Iterable[str] = ()) -> Iterator[Path]:
    """Yield a temporary folder in `target`, and move its contents into `target` when the block ends without an error.

    Files of `target` that `replaces` names and the block did not make are deleted.
    """
    new = Path(tempfile.mkdtemp(prefix=".pulsarium-", dir=target))
    try:
        yield new
        names = {path.name for path in new.iterdir()} | set(replaces)
        _exchange(sorted(names), target, new, new / _OLD)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _exchange(names: Sequence[str], target: Path, new: Path, old: Path) -> None:
    """Move the new files into `target`, and the files that they replace into `old`. Undo all moves after an error."""
    old.mkdir()
    made = [name for name in names if (new / name).exists()]
    try:
        for name in names:
            if (target / name).exists():
                (target / name).rename(old / name)  # because a folder cannot be renamed onto a folder with contents
            if name in made:
                (new / name).rename(target / name)
    except BaseException:  # Ctrl-C, too, may come between two moves
        for name in made:
            if not (new / name).exists():
                (target / name).rename(new / name)
        for path in old.iterdir():
            path.rename(target / path.name)
        raise
