"""`pulsarium admin brokers`."""

from __future__ import annotations

from typing import Any

import click

from pulsarium.cli.admin.command import CommandsOf, Group, Values, argument, option
from pulsarium.cli.admin.output import java, lines, pairs
from pulsarium.cli.admin.values import INT
from pulsarium.rest.brokers import Brokers

brokers = CommandsOf(Brokers)

CLUSTER = argument("cluster")
CONFIG = option("--config", "-c", dest="name", required=True, help="Name of the setting, as in broker.conf.")


def _owned(data: Any, values: Values) -> str:
    return "\n".join(
        f"{bundle}    [{' '.join(f'{name}={java(value)}' for name, value in status.items())}]"
        for bundle, status in (data or {}).items()
    )


GROUP = Group(
    "brokers",
    "Brokers: health, version, settings.",
    (
        brokers.shows("list", Brokers.get_active_brokers, "List the active brokers of a cluster.", CLUSTER, show=lines),
        brokers.shows("leader-broker", Brokers.get_leader_broker, "Show the broker that leads."),
        brokers.shows(
            "namespaces",
            Brokers.get_owned_namespaces,
            "List the namespace bundles that a broker owns.",
            CLUSTER,
            option(
                "--url",
                "-u",
                dest="broker",
                required=True,
                metavar="BROKER",
                help="Which broker: HOST:PORT as `list` shows it.",
            ),
            show=_owned,
            example="standalone --url localhost:8080",
        ),
        brokers.does(
            "update-dynamic-config",
            Brokers.update_dynamic_configuration,
            "Change a dynamic setting of all brokers.",
            CONFIG,
            option("--value", "-v", required=True, help="Its new value."),
            example="--config maxConcurrentLookupRequest --value 50000",
        ),
        brokers.does(
            "delete-dynamic-config",
            Brokers.delete_dynamic_configuration,
            "Take a dynamic setting back: broker.conf holds again.",
            CONFIG,
        ),
        brokers.shows(
            "list-dynamic-config",
            Brokers.get_dynamic_configuration_names,
            "List the settings that can be changed.",
            show=lines,
        ),
        brokers.shows(
            "get-all-dynamic-config", Brokers.get_all_dynamic_configurations, "Show the settings that were.", show=pairs
        ),
        brokers.shows(
            "get-internal-config", Brokers.get_internal_configuration_data, "Show where metadata and ledgers are kept."
        ),
        brokers.shows("get-runtime-config", Brokers.get_runtime_configurations, "Show every setting.", show=pairs),
        brokers.shows(
            "healthcheck",
            Brokers.healthcheck,
            "Let the broker send itself a message; `ok` if that works.",
            option("--topic-version", "-tv", type=click.Choice(["V1", "V2"]), help="Through which health topic."),
        ),
        brokers.shows(
            "backlog-quota-check",
            Brokers.backlog_quota_check,
            "Look at all backlog quotas now.",
            show=lambda data, values: "ok",
        ),
        brokers.shows("version", Brokers.get_version, "Show the broker's version."),
        brokers.shows(
            "shutdown",
            Brokers.shut_down_broker_gracefully,
            "Stop the broker, topics first.",
            option("--max-concurrent-unload-per-sec", "-m", type=INT, default=0, help="Unloads a second; 0: no limit."),
            option("--forced-terminate-topic", "-f", flag=True, help="Close topics without waiting."),
            show=lambda data, values: "Successfully shutdown broker gracefully",
        ),
    ),
    examples=("brokers healthcheck", "brokers list standalone"),
)
