"""`pulsarium analyze`: analyze wire captures on Spark."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from pulsarium.cli.interrupts import closing_at_ctrl_c
from pulsarium.cli.refusal import RequestRefused, RunRefused
from pulsarium.cli.terminal import replace_line
from pulsarium.proto.text import printable

if TYPE_CHECKING:
    from pulsarium.pipeline.capture import Captures

_WIDEST = 60  # characters of a cell in a table
_NOT_SHOWN = ("demands", "reference")
_HEADINGS = {
    "violations": "Violations of the protocol",
    "matrix": "Outcome of each command",
    "latencies": "From request to answer, in microseconds",
    "differences": "Differences from the other run",
}


@click.command()
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...")
@click.option("--out", metavar="DIR", help="Write tables as Parquet and pictures as SVG to DIR.")
@click.option("--against", multiple=True, metavar="OTHER", help="Compare with this earlier run. May be repeated.")
@click.option("--master", default="local[*]", show_default=True, metavar="URL", help="Run on this Spark.")
@click.option(
    "--format",
    "how",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="Print this format.",
)
def analyze(captures: Sequence[str], out: str | None, against: Sequence[str], master: str, how: str) -> None:
    """Analyze wire captures: broken rules, the outcome of each command, and latencies.

    CAPTURE is a file, a folder with .pulscap files, or a glob. All captures together give one set of tables. Each
    connection is analyzed by itself.

    \b
    Show violations of the protocol, the outcome of each command, and latencies:
      pulsarium analyze run.pulscap
    \b
    Analyze a folder, and save all frames as Parquet, with pictures:
      pulsarium analyze captures/ --out report
    \b
    Compare with the last version:
      pulsarium analyze new/ --against old/
    \b
    Use a Spark cluster, with the captures in a folder that all workers see:
      pulsarium analyze '/data/captures/*.pulscap' --out /data/report --master spark://host:7077
    \b
    Print one JSON object for another program:
      pulsarium analyze run.pulscap --format json

    DIR gets frames.parquet, exchanges.parquet, violations.parquet, matrix.parquet and latencies.parquet, with --against
    differences.parquet too, and matrix.svg, latencies.svg and frames.svg. After a failure, DIR is unchanged.

    The command needs Java 17 or later and pip install "pulsarium[spark]". The exit code is 0 also with violations.
    """
    from pulsarium.pipeline import NoJava, session
    from pulsarium.pipeline.capture import Captures, NoCaptures, differences, found
    from pulsarium.pipeline.capture.output import write
    from pulsarium.pipeline.capture.progress import Progress
    from pulsarium.pipeline.errors import SPARK_ERRORS, error_line

    try:
        wanted = found(captures), found(against) if against else []
        _tell("starting Spark")
        with closing_at_ctrl_c(), ExitStack() as stack:
            # Spark's own bar counts files, and hides the percentage of a large one.
            spark = session("pulsarium analyze", master=master, config={"spark.ui.showConsoleProgress": "false"})
            spark.sparkContext.setLogLevel("ERROR")
            reads = Progress(wanted[0])
            run = stack.enter_context(Captures(spark, wanted[0], progress=reads.folder))
            other = stack.enter_context(Captures(spark, wanted[1])) if against else None
            _tell(what := f"reading {len(run.paths)} captures")
            with reads.shown(lambda percent: _tell(f"{what}: {percent} %")):
                tables = dict(_tables(run))
            if other is not None:
                tables["differences"] = _rows(differences(other, run))
            if out is not None:
                write(run, out, other, _tell)
    except NoCaptures as error:
        raise RequestRefused(str(error)) from None
    except (NoJava, OSError) as error:
        raise RunRefused(str(error)) from None
    except SPARK_ERRORS as error:
        raise RunRefused(printable(error_line(str(error)) or repr(error))) from None
    finally:
        _tell("")
    click.echo(json.dumps(tables, indent=2) if how == "json" else "\n\n".join(_shown(tables)))


def _tables(run: Captures) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    yield "violations", _rows(run.broken_rules())
    yield "matrix", _rows(run.matrix)
    yield "latencies", _rows(run.latencies)


def _rows(table: Any) -> list[dict[str, Any]]:
    return [row.asDict() for row in table.collect()]


def _shown(tables: Mapping[str, list[dict[str, Any]]]) -> Iterator[str]:
    for name, rows in tables.items():
        heading = _HEADINGS[name]
        yield "\n".join([heading, "-" * len(heading), *(_lines(rows) if rows else ["none"])])


def _lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    columns = [name for name in rows[0] if name not in _NOT_SHOWN]
    cells = [columns, *([_cell(row[column]) for column in columns] for row in rows)]
    widths = [max(len(line[at]) for line in cells) for at in range(len(columns))]
    numbers = [isinstance(rows[0][column], int | float) for column in columns]
    return [
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(line, widths, numbers, strict=True)
        ).rstrip()
        for line in cells
    ]


def _cell(value: Any) -> str:
    text = "" if value is None else f"{value:,.0f}" if isinstance(value, float) else str(value)
    text = printable(text)
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def _tell(what: str) -> None:
    """Show the current step on a terminal, in place of the last one."""
    replace_line(what, sys.stderr)
