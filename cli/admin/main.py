"""The `pulsarium admin` command: its own options, and the groups, each loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

import click

from pulsarium.broker.config.version import VERSION
from pulsarium.cli.admin import output
from pulsarium.cli.admin.asked import asks_which_broker
from pulsarium.cli.admin.command import OUTPUT, AdminGroup
from pulsarium.cli.admin.session import Session

# Name, module, and the line in `pulsarium admin --help`, which loads none of them.
_GROUPS: Final[Mapping[str, tuple[str, str]]] = {
    "tenants": ("tenants", "Tenants: who namespaces belong to."),
    "namespaces": ("namespaces", "Namespaces: their topics and policies."),
    "topics": ("topics", "Topics: their life, stats, messages and subscriptions."),
    "topicPolicies": ("topic_policies", "Policies of a topic: they win over its namespace's and the broker's."),
    "schemas": ("schemas", "Schemas of topics."),
    "brokers": ("brokers", "Brokers: health, version, settings."),
    "broker-stats": ("broker_stats", "What a broker measures."),
    "clusters": ("clusters", "Clusters, their peers and failure domains."),
    "bookies": ("bookies", "Bookies and their racks."),
    "resource-quotas": ("resource_quotas", "Resource quotas of bundles, which load balancing goes by."),
    "resourcegroups": ("resource_groups", "Resource groups: rates that namespaces share."),
    "transactions": ("transactions", "Transactions: their coordinators, what they published, what they acknowledged."),
    "ns-isolation-policy": ("isolation", "Isolation policies: which namespaces go to which brokers."),
}
_OF_OLD: Final = {"persistent": "persistent", "non-persistent": "non_persistent"}


_ABSENT: Final = ("functions", "functions-worker", "packages", "sink", "sinks", "source", "sources")


class _Groups(AdminGroup):
    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args[0] in _ABSENT:
            ctx.fail(f"'{args[0]}': Pulsarium has no functions, connectors and packages")
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*_GROUPS, *_OF_OLD]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = _GROUPS[cmd_name][0] if cmd_name in _GROUPS else _OF_OLD.get(cmd_name)
        if module is None:
            return None
        group: click.Group = import_module(f"{__package__}.{module}").GROUP.click()
        return group

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
