"""`pulsarium admin brokers`."""

from __future__ import annotations

from typing import Any

import click

from pulsarium.cli.admin.command import Group, Values, argument, does, option, shows
from pulsarium.cli.admin.output import java, lines, pairs
from pulsarium.cli.admin.values import INT

CLUSTER = argument("cluster")
CONFIG = option("--config", "-c", required=True, help="Name of the setting, as in broker.conf.")


def _owned(data: Any, values: Values) -> str:
    return "\n".join(
        f"{bundle}    [{' '.join(f'{name}={java(value)}' for name, value in status.items())}]"
        for bundle, status in (data or {}).items()
    )


GROUP = Group(
    "brokers",
    "Brokers: health, version, settings.",
    (
        shows(
            "list",
            lambda api, v: api.brokers.get_active_brokers(v.cluster),
            "List the active brokers of a cluster.",
            CLUSTER,
            show=lines,
        ),
        shows("leader-broker", lambda api, v: api.brokers.get_leader_broker(), "Show the broker that leads."),
        shows(
            "namespaces",
            lambda api, v: api.brokers.get_owned_namespaces(v.cluster, v.url),
            "List the namespace bundles that a broker owns.",
            CLUSTER,
            option("--url", "-u", required=True, metavar="BROKER", help="Which broker: HOST:PORT as `list` shows it."),
            show=_owned,
            example="standalone --url localhost:8080",
        ),
        does(
            "update-dynamic-config",
            lambda api, v: api.brokers.update_dynamic_configuration(v.config, v.value),
            "Change a dynamic setting of all brokers.",
            CONFIG,
            option("--value", "-v", required=True, help="Its new value."),
            example="--config maxConcurrentLookupRequest --value 50000",
        ),
        does(
            "delete-dynamic-config",
            lambda api, v: api.brokers.delete_dynamic_configuration(v.config),
            "Take a dynamic setting back: broker.conf holds again.",
            CONFIG,
        ),
        shows(
            "list-dynamic-config",
            lambda api, v: api.brokers.get_dynamic_configuration_names(),
            "List the settings that can be changed.",
            show=lines,
        ),
        shows(
            "get-all-dynamic-config",
            lambda api, v: api.brokers.get_all_dynamic_configurations(),
            "Show the settings that were.",
            show=pairs,
        ),
        shows(
            "get-internal-config",
            lambda api, v: api.brokers.get_internal_configuration_data(),
            "Show where metadata and ledgers are kept.",
        ),
        shows(
            "get-runtime-config",
            lambda api, v: api.brokers.get_runtime_configurations(),
            "Show every setting.",
            show=pairs,
        ),
        shows(
            "healthcheck",
            lambda api, v: api.brokers.healthcheck(topic_version=v.topic_version),
            "Let the broker send itself a message; `ok` if that works.",
            option("--topic-version", "-tv", type=click.Choice(["V1", "V2"]), help="Through which health topic."),
        ),
        shows(
            "backlog-quota-check",
            lambda api, v: api.brokers.backlog_quota_check(),
            "Look at all backlog quotas now.",
            show=lambda data, values: "ok",
        ),
        shows("version", lambda api, v: api.brokers.get_version(), "Show the broker's version."),
        shows(
            "shutdown",
            lambda api, v: api.brokers.shut_down_broker_gracefully(
                max_concurrent_unload_per_sec=v.max_concurrent_unload_per_sec,
                forced_terminate_topic=v.forced_terminate_topic,
            ),
            "Stop the broker, topics first.",
            option("--max-concurrent-unload-per-sec", "-m", type=INT, default=0, help="Unloads a second; 0: no limit."),
            option("--forced-terminate-topic", "-f", flag=True, help="Close topics without waiting."),
            show=lambda data, values: "Successfully shutdown broker gracefully",
        ),
    ),
    examples=("brokers healthcheck", "brokers list standalone"),
)
