"""`pulsarium status` and `pulsarium top`: the broker and its topics on one screen."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import click

from pulsarium.cli.durations import Duration, about
from pulsarium.cli.grouped import Decorator, GroupedCommand, together
from pulsarium.cli.look.console import PAGE, Console, of_console, short
from pulsarium.cli.look.screen import Cell, Column, cut, grid, height, rate, size, watch, width
from pulsarium.cli.terminal import styled
from pulsarium.proto.text import printable

SORTS: Final = ("name", "backlog", "in", "out", "age", "stuck")
TOPICS: Final = 20  # rows where no terminal limits them
CAUSES: Final = 5
COLUMNS: Final = (
    Column("TOPIC"),
    Column("IN/S", is_number=True),
    Column("OUT/S", is_number=True),
    Column("BACKLOG", is_number=True),
    Column("OLDEST", is_number=True),
    Column("REASON"),
)

Json = Mapping[str, Any]


def _shared(sort: str) -> Decorator:
    return together(
        click.option(
            "--sort",
            type=click.Choice(SORTS),
            default=sort,
            show_default=True,
            help="Sort by this column, the largest first. stuck is the number of subscriptions that wait for too long.",
        ),
        click.option("--namespace", "-n", metavar="TENANT/NAMESPACE", help="Show topics of this namespace."),
        click.option("--filter", "-f", "part", metavar="TEXT", help="Show topics with this text in their names."),
        click.option("--idle", is_flag=True, help="Show idle topics too: without clients, backlog and new messages."),
        click.option("--system", is_flag=True, help="Show system topics too."),
        click.option(
            "--limit",
            type=click.IntRange(1, PAGE),
            metavar="N",
            help=f"Show at most N topics.  [default: those that fit the terminal; {TOPICS} elsewhere]",
        ),
        click.option(
            "--interval",
            type=Duration(),
            default=2.0,
            metavar="DURATION",
            help="Draw the screen again after this time.  [default: 2s]",
        ),
        click.option(
            "--json",
            "as_json",
            is_flag=True,
            help="Print the answers of the broker as JSON: `topics`, and the facts of the overview.",
        ),
    )


@click.command(cls=GroupedCommand)
@_shared("stuck")
@click.option("--watch", "-w", "watches", is_flag=True, help="Draw the screen again and again, until Ctrl-C.")
@of_console
def status(console: Console, watches: bool, interval: float, **asked: Any) -> None:
    """Show on one screen what the broker does, its topics, and what is stuck.

    Each topic has its rates, its backlog, the age of its oldest unacknowledged message, and the reason why a
    subscription waits. A partitioned topic is one line. Behind the topics stand the causes of what is stuck, with the
    remedy for each. `pulsarium why` explains one subscription.

    \b
    Look once, and keep looking:
      pulsarium status
      pulsarium status --watch
    Show the largest backlogs of a namespace:
      pulsarium status --sort backlog --namespace public/orders
    Read the numbers in a script:
      pulsarium status --json

    The commands `status`, `top`, `tail` and `topics` need Pulsarium. A real Pulsar does not have their routes.
    """
    draw = _screen(console, asked)
    if watches:
        watch(draw, interval, None)
    else:
        click.echo(draw())


@click.command(cls=GroupedCommand)
@_shared("in")
@click.option(
    "--count", type=click.IntRange(min=1), metavar="N", help="Draw N times.  [default: once where no terminal is]"
)
@of_console
def top(console: Console, count: int | None, interval: float, **asked: Any) -> None:
    """Show the busiest topics, and draw the screen again every two seconds until Ctrl-C.

    Topics are sorted by the messages a second that producers send.

    \b
    Watch the topics that send most to consumers:
      pulsarium top --sort out
    Record three looks in a file:
      pulsarium top --count 3 --interval 10s > top.txt
    """
    watch(_screen(console, asked), interval, count or (None if sys.stdout.isatty() else 1))


def _screen(console: Console, asked: dict[str, Any]) -> Callable[[], str]:
    as_json, limit = asked.pop("as_json"), asked.pop("limit")
    query = {**asked, "filter": asked.pop("part")}
    query.pop("part")

    def draw() -> str:
        overview = console.get("overview")
        head, foot = _head(console.url, overview), list(_causes(overview))
        room = limit or (max(height() - len(head) - len(foot) - 4, 1) if sys.stdout.isatty() else TOPICS)
        found = console.get("topics", **query, limit=min(room, PAGE))
        if as_json:
            return json.dumps({**overview, **found}, ensure_ascii=False)
        return "\n".join([*head, "", *_table(found), *foot])

    return draw


# ---- the parts of the screen


def _head(url: str, overview: Json) -> list[str]:
    now, clock = overview["now"], overview["clock"]
    words = [f"Pulsarium {overview['version']}", url, f"up {about(time.time() - overview['upSinceMs'] / 1000)}"]
    if clock is not None and clock["frozen"]:
        words.append("the clock is frozen")
    elif clock is not None:
        words.append(
            f"the clock is {about(abs(clock['aheadMs']) / 1000)} {'ahead' if clock['aheadMs'] > 0 else 'behind'}"
        )
    words += [f"{overview['connections']:,} connections", f"profile {overview['profile']}"]
    numbers = (
        f"in {rate(now['in'])}/s ({size(now['bytesIn'])}/s)",
        f"out {rate(now['out'])}/s ({size(now['bytesOut'])}/s)",
        f"backlog {now['backlog']:,}",
        f"unacknowledged {now['unacked']:,}",
        f"redelivered {rate(now['redelivered'])}/s",
        f"stored {size(now['storage'])}",
    )
    most = width()
    return [styled(cut(printable("  ".join(words)), most), bold=True), cut("  ".join(numbers), most)]


def _table(found: Json) -> list[str]:
    rows, left = found["topics"], found["topicCount"] - len(found["topics"])
    lines = grid(COLUMNS, map(_row, rows), width()) if rows else ["No topics to show."]
    more = []
    if left:
        more.append(f"{left:,} more topics: --limit, --filter and --namespace select them")
    if found["idleTopics"] and not any(row["idle"] for row in rows):
        more.append(f"{found['idleTopics']:,} idle topics: --idle shows them")
    return [*lines, *(styled(cut("; ".join(more), width()), dim=True) for _ in more[:1])]


def _row(row: Json) -> list[Cell]:
    late, stuck = row.get("late"), row["stuck"]
    name = short(row["name"]) + (f" ({row['partitions']})" if row["partitions"] else "")
    reason = "" if late is None else f"{late['subscription']}: {late['reason']}"
    if stuck > 1:
        reason += f", and {stuck - 1} more"
    age = about(row["ageMs"] / 1000) if row["ageMs"] else ""
    return [
        Cell(name, {"fg": "red"} if stuck else {}),
        _rate(row["in"]),
        _rate(row["out"]),
        _count(row.get("backlog", 0)),
        Cell(age, {"fg": "red"} if stuck else {}),
        Cell(reason, {"fg": "red"}),
    ]


def _rate(number: float) -> Cell:
    return Cell(rate(number), {"fg": "green"} if number else {"dim": True})


def _count(number: int) -> Cell:
    return Cell(f"{number:,}", {} if number else {"dim": True})


def _causes(overview: Json) -> Iterator[str]:
    stuck, most = overview["stuck"][:CAUSES], width()
    if stuck:
        yield ""
        yield styled("STUCK", bold=True)
    for cause in stuck:
        where = f"{short(cause['topic'])} {cause['subscription']}"
        loop, why = cause["loop"], cause["reason"]
        if loop is not None:
            why = f"message {loop['messageId']} was delivered {loop['deliveries']} times without an acknowledgement"
        since = about(max(_now_ms(overview) - cause["sinceMs"], 0) / 1000)
        yield cut(printable(f"{where}: {why}, for {since}, backlog {cause['backlog']:,}. {cause['remedy']}"), most)
    left = overview["stuckCount"] - len(stuck)
    if left > 0:
        yield styled(f"and {left:,} more: --json has them", dim=True)


def _now_ms(overview: Json) -> float:
    """Return the time of the broker's clock."""
    clock = overview["clock"]
    if clock is None:
        return time.time() * 1000
    return float(clock["nowMs"] if clock["frozen"] else time.time() * 1000 + clock["aheadMs"])
