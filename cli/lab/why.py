"""`pulsarium why`: explain why a message was not delivered, or why a producer cannot publish."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import click

from pulsarium.cli.admin.errors import AdminError, ServerError
from pulsarium.cli.admin.output import table
from pulsarium.cli.completing import subscriptions, topics
from pulsarium.cli.grouped import GroupedCommand
from pulsarium.cli.lab.broker import OF_PROXY, LabOf, of_broker
from pulsarium.cli.lab.why_stats import of_cluster, of_files, tell

COLUMNS: Final = ("partition", "backlog", "unacked", "reason", "text")
NO_LAB: Final = (403, 404, 405, OF_PROXY)  # what other brokers, and proxies before them, answer to a call of the lab


def _paths(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> list[Path]:
    return [Path(name) for each in given for name in each.split(",") if name]


@click.command(cls=GroupedCommand)
@click.argument("topic", required=False, shell_complete=topics)
@click.argument("subscription", required=False, shell_complete=subscriptions)
@click.argument("message_id", required=False)
@click.option(
    "--producer",
    "of_producer",
    is_flag=True,
    help="Explain why a producer cannot be created or cannot publish. SUBSCRIPTION is then the producer's name.",
)
@click.option(
    "--from",
    "paths",
    multiple=True,
    callback=_paths,
    metavar="FILE,...",
    help="Explain stats in files: the output of 'topics stats', and of 'topics stats-internal' if there is one.",
)
@click.option("--stats", "by_stats", is_flag=True, help="Use the stats only, as for a broker that is not Pulsarium.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON, with the facts behind it.")
@of_broker
def why(
    lab: LabOf,
    topic: str | None,
    subscription: str | None,
    message_id: str | None,
    of_producer: bool,
    paths: list[Path],
    by_stats: bool,
    as_json: bool,
) -> None:
    """Explain why a message was not delivered to a subscription, or how it was acknowledged.

    MESSAGE_ID is LEDGER:ENTRY, or LEDGER:ENTRY:BATCH for a message of a batch. The default is the next message that was
    not delivered. For a partitioned topic, a table has a line for each partition. For a scalable topic without
    SUBSCRIPTION, explain the last split or merge, and what the next one waits for.

    A broker that is not Pulsarium is explained by its stats, internal stats, policies and the first message of the
    backlog. Each finding names the fields behind it, how certain it is, and the next command. Nothing is changed there.
    Without SUBSCRIPTION, all subscriptions are explained.

    \b
    For example:
      pulsarium why orders billing
      pulsarium why topic://public/default/orders
      pulsarium why orders billing 12:0
      pulsarium why --producer orders
      pulsarium why --producer orders till-1

    \b
    On a cluster of Apache Pulsar, and from what somebody pasted:
      pulsarium why orders billing --admin-url https://pulsar.staging:8443 --token file:///run/token
      pulsarium why --from stats.json
      pulsarium why --from stats.json,stats-internal.json
    """
    of_stats = bool(paths) or by_stats
    if topic is None and not paths:
        raise click.UsageError("name a TOPIC, or files with --from")
    if of_stats and (of_producer or message_id):
        raise click.UsageError(
            "stats explain the next message of a subscription; they know no --producer and no MESSAGE_ID"
        )
    if paths:
        tell(of_files(paths, topic, subscription), json_asked=as_json)
        return
    named = {"producer": subscription or ""} if of_producer else {"subscription": subscription}
    asked = {"topic": topic, **named, "messageId": message_id}
    answer = None if by_stats else _asked(lab, {name: value for name, value in asked.items() if value is not None})
    if answer is not None:
        _tell(answer, as_json)
    elif of_producer or message_id:
        raise AdminError(
            "no broker of Pulsarium answers here, and stats explain the next message only: leave out MESSAGE_ID and "
            "--producer"
        )
    else:
        assert topic is not None
        tell(of_cluster(lab.api, topic, subscription), json_asked=as_json)


def _asked(lab: LabOf, query: dict[str, str]) -> Any:
    """Return the answer of the lab, or None from a broker without a lab."""
    try:
        return lab.call("GET", "why", **query)
    except ServerError as error:
        if error.status not in NO_LAB or lab.is_there:
            raise
        return None


def _tell(answer: Any, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(answer, indent=2))
        return
    about = answer["details"].get("messageId")
    click.echo(
        f"{answer['reason']}: {answer['text']}" if about is None else f"{about} {answer['reason']}: {answer['text']}"
    )
    rows = answer["details"].get("partitions")
    if rows:
        click.echo(table([{name: row[name] for name in COLUMNS} for row in rows]))
