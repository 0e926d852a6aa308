"""`pulsarium tail`: the messages of a topic as they arrive, decoded by its schema."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final

import click

from pulsarium.cli.admin.errors import ServerError
from pulsarium.cli.admin.values import TOPIC
from pulsarium.cli.durations import Duration
from pulsarium.cli.grouped import GroupedCommand
from pulsarium.cli.look.console import NOT_FOUND, Console, of_console
from pulsarium.cli.terminal import styled
from pulsarium.proto.text import printable
from pulsarium.proto.topic_name import TopicName

LAST: Final = 10
PAGE: Final = 200  # messages in one answer
PAUSE: Final = 0.5  # seconds between two looks for new messages

_ID: Final = re.compile(r"\d+:\d+(:\d+)?")

Json = Mapping[str, Any]


@click.command(cls=GroupedCommand)
@click.argument("topic", type=TOPIC)
@click.option(
    "--from",
    "start",
    metavar="PLACE",
    help="Begin at earliest, at latest (only new messages), at a message id LEDGER:ENTRY, or at an ISO time.",
)
@click.option("--since", type=Duration(), metavar="DURATION", help="Begin with messages published this long ago.")
@click.option(
    "--last", "-n", type=click.IntRange(min=0), metavar="N", help=f"Begin with the last N.  [default: {LAST}]"
)
@click.option(
    "--filter",
    "-f",
    "where",
    metavar="CONDITION",
    help="Show messages that meet a condition, such as 'total > 100 and key == \"alice\"'.",
)
@click.option("--containing", "-c", metavar="TEXT", help="Show messages with this text in their values or properties.")
@click.option("--key", "-k", help="Show messages with this key.")
@click.option("--partition", "-p", type=click.IntRange(min=0), metavar="N", help="Show messages of this partition.")
@click.option(
    "--follow/--no-follow", default=True, help="Wait for new messages, or stop at the end.  [default: --follow]"
)
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="Stop after N messages.")
@click.option(
    "--output",
    "-o",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Print a line of text, or a JSON object with all that the broker knows of the message.",
)
@of_console
def tail(
    console: Console,
    topic: TopicName,
    start: str | None,
    since: float | None,
    last: int | None,
    follow: bool,
    count: int | None,
    output: str,
    **asked: Any,
) -> None:
    """Show the last messages of TOPIC, and new ones as they arrive, until Ctrl-C.

    The broker decodes each message by its schema. All partitions of a topic are shown in one stream, in the order of
    publish times. The command needs no subscription, and acknowledges nothing. Each line has the local time of
    publishing, the message id behind the partition, the key, the value and the properties.

    \b
    Follow a topic:
      pulsarium tail orders
    Show what came in the last ten minutes, and stop:
      pulsarium tail orders --since 10m --no-follow
    Show large orders from the first message on:
      pulsarium tail orders --from earliest --filter 'value.total > 100'
    Feed a program, a JSON object on each line:
      pulsarium tail orders -o json | jq .value

    CONDITION is that of the console: key, value.FIELD, properties["NAME"], producer, size and more. See
    docs/console.md.
    """
    if sum(each is not None for each in (start, since, last)) > 1:
        raise click.UsageError("pass only one of --from, --since and --last")
    asked = {"full": "true", **asked}
    reader = _Reader(console, f"messages/{topic.rest_path}", asked)
    show = _as_json if output == "json" else _as_text
    rows = reader.rows(_begin(start, since, LAST if last is None else last), follow=follow)
    try:
        for row in islice(rows, count):
            click.echo(show(row))
    except ServerError as error:
        if error.status == NOT_FOUND:
            console.get(f"topic/{topic.rest_path}")  # its refusal names similar topics
        raise


def _begin(start: str | None, since: float | None, last: int) -> dict[str, object] | int:
    """Return the query of the first page, or the number of messages from the end."""
    if since is not None:
        return {"fromMs": round((time.time() - since) * 1000)}
    if start is None:
        return last
    if start == "latest":
        return 0
    if start == "earliest" or _ID.fullmatch(start):
        return {"start": start}
    try:
        return {"fromMs": round(datetime.fromisoformat(start).timestamp() * 1000)}
    except ValueError:
        raise click.UsageError(
            f"--from {start}: write earliest, latest, LEDGER:ENTRY, or a time such as 2030-01-01T12:00:00"
        ) from None


class _Reader:
    """The messages of a topic, page by page."""

    def __init__(self, console: Console, path: str, query: Mapping[str, object]) -> None:
        self._console = console
        self._path = path
        self._query = query

    def rows(self, begin: Mapping[str, object] | int, *, follow: bool) -> Iterator[Json]:
        """Yield the messages from a place, or the last ones. With `follow`, wait for new ones without end."""
        if isinstance(begin, int):
            found, place = self._last(begin)
            yield from found
        else:
            place = None
        while True:
            page = self._page({**(begin if isinstance(begin, Mapping) else {}), **({"start": place} if place else {})})
            yield from page["messages"]
            place = page["next"]
            if place is None:
                if not follow:
                    return
                place = page["end"]
                time.sleep(PAUSE)

    def _last(self, most: int) -> tuple[Sequence[Json], str]:
        """Return the last messages in their order, and the end of the topic behind them."""
        found: list[Json] = []
        page = self._page({"start": "latest", "limit": min(max(most, 1), PAGE)})
        end: str = page["end"]
        while most:
            found = [*page["messages"], *found]
            if len(found) >= most or page["previous"] is None:
                break
            if not page["complete"]:
                click.echo("searched the latest messages only; --from earliest searches all", err=True)
                break
            page = self._page({"start": page["previous"], "limit": min(most - len(found), PAGE)})
        return found[-most:] if most else [], end

    def _page(self, query: Mapping[str, object]) -> Json:
        page: Json = self._console.get(self._path, **{"order": "oldest", "limit": PAGE, **self._query, **query})
        return page


# ---- a message as a line


def _as_json(row: Json) -> str:
    return json.dumps(row, ensure_ascii=False)


def _as_text(row: Json) -> str:
    batch = f":{row['batchIndex']}" if "batchIndex" in row else ""
    partition = f"{row['partition']}/" if "partition" in row else ""
    words = [styled(f"{_time(row)} {partition}{row['id']}{batch}", dim=True)]
    if "key" in row:
        words.append(styled(row["key"], fg="yellow"))
    words.append(_value(row))
    words += [styled(f"{name}={value}", fg="cyan") for name, value in row.get("properties", ())]
    return "  ".join(words)


def _time(row: Json) -> str:
    """Return the local time of publishing, with the date where it is not today's."""
    if "publishMs" not in row:
        return "-"
    moment = datetime.fromtimestamp(row["publishMs"] / 1000, UTC).astimezone()
    is_today = moment.date() == datetime.now(UTC).astimezone().date()
    return moment.strftime("%H:%M:%S.%f" if is_today else "%Y-%m-%d %H:%M:%S.%f")[:-3]


def _value(row: Json) -> str:
    if "damage" in row or "marker" in row:
        return styled(row["preview"], fg="red" if "damage" in row else "magenta")
    value = row.get("value")
    text = printable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    if row.get("cut"):
        text += styled(f" ... {row['bytes']:,} bytes", dim=True)
    if "undecoded" in row:
        text += styled(f" (not decoded: {row['undecoded']})", fg="red")
    return text
