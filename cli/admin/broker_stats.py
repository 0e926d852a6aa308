"""`pulsarium admin broker-stats`."""

from __future__ import annotations

import json
from typing import Any

from pulsarium.cli.admin.command import CommandsOf, Group, Values, argument, option
from pulsarium.cli.admin.output import compact
from pulsarium.rest.brokers import BrokerStats

broker_stats = CommandsOf(BrokerStats)

INDENT = option("--indent", "-i", flag=True, help="Indent the JSON.")


def _json(data: Any, values: Values) -> str:
    return json.dumps(data, indent=4, ensure_ascii=False) if values.indent else compact(data)


def _metrics(data: Any, values: Values) -> str:
    return "\n".join(_json(item, values) for item in data or ())


GROUP = Group(
    "broker-stats",
    "What a broker measures.",
    (
        broker_stats.shows(
            "monitoring-metrics",
            BrokerStats.get_metrics,
            "Show the metrics as monitoring takes them, one group a line.",
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
    ),
    examples=("broker-stats topics --indent",),
)
