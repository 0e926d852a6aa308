"""`pulsarium admin brokers`, `broker-stats` and `bookies`."""

from __future__ import annotations

import json
from typing import Any

import click

from pulsarium.cli.admin.command import CommandGroup, CommandsOf, Values, argument, option
from pulsarium.cli.admin.output import compact, java, lines, pairs
from pulsarium.cli.admin.values import INT
from pulsarium.rest.brokers import Bookies, Brokers, BrokerStats
from pulsarium.rest.data import BookieInfo

brokers = CommandsOf(Brokers)

CLUSTER = argument("cluster")
CONFIG = option("--config", "-c", dest="name", required=True, help="The setting, by its name in broker.conf.")


def _owned(data: Any, values: Values) -> str:
    return "\n".join(
        f"{bundle}    [{' '.join(f'{name}={java(value)}' for name, value in status.items())}]"
        for bundle, status in (data or {}).items()
    )


_BROKERS = (
    brokers.shows("list", Brokers.get_active_brokers, "List the active brokers of a cluster.", CLUSTER, show=lines),
    brokers.shows("leader-broker", Brokers.get_leader_broker, "Show the leader broker."),
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
            help="The broker, HOST:PORT as `list` shows it.",
        ),
        show=_owned,
        example="standalone --url localhost:8080",
    ),
    brokers.does(
        "update-dynamic-config",
        Brokers.update_dynamic_configuration,
        "Change a dynamic setting of all brokers.",
        CONFIG,
        option("--value", "-v", required=True, help="The new value."),
        example="--config maxConcurrentLookupRequest --value 50000",
    ),
    brokers.does(
        "delete-dynamic-config",
        Brokers.delete_dynamic_configuration,
        "Remove a dynamic setting, so that broker.conf applies again.",
        CONFIG,
    ),
    brokers.shows(
        "list-dynamic-config",
        Brokers.get_dynamic_configuration_names,
        "List the settings that can be changed dynamically.",
        show=lines,
    ),
    brokers.shows(
        "get-all-dynamic-config",
        Brokers.get_all_dynamic_configurations,
        "Show the settings that were changed dynamically.",
        show=pairs,
    ),
    brokers.shows(
        "get-internal-config", Brokers.get_internal_configuration_data, "Show the stores of metadata and ledgers."
    ),
    brokers.shows(
        "get-runtime-config", Brokers.get_runtime_configurations, "Show all settings of the broker.", show=pairs
    ),
    brokers.shows(
        "healthcheck",
        Brokers.healthcheck,
        "Check that the broker can send itself a message; prints `ok`.",
        option("--topic-version", "-tv", type=click.Choice(["V1", "V2"]), help="Use the health topic of this version."),
    ),
    brokers.shows(
        "backlog-quota-check",
        Brokers.backlog_quota_check,
        "Check all backlog quotas now.",
        show=lambda data, values: "ok",
    ),
    brokers.shows("version", Brokers.get_version, "Show the broker's version."),
    brokers.shows(
        "shutdown",
        Brokers.shut_down_broker_gracefully,
        "Stop the broker after unloading its topics.",
        option(
            "--max-concurrent-unload-per-sec", "-m", type=INT, default=0, help="Limit unloads a second; 0: no limit."
        ),
        option("--forced-terminate-topic", "-f", flag=True, help="Close topics without waiting."),
        show=lambda data, values: "Successfully shutdown broker gracefully",
    ),
)


broker_stats = CommandsOf(BrokerStats)

INDENT = option("--indent", "-i", flag=True, help="Indent the JSON.")


def _json(data: Any, values: Values) -> str:
    return json.dumps(data, indent=4, ensure_ascii=False) if values.indent else compact(data)


def _metrics(data: Any, values: Values) -> str:
    return "\n".join(_json(item, values) for item in data or ())


_BROKER_STATS = (
    broker_stats.shows(
        "monitoring-metrics",
        BrokerStats.get_metrics,
        "Show the metrics for monitoring, one group a line.",
        INDENT,
        show=_metrics,
    ),
    broker_stats.shows("mbeans", BrokerStats.get_mbeans, "Show the MBeans.", INDENT, show=_json),
    broker_stats.shows(
        "topics",
        BrokerStats.get_topics,
        "Show the stats of all topics, by namespace and bundle.",
        INDENT,
        show=_json,
        alias="destinations",
        example="--indent",
    ),
    broker_stats.shows(
        "allocator-stats",
        BrokerStats.get_allocator_stats,
        "Show the stats of a memory allocator.",
        argument("allocator"),
        example="default",
    ),
    broker_stats.shows("load-report", BrokerStats.get_load_report, "Show the load report."),
)


bookies = CommandsOf(Bookies)

BOOKIE = option("--bookie", "-b", required=True, metavar="HOST:PORT", help="The bookie.")


def _rack(values: Values) -> BookieInfo:
    return {"rack": values.rack} if values.hostname is None else {"rack": values.rack, "hostname": values.hostname}


_BOOKIES = (
    bookies.shows("racks-placement", Bookies.get_bookies_rack_info, "Show the racks of all bookies."),
    bookies.shows("list-bookies", Bookies.get_bookies, "List the bookies."),
    bookies.shows("get-bookie-rack", Bookies.get_bookie_rack_info, "Show the rack of a bookie.", BOOKIE),
    bookies.does("delete-bookie-rack", Bookies.delete_bookie_rack_info, "Remove the rack of a bookie.", BOOKIE),
    bookies.does(
        "set-bookie-rack",
        Bookies.update_bookie_rack_info,
        "Set the rack of a bookie.",
        option("--group", "-g", default="default", help="The bookie's group."),
        BOOKIE,
        option("--rack", "-r", required=True, help="The rack."),
        option("--hostname", "-hn", help="The bookie's host."),
        example="--bookie localhost:3181 --rack /rack1",
        info=_rack,
    ),
)

GROUPS = {
    "brokers": CommandGroup(_BROKERS, examples=("brokers healthcheck", "brokers list standalone")),
    "broker-stats": CommandGroup(_BROKER_STATS, examples=("broker-stats topics --indent",)),
    "bookies": CommandGroup(_BOOKIES, examples=("bookies list-bookies",)),
}
