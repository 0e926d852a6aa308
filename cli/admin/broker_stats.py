"""`pulsarium admin broker-stats`."""

from __future__ import annotations

import json
from typing import Any

from pulsarium.cli.admin.command import Group, Values, argument, option, shows
from pulsarium.cli.admin.output import compact

INDENT = option("--indent", "-i", flag=True, help="Indent the JSON.")


def _json(data: Any, values: Values) -> str:
    return json.dumps(data, indent=4, ensure_ascii=False) if values.indent else compact(data)


def _metrics(data: Any, values: Values) -> str:
    return "\n".join(_json(item, values) for item in data or ())


GROUP = Group(
    "broker-stats",
    "What a broker measures.",
    (
        shows(
            "monitoring-metrics",
            lambda api, v: api.broker_stats.get_metrics(),
            "Show the metrics as monitoring takes them, one group a line.",
            INDENT,
            show=_metrics,
        ),
        shows("mbeans", lambda api, v: api.broker_stats.get_mbeans(), "Show the MBeans.", INDENT, show=_json),
        shows(
            "topics",
            lambda api, v: api.broker_stats.get_topics(),
            "Show the stats of all topics, by namespace and bundle.",
            INDENT,
            show=_json,
            alias="destinations",
            example="--indent",
        ),
        shows(
            "allocator-stats",
            lambda api, v: api.broker_stats.get_allocator_stats(v.allocator),
            "Show the stats of a memory allocator.",
            argument("allocator"),
            example="default",
        ),
        shows("load-report", lambda api, v: api.broker_stats.get_load_report(), "Show the load report."),
    ),
    examples=("broker-stats topics --indent",),
)
