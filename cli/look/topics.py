"""`pulsarium topics`: the names of topics, one on each line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import click

from pulsarium.cli.grouped import GroupedCommand
from pulsarium.cli.look.console import PAGE, Console, of_console, short
from pulsarium.cli.look.screen import Cell, Column, grid, width

COLUMNS: Final = (
    Column("TOPIC"),
    Column("PARTITIONS", is_number=True),
    Column("SUBSCRIPTIONS", is_number=True),
    Column("BACKLOG", is_number=True),
    Column("SCHEMA"),
)


@click.command(cls=GroupedCommand)
@click.argument("part", metavar="[TEXT]", required=False)
@click.option("--namespace", "-n", metavar="TENANT/NAMESPACE", help="List topics of this namespace.")
@click.option("--long", "-l", "is_long", is_flag=True, help="Show partitions, subscriptions, backlog and schema too.")
@click.option("--system", is_flag=True, help="List system topics too.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each topic, one on each line.")
@of_console
def topics(console: Console, part: str | None, is_long: bool, as_json: bool, **asked: Any) -> None:
    """List the topics of all namespaces by their shortest names, one on each line.

    A partitioned topic is one line, without its partitions. TEXT selects topics with this text in their names.

    \b
    List all topics, and those with a word in their names:
      pulsarium topics
      pulsarium topics orders
    Show their partitions, subscriptions and backlogs:
      pulsarium topics --long --namespace public/orders

    `pulsarium admin topics list NAMESPACE` works on a real Pulsar too.
    """
    rows = _rows(console, filter=part, **asked)
    if as_json:
        for row in rows:
            click.echo(json.dumps(row, ensure_ascii=False))
    elif is_long:
        click.echo("\n".join(grid(COLUMNS, map(_row, rows), width())))
    else:
        for row in rows:
            click.echo(short(row["name"]))


def _rows(console: Console, **query: object) -> Iterator[dict[str, Any]]:
    """Yield all rows, page by page."""
    offset = 0
    while True:
        found = console.get("topics", **query, offset=offset, limit=PAGE)
        yield from found["topics"]
        offset += PAGE
        if offset >= found["topicCount"]:
            return


def _row(row: dict[str, Any]) -> list[Cell]:
    return [
        Cell(short(row["name"])),
        Cell(f"{row['partitions']:,}" if row["partitions"] else ""),
        Cell(f"{row.get('subscriptions', 0):,}"),
        Cell(f"{row.get('backlog', 0):,}"),
        Cell(str(row["schema"] or "")),
    ]
