"""The `pulsarium admin` command: its own options, and the groups, each loaded when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

import click

from pulsarium.broker.config.version import VERSION
from pulsarium.cli.admin import output
from pulsarium.cli.admin.asked import Session, asks_which_broker
from pulsarium.cli.admin.command import OUTPUT, AdminGroup, Group

# Name, module, and the line in `pulsarium admin --help`, which loads none of them.
_GROUPS: Final[dict[str, tuple[str, str]]] = {
    "tenants": ("tenants", "Tenants: who namespaces belong to."),
    "namespaces": ("namespaces", "Namespaces: their topics and policies."),
    "topics": ("topics", "Topics: their life, stats, messages and subscriptions."),
    "topicPolicies": ("topic_policies", "Policies of a topic: they win over its namespace's and the broker's."),
    "schemas": ("schemas", "Schemas of topics."),
    "brokers": ("brokers", "Brokers: health, version, settings."),
    "broker-stats": ("brokers", "What a broker measures."),
    "clusters": ("clusters", "Clusters, their peers and failure domains."),
    "bookies": ("brokers", "Bookies and their racks."),
    "resource-quotas": ("resources", "Resource quotas of bundles, which load balancing goes by."),
    "resourcegroups": ("resources", "Resource groups: rates that namespaces share."),
    "transactions": ("transactions", "Transactions: their coordinators, what they published, what they acknowledged."),
    "ns-isolation-policy": ("clusters", "Isolation policies: which namespaces go to which brokers."),
}
_OF_OLD: Final[dict[str, tuple[str, str]]] = {
    "persistent": ("older", "Persistent topics, by the commands of old: see `topics`."),
    "non-persistent": ("older", "Non-persistent topics, by the commands of old: see `topics`."),
}


_ABSENT: Final = ("functions", "functions-worker", "packages", "sink", "sinks", "source", "sources")


class _Groups(AdminGroup):
    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args[0] in _ABSENT:
            ctx.fail(f"'{args[0]}': Pulsarium has no functions, connectors and packages")
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*_GROUPS, *_OF_OLD]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in (known := _GROUPS | _OF_OLD):
            return None
        module, says = known[cmd_name]
        group: Group = import_module(f"{__package__}.{module}").GROUPS[cmd_name]
        return group.click(cmd_name, says)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, what) for name, (_, what) in _GROUPS.items()])


def _version(ctx: click.Context, param: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        click.echo(f"Current version of pulsarium admin is: {VERSION}")
        ctx.exit()


@click.command(cls=_Groups, short_help="Set up a broker and look at it.")
@asks_which_broker
@click.option("--tls-provider", metavar="NAME", hidden=True, help="Taken for pulsar-admin's sake; no effect.")
@click.option(
    "--output",
    type=click.Choice(output.FORMATS),
    default="auto",
    show_default=True,
    help="auto: a table on a terminal, elsewhere text, which is what pulsar-admin prints.",
)
@click.option("-v", "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Say which.")
@click.pass_context
def admin(ctx: click.Context, session: Session, /, tls_provider: str | None, output: str) -> None:
    """Administer a broker from the command line, in the grammar of pulsar-admin.

    It works on any broker that speaks Pulsar's REST API. Options of its own stand before the group: pulsarium admin
    --output json topics stats orders. Exit code 0 is success; 1 is everything else.

    \b
    Is a broker there, and what is on it?
      pulsarium admin brokers healthcheck
      pulsarium admin topics list public/default
    \b
    A namespace, a topic with four partitions, a subscription:
      pulsarium admin namespaces create public/shop
      pulsarium admin topics create-partitioned-topic public/shop/orders --partitions 4
      pulsarium admin topics create-subscription public/shop/orders -s billing --messageId earliest
    \b
    Another broker, with a token:
      PULSARIUM_TOKEN=file:///run/token pulsarium admin --admin-url https://broker:8443 tenants list
    \b
    What a command takes:
      pulsarium admin topics skip-messages --help
    """
    ctx.obj = session
    ctx.meta[OUTPUT] = output
