"""`pulsarium why`: explain why a message was not delivered."""

from __future__ import annotations

import json

import click

from pulsarium.cli.grouped import GroupedCommand
from pulsarium.cli.lab.broker import LabOf, of_broker


@click.command(cls=GroupedCommand)
@click.argument("topic")
@click.argument("subscription")
@click.argument("message_id", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON, with the facts behind it.")
@of_broker
def why(lab: LabOf, topic: str, subscription: str, message_id: str | None, as_json: bool) -> None:
    """Explain why a message was not delivered to a subscription, or how it was acknowledged.

    MESSAGE_ID is LEDGER:ENTRY, or LEDGER:ENTRY:BATCH for a message of a batch. The default is the next message that was
    not delivered.

    \b
    For example:
      pulsarium why orders billing
      pulsarium why orders billing 12:0
    """
    query = {} if message_id is None else {"messageId": message_id}
    answer = lab.call("GET", "why", topic=topic, subscription=subscription, **query)
    if as_json:
        click.echo(json.dumps(answer, indent=2))
        return
    about = answer["details"].get("messageId")
    click.echo(
        f"{answer['reason']}: {answer['text']}" if about is None else f"{about} {answer['reason']}: {answer['text']}"
    )
