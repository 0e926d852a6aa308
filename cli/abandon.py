"""`pulsarium abandon`: delete the subscriptions of a streaming query that is given up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pulsarium.cli.client.session import ClientRun, asks_which_url
from pulsarium.cli.grouped import GroupedCommand
from pulsarium.cli.refusal import RequestRefused, RunRefused
from pulsarium.proto.text import printable

if TYPE_CHECKING:
    from pulsarium.client import Client


@click.command(
    cls=GroupedCommand, short_help="Delete the subscriptions of a streaming query on Spark that is given up."
)
@click.argument("checkpoint", metavar="CHECKPOINT")
@asks_which_url
def abandon(checkpoint: str, **given: Any) -> None:
    """Delete the subscriptions of a streaming query on Spark that is given up.

    A query that reads Pulsar keeps a durable subscription, and the broker retains everything that the query has not
    processed. CHECKPOINT is the query's checkpointLocation, a folder or a URI such as s3://bucket/folder. Its newest
    offsets name the subscriptions, also one of predefinedSubscription. The query must not run. The command leaves the
    folder, which you may delete then.

    \b
    Give up a query:
      pulsarium abandon checkpoint --url pulsar://localhost:6650

    The command needs pip install "pulsarium[spark]", and no Java. Exit code 0 is success, 1 a failure, 2 a wrong
    command line.
    """
    from pulsarium.pipeline.source import checkpoint as kept
    from pulsarium.pipeline.source.subscription import SubscriptionInUse

    try:
        found = kept.subscriptions(checkpoint)
    except kept.NoSubscriptions as error:
        raise RequestRefused(str(error)) from None
    except OSError as error:
        raise RunRefused(str(error)) from None

    async def delete(client: Client) -> None:
        try:
            topics = await kept.abandon(client, found)
        except SubscriptionInUse as error:
            raise RunRefused(f"the query still runs: {error}") from None
        for topic in topics:
            click.echo(f"{printable(topic)}: deleted the subscription")

    ClientRun(**given).run(delete)
