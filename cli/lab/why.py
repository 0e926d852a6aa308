"""`pulsarium why`: explain why a message was not delivered, or why a producer cannot publish."""

from __future__ import annotations

import json
from typing import Final

import click

from pulsarium.cli.admin.output import table
from pulsarium.cli.completing import subscriptions, topics
from pulsarium.cli.grouped import GroupedCommand
from pulsarium.cli.lab.broker import LabOf, of_broker

COLUMNS: Final = ("partition", "backlog", "unacked", "reason", "text")


@click.command(cls=GroupedCommand)
@click.argument("topic", shell_complete=topics)
@click.argument("subscription", required=False, shell_complete=subscriptions)
@click.argument("message_id", required=False)
@click.option(
    "--producer",
    "of_producer",
    is_flag=True,
    help="Explain why a producer cannot be created or cannot publish. SUBSCRIPTION is then the producer's name.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON, with the facts behind it.")
@of_broker
def why(
    lab: LabOf, topic: str, subscription: str | None, message_id: str | None, of_producer: bool, as_json: bool
) -> None:
    """Explain why a message was not delivered to a subscription, or how it was acknowledged.

    MESSAGE_ID is LEDGER:ENTRY, or LEDGER:ENTRY:BATCH for a message of a batch. The default is the next message that was
    not delivered. For a partitioned topic, a table has a line for each partition. For a scalable topic without
    SUBSCRIPTION, explain the last split or merge, and what the next one waits for.

    \b
    For example:
      pulsarium why orders billing
      pulsarium why topic://public/default/orders
      pulsarium why orders billing 12:0
      pulsarium why --producer orders
      pulsarium why --producer orders till-1
    """
    named = {"producer": subscription or ""} if of_producer else {"subscription": subscription}
    asked = {"topic": topic, **named, "messageId": message_id}
    answer = lab.call("GET", "why", **{name: value for name, value in asked.items() if value is not None})
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
