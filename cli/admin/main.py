"""The `pulsarium admin` command: its options, and the groups. Each group is loaded when it is used."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

import click

from pulsarium.broker.config.version import VERSION
from pulsarium.cli.admin import output
from pulsarium.cli.admin.asked import AdminRun, asks_which_broker
from pulsarium.cli.admin.command import OUTPUT, AdminGroup, CommandGroup

# Name, module, and the summary in `pulsarium admin --help`, which loads no module.
_GROUPS: Final[dict[str, tuple[str, str]]] = {
    "tenants": ("tenants", "Administer tenants, which own namespaces."),
    "namespaces": ("namespaces", "Administer namespaces and their policies."),
    "topics": ("topics", "Administer topics, messages and subscriptions; show stats."),
    "scalable-topics": ("scalable_topics", "Administer scalable topics and their segments."),
    "topicPolicies": ("topic_policies", "Set policies of a topic, which override its namespace's."),
    "schemas": ("schemas", "Administer schemas of topics."),
    "brokers": ("brokers", "Show and change settings of brokers; check health."),
    "broker-stats": ("brokers", "Show stats of a broker."),
    "clusters": ("clusters", "Administer clusters, their peers and failure domains."),
    "bookies": ("brokers", "Administer bookies and their racks."),
    "resource-quotas": ("resources", "Set resource quotas of bundles, for load balancing."),
    "resourcegroups": ("resources", "Administer rate limits that namespaces share."),
    "transactions": ("transactions", "Show transactions, their coordinators and their messages."),
    "ns-isolation-policy": ("clusters", "Assign namespaces to brokers."),
}
_OF_OLD: Final[dict[str, tuple[str, str]]] = {
    "persistent": ("older", "Use older commands for persistent topics: see `topics`."),
    "non-persistent": ("older", "Use older commands for non-persistent topics: see `topics`."),
}


_ABSENT: Final = ("functions", "functions-worker", "packages", "sink", "sinks", "source", "sources")


class _Groups(AdminGroup):
    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args[0] in _ABSENT:
            ctx.fail(f"'{args[0]}': Pulsarium has no functions, connectors or packages; use Apache Pulsar for them")
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*_GROUPS, *_OF_OLD]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in (known := _GROUPS | _OF_OLD):
            return None
        module, says = known[cmd_name]
        group: CommandGroup = import_module(f"{__package__}.{module}").GROUPS[cmd_name]
        return group.click(cmd_name, says)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, what) for name, (_, what) in _GROUPS.items()])


def _version(ctx: click.Context, param: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        click.echo(f"Current version of pulsarium admin is: {VERSION}")
        ctx.exit()


@click.command(cls=_Groups, short_help="Configure and inspect a broker, with the commands of pulsar-admin.")
@asks_which_broker
@click.option("--tls-provider", metavar="NAME", hidden=True, help="Ignored: accepted for pulsar-admin's sake.")
@click.option(
    "--output",
    type=click.Choice(output.FORMATS),
    default="auto",
    show_default=True,
    help="Print this format. text is pulsar-admin's own; auto is table on a terminal, text elsewhere.",
)
@click.option(
    "-v",
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Print the version and exit.",
)
@click.pass_context
def admin(ctx: click.Context, session: AdminRun, /, tls_provider: str | None, output: str) -> None:
    """Administer a broker from the command line, with the commands of pulsar-admin.

    The commands work on any broker with Pulsar's REST API. Options of `admin` stand before the group: pulsarium admin
    --output json topics stats orders. Exit code 0 is success; 1 is any error.

    \b
    Check that a broker answers, and list its topics:
      pulsarium admin brokers healthcheck
      pulsarium admin topics list public/default

    \b
    Create a namespace, a topic with four partitions, and a subscription:
      pulsarium admin namespaces create public/shop
      pulsarium admin topics create-partitioned-topic public/shop/orders --partitions 4
      pulsarium admin topics create-subscription public/shop/orders -s billing --messageId earliest

    \b
    Use another broker, with a token:
      PULSARIUM_TOKEN=file:///run/token pulsarium admin --admin-url https://broker:8443 tenants list

    \b
    Show the options of a command:
      pulsarium admin topics skip-messages --help
    """
    ctx.obj = session
    ctx.meta[OUTPUT] = output
