"""`pulsarium admin brokers`."""

from typing import Any

import click

from .command import Group, Values, argument, delete, get, option, post
from .output import java, lines, pairs
from .values import INT

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
        get("list", "brokers/{cluster}", "List the active brokers of a cluster.", CLUSTER, show=lines),
        get("leader-broker", "brokers/leaderBroker", "Show the broker that leads."),
        get(
            "namespaces",
            "brokers/{cluster}/{url}/ownedNamespaces",
            "List the namespace bundles that a broker owns.",
            CLUSTER,
            option("--url", "-u", required=True, metavar="BROKER", help="Which broker: HOST:PORT as `list` shows it."),
            show=_owned,
            example="standalone --url localhost:8080",
        ),
        post(
            "update-dynamic-config",
            "brokers/configuration/{config}/{value}",
            "Change a dynamic setting of all brokers.",
            CONFIG,
            option("--value", "-v", required=True, help="Its new value."),
            example="--config maxConcurrentLookupRequest --value 50000",
        ),
        delete(
            "delete-dynamic-config",
            "brokers/configuration/{config}",
            "Take a dynamic setting back: broker.conf holds again.",
            CONFIG,
        ),
        get("list-dynamic-config", "brokers/configuration", "List the settings that can be changed.", show=lines),
        get("get-all-dynamic-config", "brokers/configuration/values", "Show the settings that were.", show=pairs),
        get("get-internal-config", "brokers/internal-configuration", "Show where metadata and ledgers are kept."),
        get("get-runtime-config", "brokers/configuration/runtime", "Show every setting.", show=pairs),
        get(
            "healthcheck",
            "brokers/health",
            "Let the broker send itself a message; `ok` if that works.",
            option("--topic-version", "-tv", type=click.Choice(["V1", "V2"]), help="Through which health topic."),
            query={"topicVersion": "topic_version"},
            text=True,
        ),
        get(
            "backlog-quota-check",
            "brokers/backlog-quota-check",
            "Look at all backlog quotas now.",
            show=lambda data, values: "ok",
        ),
        get("version", "brokers/version", "Show the broker's version.", text=True),
        post(
            "shutdown",
            "brokers/shutdown",
            "Stop the broker, topics first.",
            option("--max-concurrent-unload-per-sec", "-m", type=INT, default=0, help="Unloads a second; 0: no limit."),
            option("--forced-terminate-topic", "-f", flag=True, help="Close topics without waiting."),
            query={
                "maxConcurrentUnloadPerSec": "max_concurrent_unload_per_sec",
                "forcedTerminateTopic": "forced_terminate_topic",
            },
            show=lambda data, values: "Successfully shutdown broker gracefully",
        ),
    ),
    examples=("brokers healthcheck", "brokers list standalone"),
)
